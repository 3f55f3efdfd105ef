"""What a GPU did voids a window: real runs, with a program on PATH that answers as nvidia-smi.

Only nvidia-smi is played; it is found, started, sampled and stopped as on a host with a GPU.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from records import schema
from records.load import Load
from records.run_directory import RunDirectory
from tests.remote.void_runs import WIDE, Seen, carry_out, plan, window

# Prints what nvidia-smi prints: its report (in trouble, each one counts an ECC error more), a
# sample every 20 ms, memory, and the pids of the reference server plus, in trouble, a stranger's.
PROGRAM = """\
import os, sys, time
from pathlib import Path
here, trouble = Path(__file__).parent, os.environ["PLAYED_GPU"] == "trouble"
line = " ".join(sys.argv[1:])
if line == "-q":
    seen = here / "reports"
    count = len(seen.read_bytes()) if seen.exists() else 0
    seen.write_bytes(b"." * (count + trouble))
    print(f'''
==============NVSMI LOG==============

Driver Version                                         : 580.159.04
CUDA Version                                           : 13.0

Attached GPUs                                          : 1
GPU 00000000:00:06.0
    GPU UUID                                           : GPU-0
    ECC Errors
        Volatile
            DRAM Correctable                           : {count}
''')
elif "--loop-ms" in line:
    mask = "0x0000000000000004" if trouble else "0x0000000000000001"
    while True:
        print(f"2026/11/30 12:00:00.000, GPU-0, 1980, 2619, 80.5, 34, {mask}, 17, 0", flush=True)
        time.sleep(0.02)
elif "compute_cap" in line and trouble:
    print('Field "compute_cap" is not a valid field to query.')
    sys.exit(2)
elif "compute_cap" in line:
    print("GPU-0, 8.9")
elif "memory.used" in line:
    print("GPU-0, 17")
else:
    for directory in Path("/proc").iterdir():
        if directory.name.isdecimal():
            try:
                argv = (directory / "cmdline").read_bytes().split(b"\\0")
            except OSError:
                continue
            if b"reference" in argv and str(here.parent).encode() in b" ".join(argv):
                print(directory.name)
    if trouble:
        print(4_194_303)
"""


def run(directory: Path, played: str) -> Seen:
    program = directory / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -IS\n{PROGRAM}")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    load = Load("closed", 1, requests=2)
    what = plan({"only": ("--no-prefix-caching",)}, WIDE, [window(load)])
    (seen,) = carry_out(
        directory, what, env={**os.environ, "PATH": path, "PLAYED_GPU": played}
    ).values()
    return seen


@pytest.mark.parametrize(
    ("played", "rules"),
    [("quiet", set()), ("trouble", {"gpu-throttle", "gpu-error", "gpu-foreign"})],
)
def test_what_a_gpu_did_voids_the_window(tmp_path: Path, played: str, rules: set[str]) -> None:
    seen = run(tmp_path, played)
    assert seen.rules == rules, seen.ended.void
    facts = seen.ended.facts["gpu"]
    assert facts["present"]
    assert bool(facts["new_ecc_errors"]) == bool(rules)
    assert facts["foreign_processes"] == bool(rules)
    assert facts["new_xid_errors"] in (0, -1)  # -1: a kernel log that this user may not read
    # In trouble nvidia-smi is of a version that does not know the question.
    want = {"quiet": ["8.9"], "trouble": [None]}[played]
    for event in (line.event for line in RunDirectory(tmp_path / "r").read()):
        if isinstance(event, schema.HostObserved) and event.phase == "start":
            assert [one.get("compute_capability") for one in event.facts["gpus"]] == want
