"""Programs that never answer and that no signal ends: they hold up nobody for long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from doctor_transcripts import CPU_PLAN, GPU_PLAN
from immortal import immortal

from kit.doctor.examine import judge, look
from kit.doctor.topic import FAIL, WARN, WHEELS, Needs
from kit.hosts.ask import ask_all
from kit.hosts.host import TIMED_OUT, Done
from kit.hosts.local import LocalHost


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """nvidia-smi on PATH; the file of its starts."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with immortal(tmp_path / "nvidia-smi") as starts:
        yield starts


pytestmark = pytest.mark.timeout(60)


def test_a_command_alone(smi: Path) -> None:
    done = LocalHost().run(("nvidia-smi", "-q"), timeout_s=1)
    assert done == Done(TIMED_OUT, "", "nvidia-smi: no end after 1 s, nor when it was killed")
    assert len(smi.read_text().splitlines()) == 1


def test_among_other_questions(smi: Path) -> None:
    questions = {
        "before": (("echo", "1"), 10),
        "smi": (("nvidia-smi", "-q"), 1),
        "again": (("nvidia-smi", "-L"), 10),
        "after": (("echo", "2"), 10),
    }
    answers = ask_all(LocalHost(), questions)
    assert answers["before"] == Done(0, "1\n", "")
    assert answers["after"] == Done(0, "2\n", "")
    assert answers["smi"].status == answers["again"].status == TIMED_OUT
    assert answers["again"].stderr == "nvidia-smi: not asked again, as it had not answered"
    assert len(smi.read_text().splitlines()) == 1


def test_no_more_is_asked_than_there_is_time_for(tmp_path: Path) -> None:
    questions = {
        "slow": (("sleep", "60"), 50),
        "late": (("echo", "1"), 10),
    }
    answers = ask_all(LocalHost(), questions, 1.0)
    assert answers["slow"].stderr == "sleep: no end after 1 s"
    assert answers["late"] == Done(TIMED_OUT, "", "echo: not asked, as 1 s were over")


def test_an_examination_goes_on_and_says_what_did_not_answer(smi: Path, tmp_path: Path) -> None:
    seen = look(LocalHost(), tmp_path, limit_s=4.0)
    for plan, statuses in ((GPU_PLAN, {"driver": FAIL}), (CPU_PLAN, {})):
        found = {verdict.check: verdict for verdict in judge(seen, Needs(plan, WHEELS))}
        assert found["answers"].status == WARN
        assert found["answers"].found.startswith("nvidia-smi: no end after ")
        assert "nvidia-smi: not asked again" in found["answers"].found
        assert {check: found[check].status for check in statuses} == statuses
    assert len(smi.read_text().splitlines()) == 1
