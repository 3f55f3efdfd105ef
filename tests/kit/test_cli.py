from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kit import main as kit_main
from kit.hosts.names import LocalHost
from kit.main import VERBS, cli, main
from records.errors import (
    HostUnfitError,
    HostUnreachableError,
    PlanError,
    UnknownHostError,
    UnknownRunError,
    UnlockedModelError,
)
from records.journal import Journal
from tests.sealed_run import Shape, make_run, small_plan

ROOT = Path(__file__).parents[2]
PLANS = sorted(path.stem for path in (ROOT / "kit" / "plans").glob("*.toml"))
RUN = "20261130T100000Z-test-plan-0a1b2c"


def call(*argv: str) -> int:
    return main(argv)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    shown = CliRunner().invoke(cli, [verb, "--help"])
    assert shown.exit_code == 0, shown.output
    assert "Example:" in shown.output
    assert f"kit {verb}" in shown.output


@pytest.mark.parametrize("verb", VERBS)
def test_no_help_cuts_a_sentence(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert "..." not in capsys.readouterr().out.replace("]...", "").replace("RUN...", "")


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


def test_plan_show_of_some_blocks_shows_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("plan", "show", "sm90-confounds", "--blocks", "2,4") == 0
    shown = capsys.readouterr().out
    assert "  block 2: " in shown
    assert "  block 4: " in shown
    for word in ("block 1:", "block 3:", "flashinfer", "ngram"):
        assert word not in shown
    assert "4 boots, about 5 min" in shown
    assert "2 blocks of 24, 69 boots in all" in shown
    lease = shown.rpartition("\n\n")[2].splitlines()
    assert lease[0] == "which of these blocks a host holds:"
    assert all(line.startswith("  25 minutes, a") for line in lease[1:])


def test_plan_show_tells_within_which_blocks_arms_are_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("plan", "show", "sm90-confounds") == 0
    shown = capsys.readouterr().out.splitlines()
    pairs = {tuple(line.split()[:2]): line for line in shown if "block" in line}
    assert pairs["draft", "draft-eager"].endswith("blocks 1 to 10, 15, 16, 20 and 21")
    assert pairs["draft", "fa2"].endswith("no block in common")
    # Where all blocks hold all arms there is nothing to say.
    for argv in (("l4-confounds",), ("sm90-confounds", "--blocks", "2,4")):
        assert call("plan", "show", *argv) == 0
        assert "compared" not in capsys.readouterr().out


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
        (("stop",), UnknownRunError, "no run is under way"),
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


def test_a_mistyped_verb_names_its_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reprodce"]) == 2
    assert "Did you mean 'reproduce'?" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["reproduce", "run"])
