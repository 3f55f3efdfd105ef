from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kit import main as kit_main
from kit.hosts import LocalHost
from kit.main import VERBS, cli, main
from records.errors import (
    HostUnfitError,
    HostUnreachableError,
    PlanError,
    UnknownHostError,
    UnknownRunError,
    UnlockedModelError,
)
from tests.sealed_run import Shape, make_run, small_plan

ROOT = Path(__file__).parents[2]
PLANS = sorted(path.stem for path in (ROOT / "kit" / "plans").glob("*.toml"))
RUN = "20261130T100000Z-test-plan-0a1b2c"


@pytest.fixture
def kit_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "data", "out"):
        monkeypatch.setenv(f"KIT_{name.upper()}", str(tmp_path / name))
    return tmp_path / "home"


def call(*argv: str) -> int:
    return main(argv)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    shown = CliRunner().invoke(cli, [verb, "--help"])
    assert shown.exit_code == 0, shown.output
    assert "Example:" in shown.output
    assert f"kit {verb}" in shown.output


def test_help_lists_the_verbs_without_loading_any() -> None:
    code = (
        "import sys; from kit.main import main; main(['--help']);"
        "sys.exit(any(n.startswith(('kit.commands.', 'pandas', 'scipy', 'httpx'))"
        " for n in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    for verb in VERBS:
        assert f"  {verb} " in done.stdout.decode()


def test_plan_show_tells_arms_order_and_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("plan", "show", "smoke-cpu") == 0
    shown = capsys.readouterr().out
    for words in ("draft model, n=4", "block 2:", "6 boots, about", "avx2, no GPU"):
        assert words in shown


def test_plan_show_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("plan", "show", "l4-confounds", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["order"]) == 12 * len(told["plan"]["arms"])
    assert told["digest"].startswith("sha256:")


def test_plan_list_names_every_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("plan", "list", "--json") == 0
    ids = [plan["id"] for plan in json.loads(capsys.readouterr().out)]
    assert ids == PLANS
    assert {"demo", "l4-confounds", "smoke-cpu"} <= set(ids)


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("plan", "show", "smoke"), PlanError, f"there are: {', '.join(PLANS)}"),
        (("plan", "show", "none.toml"), PlanError, "no plan file none.toml"),
        (("run", "--plan", "l4-confounds"), UnlockedModelError, "'qwen3-4b' is not in the model"),
        (("run", "--host", "u@no-such.invalid"), HostUnreachableError, "no such name"),
        (("reproduce", "--host", "what?"), UnknownHostError, "no kind of host"),
        (("status",), UnknownRunError, "no run here yet"),
        (("logs", "x"), UnknownRunError, "no run 'x' here"),
        (("stop",), UnknownRunError, "no run here yet"),
        (("fetch-records", "x"), UnknownRunError, "no run 'x' here"),
    ],
)
def test_a_failure_is_one_message_with_a_remedy_and_its_code(
    argv: tuple[str, ...],
    code: type[PlanError],
    words: str,
    kit_home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(*argv) == code.exit_code
    shown = capsys.readouterr()
    assert shown.out == ""
    first, *rest = shown.err.splitlines()
    assert first.startswith("error: ")
    assert words in first
    assert any(line.startswith("  try: ") for line in rest)
    assert "Traceback" not in shown.err


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("plan", "show", "--jsn") == 2
    assert call("plna") == 2
    assert "No such command" in capsys.readouterr().err


def test_a_real_process_exits_with_the_code() -> None:
    argv = [sys.executable, "-m", "kit.main", "plan", "show", "nope"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == PlanError.exit_code
    assert done.stdout == b""
    assert done.stderr.startswith(b"error: no plan 'nope'")


def test_an_unexpected_exception_is_told_as_a_bug_and_kept_in_a_file(
    kit_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(kit_main.VERBS, "no-such-file", "a verb without its module")
    with pytest.raises(SystemExit) as caught:
        call("no-such-file")
    assert caught.value.code == kit_main.BUG
    shown = capsys.readouterr().err
    assert shown.startswith("error: ModuleNotFoundError: ")
    assert "Traceback" not in shown
    assert "Traceback" in (kit_home / "logs" / "last-error.txt").read_text()


def test_a_host_that_is_unfit_stops_before_anything_is_installed(
    kit_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "kit" / "plans" / "demo.toml").read_text()
    greedy = text.replace("memory_mib = 200", "memory_mib = 900_000_000")
    plan = tmp_path / "greedy.toml"
    plan.write_text(greedy.replace("cpu_flags = []", 'cpu_flags = ["no_such_flag"]'))
    assert call("reproduce", "--plan", str(plan)) == HostUnfitError.exit_code
    shown = capsys.readouterr().err
    assert "900000000 MiB needed" in shown
    assert "lacks no_such_flag" in shown
    assert not (kit_home / "harness").exists()


def test_status_tells_runs_failures_and_how_to_resume(
    kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(kit_home / "runs" / RUN, small_plan(), Shape(seal=False, fail_last=True))
    make_run(kit_home / "runs" / f"{RUN}0", small_plan())
    assert call("status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(t["state"], t["done"], t["failed"]) for t in told] == [
        ("interrupted", 4, 1),
        ("sealed", 4, 0),
    ]
    assert call("status", RUN) == 0
    shown = capsys.readouterr()
    assert "the engine ran out of memory" in shown.out
    assert "resume it: kit reproduce --plan test-plan" in shown.err


def test_a_beginning_of_several_names_is_not_a_name(
    kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for last in "de":
        make_run(kit_home / "runs" / f"{RUN[:-1]}{last}", small_plan())
    assert call("status", RUN[:-1]) == UnknownRunError.exit_code
    assert "begins the names of several runs" in capsys.readouterr().err


def test_stopping_a_run_that_does_not_run_says_so(
    kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(kit_home / "runs" / RUN, small_plan())
    assert call("stop") == UnknownRunError.exit_code
    assert "is not running" in capsys.readouterr().err


def test_runs_that_this_kit_did_not_start_are_left_alone(
    kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(kit_home / "runs" / RUN, small_plan())
    assert call("fetch-records", "--json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == []
    assert "not started by this kit" in shown.err


def test_a_process_of_another_program_is_never_taken_for_the_harness(tmp_path: Path) -> None:
    note = tmp_path / "x.pid"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        note.write_text(f"{process.pid}\n")
        assert LocalHost().attach(note, "/jobs/x.json") is None
        assert LocalHost().attach(note, "input()") is not None
        process.kill()
