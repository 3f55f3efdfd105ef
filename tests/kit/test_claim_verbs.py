"""claims, trace and finding as a user calls them, over the shipped records and over made ones."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from click import UsageError
from files_below import files_below

from analysis.findings import parse
from kit.commands.finding import begin, withdraw
from kit.home import Home
from kit.main import main
from records.errors import ClaimError, FindingError, FormatError, UnknownRunError
from tests.sealed_run import Shape, make_run, small_plan

ROOT = Path(__file__).parents[2]
MEAN = "smoke-cpu.draft.c8.throughput.mean"


def test_claims_lists_values_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--json"]) == 0
    found = {one["id"]: one for one in json.loads(capsys.readouterr().out)}
    assert found[MEAN]["printed"].endswith(" tok/s")
    assert found[MEAN]["function"] == "mean(throughput, 'draft', 'c8')"
    assert main(["claims", "throughput.mean"]) == 0
    shown = capsys.readouterr().out
    assert MEAN in shown
    assert "acceptance" not in shown


def test_claims_stand_in_the_order_of_the_numbers_in_their_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["claims", "sm90-host-1.draft.c", "--json"]) == 0
    ids = [one["id"] for one in json.loads(capsys.readouterr().out)]
    windows = list(dict.fromkeys(id_.split(".")[2] for id_ in ids))
    assert windows == ["c1", "c8", "c64"]


def test_what_the_clients_error_leaves_standing_is_not_marked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0.104 ms a token of 63 are 6.6 ms, and a stamp errs by 0.1 ms; step gaps lie 1.9 ms apart."""
    assert main(["claims", "smoke-cpu", "--json"]) == 0
    below = {one["id"]: one["below_client_error"] for one in json.loads(capsys.readouterr().out)}
    for claim in (
        "smoke-cpu.ngram-vs-none.c1.tpot.n-1.p95.difference",
        "smoke-cpu.ngram-vs-none.c1.step-gap.p95.difference",
        "smoke-cpu.c1.step-gap.least",
        "smoke-cpu.c1.fastest",
    ):
        assert below[claim] is False


def test_a_claim_below_the_clients_error_is_marked(
    here: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both arms of the made run have the very same step gaps: none is the least."""
    monkeypatch.setattr("kit.commands.claims.home", lambda: here)
    assert main(["claims", "s.c1.", "--json"]) == 0
    found = {one["id"]: one["below_client_error"] for one in json.loads(capsys.readouterr().out)}
    assert found["s.c1.step-gap.least"] is True
    assert found["s.c1.fastest"] is False
    assert main(["claims", "s.c1."]) == 0
    shown = capsys.readouterr().out.splitlines()
    marked = [line.split()[0] for line in shown if line.endswith("below the client's error")]
    assert marked == ["s.c1.step-gap.least"]


def test_trace_both_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", MEAN, "--json"]) == 0
    down = json.loads(capsys.readouterr().out)
    assert down["windows"]
    run = down["runs"][0]
    assert (ROOT / "images" / run["lock"]).is_file()
    assert main(["trace", "--reverse", run["seal"], "--json"]) == 0
    up = json.loads(capsys.readouterr().out)
    assert up["run"] == run["run"]
    assert set(down["cited"]) <= set(up["claims"][MEAN])
    assert any(finding.startswith("F001") for finding in up["findings"])
    assert main(["trace", MEAN]) == 0
    assert run["harness"] in capsys.readouterr().out
    assert main(["trace", "--reverse", run["run"]]) == 0
    assert "claims can be made of it" in capsys.readouterr().out


def test_trace_shows_each_boot_and_then_the_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", MEAN, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (first, second) = found["boots"]
    assert (first["boot"], first["block"], second["block"]) == ("b01-3-draft", 1, 2)
    assert found["by_boot"] == "output throughput, tok/s"
    assert main(["trace", MEAN]) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines() if " c8 " in line and line.endswith("s")]
    assert rows[0] == [first["host"], "1", "b01-3-draft", "c8", *first["printed"].split()]
    assert f"the claim, of all of them: {found['printed']}" in shown


def test_what_is_not_there_has_an_exit_code() -> None:
    assert main(["trace", "smoke-cpu.nothing"]) == ClaimError.exit_code
    assert main(["trace", "--reverse", "no-such-run"]) == UnknownRunError.exit_code
    assert main(["finding", "retract", "F999", "A title"]) == FindingError.exit_code


def test_a_run_may_be_named_by_its_beginning(
    here: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "--reverse", "20261130T115921Z:57"]) == 0
    assert "5d0eba, line 57 (" in capsys.readouterr().out
    (whole,) = parse(begin(here, "It is so", ("run-1",)).read_text()).evidence
    (part,) = parse(begin(here, "It is so", ("run",)).read_text()).evidence
    assert part == whole


def test_a_part_of_no_claim_is_told_instead_of_an_empty_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["claims", "no-such-part"]) == ClaimError.exit_code
    shown = capsys.readouterr()
    assert "no-such-part" in shown.err
    assert not shown.out


def test_a_mistyped_claim_names_its_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", MEAN[:-2]]) == ClaimError.exit_code
    assert f"did you mean {MEAN}?" in capsys.readouterr().err


def test_the_beginning_of_claims_names_those_that_begin_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["trace", "smoke-cpu.draft.c8.throughput"]) == ClaimError.exit_code
    told = capsys.readouterr().err
    for last in ("mean", "cv", "cv-low", "cv-high"):
        assert f"smoke-cpu.draft.c8.throughput.{last}" in told
    assert main(["trace", "smoke-cpu"]) == ClaimError.exit_code
    told = " ".join(capsys.readouterr().err.split())
    assert re.search(r"smoke-cpu\.\S+ and [0-9]{2,} more", told)
    assert "kit claims smoke-cpu lists them" in told


def test_only_those_that_are_cited(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "smoke-cpu", "--cited", "--json"]) == 0
    cited = json.loads(capsys.readouterr().out)
    assert cited
    assert all(one["cited"] for one in cited)
    assert main(["claims", "smoke-cpu", "--unused", "--json"]) == 0
    unused = json.loads(capsys.readouterr().out)
    assert main(["claims", "smoke-cpu", "--json"]) == 0
    whole = {one["id"] for one in json.loads(capsys.readouterr().out)}
    assert {one["id"] for one in (*cited, *unused)} == whole
    assert main(["claims", "--cited", "--unused"]) == UsageError.exit_code


def test_what_has_no_value_comes_last(
    here: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those without evidence come first by name, and there are many before the first number."""
    monkeypatch.setattr("kit.commands.claims.home", lambda: here)
    assert main(["claims", "--json"]) == 0
    without = [one["printed"] is None for one in json.loads(capsys.readouterr().out)]
    assert True in without
    assert False in without
    assert without == sorted(without)


@pytest.fixture
def here(tmp_path: Path) -> Home:
    """A project with one run that a study names."""
    home = Home(tmp_path, tmp_path / ".kit", tmp_path / "data", tmp_path / "build")
    run = make_run(home.data / "run-1", small_plan(), Shape())
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "evidence.toml").write_text(
        f'[study.s]\nplan = "test-plan"\n[study.s.runs]\n"run-1" = "{run.seal_digest}"\n'
    )
    return home


