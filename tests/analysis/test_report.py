"""The report's content and its one file: traced, escaped, the same each time."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analysis.claiming.evaluation import Evaluation, evaluate_project
from analysis.claiming.reading import Line, study_run
from analysis.comparing.verdict import Interval, Verdict
from analysis.findings import Finding, parse
from analysis.reading import read_run
from analysis.report.build import Material, build, strata
from analysis.report.model import Report
from analysis.report.page import page
from analysis.report.run_views import boot_ends, told_ends
from analysis.report.verdict_views import strip
from records import schema
from records.digest import Digest
from records.errors import ForeignDirectoryError, FormatError
from records.plan import Plan
from records.run_directory import RunDirectory, runs_in
from tests.sealed_run import Shape, make_run, small_plan

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "records" / "data"
HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'&"
# Turns the order of what follows over; the second is of no width.
HIDDEN = "\u202e\u200b"


class Elements(HTMLParser):
    """Tags with attributes, in order, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def named(self, tag: str) -> Iterator[dict[str, str]]:
        return (attributes for name, attributes in self.found if name == tag)


def material(directories: list[RunDirectory], **changes: Any) -> Material:
    """What the page of these runs is made of, without figures unless given."""
    read = [(read_run(one), one) for one in directories]
    made = Material(
        tuple(run for run, _ in read),
        {run.run_id: study_run(run, one) for run, one in read},
        {run.run_id: one.path.parent for run, one in read},
        (),
        (),
        "",
        (),
        Evaluation(),
        ROOT,
        directories[0].path.parent,
    )
    return replace(made, **changes)


def verdict(**changes: Any) -> Verdict:
    """A verdict with an answer."""
    made = Verdict(
        "dispersion.graph.cv", "CV of throughput", "13.92 %", "%", "contradicted", "it is smaller",
        "modified McKay", interval=Interval(1.0, 3.0, 0.95), bounds=Interval(6.96, 20.88),
        measured="2.0 %", value=2.0, lines=(Line("run-1", 0), Line("run-1", 1)), runs=("run-1",),
    )  # fmt: skip
    return replace(made, **changes)


@pytest.fixture(scope="module")
def shipped() -> Report:
    """The report of the committed runs, as the verb makes it but for figures and verdicts."""
    findings = [parse(path.read_text()) for path in sorted((ROOT / "paper/findings").glob("F*.md"))]
    directories = [run for run in runs_in(SHIPPED) if run.is_sealed]
    return build(
        material(directories, findings=tuple(findings), evaluation=evaluate_project(ROOT, SHIPPED))
    )


def test_every_link_leads_somewhere_and_every_id_is_one(shipped: Report) -> None:
    elements = Elements(page(shipped).decode())
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {a["href"] for a in elements.named("a")}
    assert links
    assert {link for link in links if link.removeprefix("#") not in ids} == set()


def test_nothing_takes_the_focus_from_a_reader(shipped: Report) -> None:
    """Chromium says so on the console where a key was pressed before the page was whole."""
    elements = Elements(page(shipped).decode())
    assert [tag for tag, attributes in elements.found if "autofocus" in attributes] == []


def test_a_number_that_a_claim_prints_is_the_claims(shipped: Report) -> None:
    """The same value, to the digit: cell and claim are computed apart."""
    printed = {claim.id: claim.printed.partition(" ")[0] for claim in shipped.claims}
    cells = [
        cell for stratum in shipped.strata for table in stratum.tables for row in table.rows
        for cell in row if cell.claim
    ]  # fmt: skip
    assert len(cells) > 100
    assert [(c.claim, c.text) for c in cells if printed[c.claim] != c.text] == []


def test_every_number_of_a_table_opens_a_trace(shipped: Report) -> None:
    for stratum in shipped.strata:
        for table in (*stratum.tables, *shipped.calibrations):
            if table.function == "definitions_table":
                continue
            for row in table.rows:
                bare = [c.text for c in row if c.numeric and c.text != "-" and not c.anchor]
                assert bare == [], table.title