def test_blocks_that_a_plan_lacks_begin_nothing(
    verb: str, kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--plan", "demo", "--blocks", "9"]) == 2
    assert "from 1 to 2" in capsys.readouterr().err
    assert not kit_home.exists()


@pytest.mark.parametrize("blocks", ["", "1,1", "2,1", ",", "-1", "\u0661", "9" * 5000])
def test_blocks_are_numbers_each_once_and_ascending(
    blocks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "show", "demo", "--blocks", blocks]) == 2
    assert "want numbers, ascending, as in 1,3" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ("reproduce", "--run", ""),
        ("run", "--run", " "),
        ("close", "", "--because", "the lease was over"),
        ("fetch-records", "", "--delete-remote"),
        ("stop", ""),
        ("finding", "new", "It is so", "--run", ""),
    ],
)
def test_a_shell_variable_without_a_value_names_no_run(
    argv: tuple[str, ...], kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert "an empty name" in capsys.readouterr().err
    assert not kit_home.exists()


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
    assert f"resume it: kit reproduce --run {RUN}" in shown.err


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
    assert "no run is under way" in capsys.readouterr().err
    assert call("stop", RUN.lower()) == UnknownRunError.exit_code
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
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # only then is its command line surely its own
        note.write_text(f"{process.pid}\n")
        assert LocalHost().attach(note, "/jobs/x.json") is None
        assert LocalHost().attach(note, argv[-1]) is not None
        process.kill()


def test_stop_names_the_runs_when_several_are_under_way(
    kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        for last in "de":
            run = kit_home / "runs" / f"{RUN[:-1]}{last}"
            make_run(run, small_plan(), Shape(seal=False))
            stack.enter_context(Journal.resume(run / "events.jsonl"))
        assert call("stop") == UnknownRunError.exit_code
    shown = capsys.readouterr().err
    assert f"2 runs are under way: {RUN[:-1]}d, {RUN[:-1]}e" in shown
    assert f"try: kit stop {RUN[:-1]}e" in shown


def test_a_run_is_named_by_its_beginning_in_any_case(
    tmp_path: Path, kit_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "data" / RUN, small_plan())
    for words in (("compare-definitions",), ("compare-definitions", RUN[:20].lower())):
        assert call(*words, "--json") == 0
        assert json.loads(capsys.readouterr().out)["name"] == "definitions"
    assert call("compare-definitions", "2027") == UnknownRunError.exit_code


def test_a_plan_that_cannot_run_here_is_told_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("plan", "list") == 0
    assert "model qwen3-4b is not locked" in capsys.readouterr().out
    plan = tmp_path / "mine.toml"
    text = (ROOT / "kit" / "plans" / "smoke-cpu.toml").read_text()
    plan.write_text(text.replace('"ngram"', '"n-gramm"').replace("wheels-cpu.lock", "no.lock"))
    assert call("plan", "show", str(plan)) == 0
    shown = capsys.readouterr()
    assert "warning: arm n-gramm: vllm 0.29.0 has no method 'n-gramm'" in shown.err
    assert "warning: no lock images/no.lock" in shown.err


def _examples() -> Iterator[str]:
    """Every command line of every help text, lines that were broken put together."""

    def walk(one: click.Command) -> Iterator[str]:
        text = (one.help or "").partition("Example:")[2].replace("\\\n", " ")
        lines = (line.strip() for line in text.splitlines())
        for line in lines:
            if line.startswith("kit "):
                yield from line.split("  #")[0].split(" && ")
        if isinstance(one, click.Group):
            for name in one.list_commands(click.Context(one)):
                child = one.get_command(click.Context(one), name)
                assert child is not None
                yield from walk(child)

    yield from (line for verb in VERBS for line in walk(cli.get_command(None, verb)))


@pytest.mark.parametrize("line", dict.fromkeys(_examples()))
def test_every_example_of_a_help_text_parses(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their-clone").mkdir()
    tmp_path /= "here"
    tmp_path.mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "carried" / "20261130T120000Z-sm90-pilot-0a1b2c").mkdir(parents=True)
    (tmp_path / "carry").mkdir()
    (tmp_path / "images").mkdir()
    for name in ("host.txt", "images/wheels-sm90-offline.host"):
        (tmp_path / name).touch()
    command, words = cli, shlex.split(line)[1:]
    while isinstance(command, click.Group):
        child = command.get_command(click.Context(command), words[0])
        assert child is not None, f"no such command: {line}"
        command, words = child, words[1:]
    command.make_context(line, words)  # UsageError where it does not parse


def test_the_runs_and_plans_of_examples_are_there() -> None:
    runs = [path.name for path in (ROOT / "records" / "data").iterdir()]
    for line in _examples():
        for word in shlex.split(line)[2:]:
            if word.startswith("2026"):
                assert any(run.startswith(word.partition(":")[0]) for run in runs), line
        if "--plan" in line:
            assert shlex.split(line)[shlex.split(line).index("--plan") + 1] in PLANS, line


def test_the_readme_names_every_verb() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Commands")[2]
    table = section.partition("## Exit codes")[0]
    missing = [v for v in VERBS if f"`kit {v}" not in table and f"`{v}" not in table]
    assert missing == []


def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--version") == 0
    assert capsys.readouterr().out.startswith("kit ")


def test_a_job_that_never_began_is_no_row_and_not_the_newest_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KIT_HOME", str(tmp_path))
    monkeypatch.setenv(
        "KIT_DATA", str(tmp_path / "data")
    )  # closed runs of the records are told, too
    make_run(tmp_path / "runs" / "20260101T000000Z-begun", small_plan(1, 1), Shape())
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "20270101T000000Z-refused.json").write_bytes(b"{}")
    assert main(["status", "--json"]) == 0
    assert [one["run_id"] for one in json.loads(capsys.readouterr().out)] == [
        "20260101T000000Z-begun"
    ]
    assert main(["status", "20270101", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["state"] == "not begun"
    assert main(["logs"]) == UnknownRunError.exit_code
    assert "20260101T000000Z-begun has no log" in capsys.readouterr().err


@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_closed_stream_is_no_bug(closed: str) -> None:
    """As `kit plan list >&-`: a shell closes the descriptor."""
    argv = ["sh", "-c", f'exec "$0" "$@" {closed}']
    done = subprocess.run(
        [*argv, sys.executable, "-m", "kit.main", "version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