def test_a_finding_and_its_retraction_are_linked(here: Home) -> None:
    first = begin(here, "It is so", ())
    second = withdraw(here, "F001", "It is not so", ("run-1",))
    old, new = (parse(path.read_text()) for path in (first, second))
    assert (old.status, old.retracted_by) == ("retracted", ("F002",))
    assert (new.id, new.retracts, new.evidence) == ("F002", ("F001",), old.evidence)
    with pytest.raises(FindingError, match="retracted already"):
        withdraw(here, "F001", "Still not so", ())
    assert not (first.parent / "F003.md").exists()


@pytest.mark.parametrize("title", ["a\nb", "\u202ex", "a\x1b[2Jb", "a\x00b", "a\udcffb", "", " \n"])
def test_a_title_is_one_line_that_shows_as_it_is(
    title: str, here: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kit.commands.finding.home", lambda: here)
    begin(here, "It is so", ())
    before = files_below(here.root)
    assert main(["finding", "new", title]) == 2
    assert main(["finding", "retract", "F001", title]) == 2
    assert "a title" in capsys.readouterr().err
    with pytest.raises(FormatError):
        begin(here, title, ())
    assert files_below(here.root) == before


def test_a_titles_outer_space_is_no_part_of_it(here: Home) -> None:
    assert parse(begin(here, " It is so \n", ()).read_text()).title == "It is so"


def test_git_remembers_numbers_that_the_folder_forgot(here: Home) -> None:
    git = (
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "-c",
        "commit.gpgsign=false",
    )

    def run(*arguments: str) -> None:
        subprocess.run([*git, *arguments], cwd=here.root, check=True, capture_output=True)

    run("init", "-q")
    begin(here, "It is so", ())
    gone = begin(here, "It is otherwise", ())
    run("add", "-A")
    run("commit", "-q", "-m", "findings")
    gone.unlink()
    run("add", "-A")
    run("commit", "-q", "-m", "drop one")
    assert begin(here, "A third", ()).name == "F003.md"


def test_evidence_must_be_there(here: Home) -> None:
    with pytest.raises(UnknownRunError):
        begin(here, "It is so", ("run-9",))