def test_a_trace_names_lines_that_hold_what_it_says(shipped: Report) -> None:
    claim = next(c for c in shipped.claims if c.id == "smoke-cpu.draft.c8.throughput.mean")
    source = next(s for s in shipped.sources if s.anchor == claim.source)
    assert len(source.origins) == 2
    for origin in source.origins:
        boot = re.search(r"boot (\S+),", origin.label)
        lines = (ROOT / origin.file).read_text().splitlines()
        for part in origin.lines.split(", "):
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1):
                assert boot
                assert f'"boot":"{boot[1]}"' in lines[number - 1]


def test_findings_keep_what_they_do_not_establish(shipped: Report) -> None:
    written = sorted(file.stem for file in (ROOT / "paper" / "findings").glob("F*.md"))
    assert [finding.id for finding in shipped.findings] == written
    text = page(shipped).decode()
    assert text.count('aria-label="What F') == len(written)
    assert "That n-gram speculation pays on this engine in general" in text
    assert all("does NOT" not in finding.body for finding in shipped.findings)


def test_the_same_records_give_the_same_bytes(shipped: Report) -> None:
    again = build(material([run for run in runs_in(SHIPPED) if run.is_sealed]))
    assert page(again) == page(build(material([r for r in runs_in(SHIPPED) if r.is_sealed])))
    assert page(shipped) == page(shipped)


