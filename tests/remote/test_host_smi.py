"""Reports of `nvidia-smi -q`: the capture, and sections that the capture does not hold.

The capture is one of an H200, in two parts that lack memory, ECC, temperature and processes; LOWER
has those sections, written by hand in the layout of nvidia-smi.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from records import canonical
from records.decode import to_object
from records.errors import FormatError
from remote.host.gpu import (
    GpuMemory,
    parse_capabilities,
    parse_memory,
    parse_pids,
    with_capabilities,
)
from remote.host.smi import GpuProcess, parse

CAPTURES = Path(__file__).parents[1] / "fixtures" / "vllm-0.29.0"
CAPTURE = (CAPTURES / "cuda/nvidia-smi-q.txt").read_text()
HEAD = """
==============NVSMI LOG==============

Driver Version                                         : 580.159.04
CUDA Version                                           : 13.0

Attached GPUs                                          : 1
GPU 00000000:00:06.0
"""
LOWER = """\
    FB Memory Usage
        Total                                          : 23034 MiB
        Reserved                                       : 454 MiB
        Used                                           : 17 MiB
        Free                                           : 22564 MiB
    ECC Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    ECC Errors
        Volatile
            SRAM Correctable                           : 1
            SRAM Uncorrectable Parity                  : 2
            SRAM Uncorrectable SEC-DED                 : 3
            DRAM Correctable                           : 10
            DRAM Uncorrectable                         : 20
        Aggregate
            SRAM Correctable                           : 500
            DRAM Uncorrectable                         : 700
    Remapped Rows
        Correctable Error                              : 4
        Uncorrectable Error                            : 5
        Pending                                        : No
        Remapping Failure Occurred                     : No
    Temperature
        GPU Current Temp                               : 41 C
    Clocks Event Reasons
        Idle                                           : Active
        SW Power Cap                                   : Active
        HW Slowdown                                    : Not Active
            HW Thermal Slowdown                        : Active
    Processes
        GPU instance ID                                : N/A
        Compute instance ID                            : N/A
        Process ID                                     : 4711
            Type                                       : C
            Name                                       : python3
            Used GPU Memory                            : 1234 MiB
        GPU instance ID                                : N/A
        Compute instance ID                            : N/A
        Process ID                                     : 4712
            Type                                       : C+G
            Name                                       : x
            Used GPU Memory                            : N/A
"""


def test_the_capture() -> None:
    report = parse(CAPTURE)
    assert (report.driver, report.cuda) == ("580.159.04", "13.0")
    (card,) = report.gpus
    assert card.name == "NVIDIA H200"
    assert card.uuid is not None
    assert card.uuid.startswith("GPU-")
    assert (card.persistence, card.mig) == ("Enabled", "Disabled")
    assert (card.sm_clock_mhz, card.sm_clock_max_mhz) == (1980, 1980)
    assert (card.power_draw_mw, card.power_limit_mw) == (123_360, 700_000)
    assert card.throttle_reasons == ()
    assert canonical.encode(dataclasses.asdict(report))


def test_what_the_capture_lacks_is_none() -> None:
    (card,) = parse(CAPTURE).gpus
    assert card.memory_used_mib is None
    assert card.ecc_volatile_uncorrectable is None
    assert card.processes is None


def test_memory_ecc_rows_reasons_and_processes() -> None:
    (card,) = parse(HEAD + LOWER).gpus
    assert (card.memory_total_mib, card.memory_used_mib) == (23_034, 17)
    assert (card.ecc_volatile_correctable, card.ecc_volatile_uncorrectable) == (11, 25)
    assert (card.remapped_correctable, card.remapped_uncorrectable) == (4, 5)
    assert (card.remapping_pending, card.remapping_failed) == ("No", "No")
    assert card.temperature_c == 41
    assert card.throttle_reasons == ("SW Power Cap", "HW Thermal Slowdown")
    assert card.processes == (GpuProcess(4711, "C", 1234), GpuProcess(4712, "C+G", None))


def test_no_processes_is_not_unreported() -> None:
    (card,) = parse(HEAD + "    Processes                                : None\n").gpus
    assert card.processes == ()
    assert card.throttle_reasons is None


def test_several_gpus_come_in_bus_order() -> None:
    two = HEAD.replace("00:06.0", "00:07.0") + "    Product Name : B\n"
    both = parse(two + "GPU 00000000:00:06.0\n    Product Name : A\n")
    assert [card.name for card in both.gpus] == ["A", "B"]


@pytest.mark.parametrize(
    "line",
    [
        "    Clocks\n        SM                                 : fast MHz\n",
        "    FB Memory Usage\n        Used                   : 12 GiB\n",
        "    Clocks Event Reasons\n        SW Power Cap         : Perhaps\n",
    ],
)
def test_a_value_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(FormatError):
        parse(HEAD + line)


@pytest.mark.parametrize("text", ["", "NVIDIA-SMI has failed because it could not communicate\n"])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse(text)


def test_memory_query() -> None:
    assert parse_memory("GPU-a, 17\nGPU-b, 0\n") == (GpuMemory("GPU-a", 17), GpuMemory("GPU-b", 0))
    with pytest.raises(FormatError, match="line 1"):
        parse_memory("No devices were found\n")


def test_pid_query() -> None:
    assert parse_pids("12\n7\n12\n") == (7, 12)
    assert parse_pids("") == ()
    with pytest.raises(FormatError):
        parse_pids("[Not Supported]\n")


def test_capabilities_go_to_their_gpus_and_what_is_untold_leaves_no_key() -> None:
    (card,) = parse(CAPTURE).gpus
    assert "compute_capability" not in to_object(card)
    found = parse_capabilities(f"GPU-other, 8.9\n{card.uuid}, 9.0\nGPU-third, [N/A]\n")
    assert found == {"GPU-other": "8.9", card.uuid: "9.0"}
    asked, untold = with_capabilities((card, dataclasses.replace(card, uuid="GPU-third")), found)
    assert to_object(asked) == {**to_object(card), "compute_capability": "9.0"}
    assert "compute_capability" not in to_object(untold)
    # A GPU that the report gives no id for is not taken for another.
    assert with_capabilities((dataclasses.replace(card, uuid=None),), found)[0] == (
        dataclasses.replace(card, uuid=None)
    )


@pytest.mark.parametrize("text", ["No devices were found\n", "GPU-a, 9\n", "GPU-a, new\n", ", 9.0"])
def test_capabilities_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="line 1"):
        parse_capabilities(text)