def test_no_other_script_or_style_may_run(shipped: Report) -> None:
    """The policy names both by digest, computed here from what stands on the page."""
    text = page(shipped).decode()
    policy = next(
        m["content"] for m in Elements(text).named("meta")
        if m.get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip
    for tag in ("style", "script"):
        inline = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert inline
        digest = base64.b64encode(hashlib.sha256(inline[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert " style=" not in re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.DOTALL)


def hostile(event: Any) -> Any:
    """Records in which every free text wants to be markup."""
    if isinstance(event, schema.BootEnded) and event.outcome == "failed":
        return replace(event, cause=HOSTILE, detail=f"line\n{HOSTILE}")
    if isinstance(event, schema.WindowEnded) and event.void:
        return replace(event, void=(f"jit: {HOSTILE}",), jit_lines=(HOSTILE,))
    if isinstance(event, schema.HostObserved):
        gpu = {"name": HOSTILE, "memory_total_mib": 23034}
        return replace(event, facts={"kernel": HOSTILE, "gpus": [gpu], "driver": "580.1"})
    return event


def hostile_plan() -> Plan:
    """A plan whose title wants to be markup."""
    return replace(small_plan(), title=HOSTILE)


def test_hostile_records_are_text(tmp_path: Path) -> None:
    shape = Shape(fail_last=True, void_first_window=True, edit=hostile)
    run = make_run(tmp_path / "data" / "run-1", hostile_plan(), shape)
    finding = Finding(
        "F001", HOSTILE, "retracted", (), ("F002",), "record", (run.seal_digest,), HOSTILE,
        f"\n{HOSTILE} [x](javascript:alert(1)) [y](https://example.org) ![z](https://example.org)\n"
        f"\n## What this does NOT establish\n\n{HOSTILE}\n",
    )  # fmt: skip
    retracting = replace(finding, id="F002", status="active", retracts=("F001",), evidence=())
    report = build(
        material([run], verdicts=(verdict(reason=HOSTILE),), findings=(finding, retracting))
    )
    elements = Elements(page(report).decode())
    assert list(elements.named("img")) == []
    assert len(list(elements.named("script"))) == 1
    assert all(a["href"].startswith("#") for a in elements.named("a"))
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert {one.kind for one in report.unused} == {"failed", "void"}
    assert all(HOSTILE in one.reason for one in report.unused)
    assert [one.id for one in report.findings] == ["F001", "F002"]
    assert report.runs[0].stratum[2] == ("GPU", HOSTILE)


def test_nothing_invisible_is_in_a_text(tmp_path: Path) -> None:
    """An arrow of writing direction in a host's words would turn the cells beside it over."""

    def edit(event: Any) -> Any:
        if isinstance(event, schema.HostObserved):
            return replace(event, facts={"kernel": f"6.1{HIDDEN}", "driver": HIDDEN})
        if isinstance(event, schema.BootEnded) and event.outcome == "failed":
            return replace(event, cause=f"no memory{HIDDEN}", detail=f"one\n{HIDDEN}two")
        return event

    run = make_run(tmp_path / "data" / "run-1", small_plan(), Shape(fail_last=True, edit=edit))
    text = page(build(material([run]))).decode()
    assert not any(char in text for char in HIDDEN)
    assert "no memory\\u202e\\u200b" in text
    assert "one\n\\u202e\\u200btwo" in text


def test_what_was_not_used_says_why_and_where(tmp_path: Path) -> None:
    shape = Shape(interrupt_first=True, void_first_window=True)
    report = build(material([make_run(tmp_path / "data" / "run-1", small_plan(), shape)]))
    interrupted = next(one for one in report.unused if one.kind == "interrupted")
    assert interrupted.reason == "the harness died"
    voids = [one for one in report.unused if one.kind == "void"]
    assert any("jit: 1 kernels" in one.reason for one in voids)
    anchors = {source.anchor: source for source in report.sources}
    assert all(anchors[one.anchor].origins for one in report.unused)
    assert {o.file for s in report.sources for o in s.origins} == {"data/run-1/events.jsonl"}


def test_runs_that_may_not_be_pooled_stand_apart(tmp_path: Path) -> None:
    data, plan = tmp_path / "data", small_plan()
    made = [
        make_run(data / "run-1", plan),
        make_run(data / "run-2", plan),
        make_run(data / "run-3", plan, Shape(harness=Digest.of(b"another"))),
    ]
    runs = [read_run(one) for one in made]
    groups = [[run.run_id for run in group] for _, group in strata(runs)]
    assert groups == [["run-1", "run-2"], ["run-3"]]
    report = build(material(made))
    assert [stratum.runs for stratum in report.strata] == [("run-1", "run-2"), ("run-3",)]
    assert Elements(page(report).decode()).found
    # All three are of one plan: what they carried out of it together stands with the hosts.
    study = next(table for table in report.studies if table.anchor == "plan-1-study")
    row = next(row for row in study.rows if row[3].text == "b01-1-none" and row[0].text == "A")
    source = next(s for s in report.sources if s.anchor == row[1].anchor)
    assert {origin.label for origin in source.origins} == {"arm none, boot b01-1-none"}
    with pytest.raises(ForeignDirectoryError):
        build(material([made[0], made[0]]))


def test_a_synthetic_page_says_so_everywhere(tmp_path: Path) -> None:
    run = make_run(tmp_path / "data" / "run-1", small_plan(), Shape(synthetic=True))
    report = build(material([run]))
    text = page(report).decode()
    heads = re.findall(r"<h2 id=[^>]*>(.*?)</h2>", text)
    sections = [head for head in heads if head != "Trace"]
    assert len(sections) == 9
    assert all(head.startswith("SYNTHETIC: ") for head in sections)
    assert "<title>SYNTHETIC: " in text
    assert all("(SYNTHETIC)" in t.title for s in report.strata for t in s.tables)
    real = make_run(tmp_path / "data" / "run-2", small_plan())
    with pytest.raises(FormatError, match="synthetic"):
        build(material([run, real]))


def test_a_verdict_shows_where_its_interval_lies(tmp_path: Path) -> None:
    found = strip(verdict())
    assert found is not None
    low, width, near, span = map(float, (found.low, found.width, found.near, found.span))
    assert low + width < near  # the whole interval below the bounds: contradicted
    assert near + span == pytest.approx(92, abs=0.2)
    assert strip(verdict(bounds=None)) is None
    run = make_run(tmp_path / "data" / "run-1", small_plan())
    report = build(material([run], verdicts=(verdict(outcome="not applicable"), verdict())))
    assert [one.kind for one in report.verdicts] == ["contradicted"]
    assert [one.kind for n in report.not_applicable for one in n.verdicts] == ["not applicable"]
    assert dict(report.outcomes)["reproduced"] == "0"
    assert ("95 % interval", "1 to 3") in report.verdicts[0].facts
    source = next(s for s in report.sources if s.anchor == report.verdicts[0].source)
    assert [o.lines for o in source.origins] == ["1-2"]


def test_what_does_not_apply_for_one_reason_stands_in_one_table(tmp_path: Path) -> None:
    """Twenty cards that differ in a figure bury the one that says something."""
    data, plan = tmp_path / "data", small_plan()
    made = [make_run(data / name, plan) for name in ("run-1", "run-2")]
    beside = [
        verdict(
            id=f"claim.{number}", outcome="not applicable", reason="another GPU",
            stratum=f"GPU {run}, driver 5, vllm 1", runs=(run,), lines=(Line(run, 0),),
        )
        for number in range(4) for run in ("run-1", "run-2")
    ]  # fmt: skip
    other = verdict(outcome="not applicable", reason="another engine", runs=("run-1",))
    answered = verdict(stratum="GPU run-2, driver 5, vllm 1", runs=("run-2",))
    report = build(material(made, verdicts=(*beside, other, answered)))
    assert [one.name for one in report.groups] == ["A: GPU run-1", "B: GPU run-2", "C: "]
    assert [one.told for one in report.groups][:2] == ["driver 5, vllm 1"] * 2
    assert [(one.reason, len(one.verdicts)) for one in report.not_applicable] == [
        ("another GPU", 8),
        ("another engine", 1),
    ]
    rows = report.not_applicable[0].verdicts
    assert [row.group for row in rows] == ["A: GPU run-1", "B: GPU run-2"] * 4
    assert {row.published for row in rows} == {"13.92 %"}
    assert all(row.source for row in rows)
    assert [(one.kind, one.group) for one in report.verdicts] == [("contradicted", "B: GPU run-2")]
    text = page(report).decode()
    tags = Elements(text).found
    assert sum("verdict" in a.get("class", "").split() for _, a in tags) == 1
    assert sum(a.get("class") == "held" for _, a in tags) == 9
    assert len(re.findall(r'<p class="reason">another GPU\.', text)) == 1
    assert "on B: GPU run-2" in text


def test_one_group_of_records_needs_no_letter(tmp_path: Path) -> None:
    run = make_run(tmp_path / "data" / "run-1", small_plan())
    report = build(material([run], verdicts=(verdict(stratum="SYNTHETIC, Some CPU, vllm 1"),)))
    assert report.verdicts[0].group == "Some CPU"


def test_boots_that_were_not_begun_do_not_read_as_failures(tmp_path: Path) -> None:
    """`3 of 4 completed` leaves open what became of the fourth."""
    failed = make_run(tmp_path / "data" / "run-1", small_plan(), Shape(fail_last=True))
    told = dict(build(material([failed])).summary)["planned boots"]
    assert told == "3 completed, 1 failed, 0 not begun"
    run = read_run(failed)
    del run.boots[-1]
    assert told_ends(boot_ends(run)) == "3 completed, 0 failed, 1 not begun"


def test_the_commands_name_every_run_of_the_page(tmp_path: Path) -> None:
    made = [make_run(tmp_path / "data" / name, small_plan()) for name in ("run-1", "run-2")]
    lines = {one.line: one.says for one in build(material(made)).commands}
    assert "kit report run-1 run-2" in lines
    assert "kit compare run-1 run-2" in lines
    assert "head -n 1 data/run-1/events.jsonl data/run-2/events.jsonl" in lines
    says = lines["sha256sum data/run-1/seal.json data/run-2/seal.json"]
    assert [one.seal_digest.hex in says for one in made] == [True, True]
