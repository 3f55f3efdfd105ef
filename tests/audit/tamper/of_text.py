"""Corruptions of what was derived from records: tables, paper, claims and findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from audit.paper import paper
from audit.repository import RepositoryView
from records.run_directory import RunDirectory
from tests import sealed_run
from tests.audit.tamper.corruption import Corruption
from tests.audit.tamper.healthy import CLAIM, OTHER, Repository


def _text(name: str, change: Callable[[str], str]) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        path = repository.root / "paper" / name
        path.write_text(change(path.read_text()))

    return apply


def _last_digit(text: str) -> str:
    """The last digit of the first printed decimal number, one further."""
    return re.sub(r"(\d+\.\d*)(\d)", lambda m: f"{m[1]}{(int(m[2]) + 1) % 10}", text, count=1)


def _last_digit_of_claim(text: str) -> str:
    return re.sub(r"(\[\d+\.\d*)(\d)", lambda m: f"{m[1]}{(int(m[2]) + 1) % 10}", text, count=1)


def _table_digit(repository: Repository) -> None:
    path = repository.root / "paper" / "tables" / "run-1" / "by-boot.csv"
    path.write_text(_last_digit(path.read_text()))


def _row_gone(repository: Repository) -> None:
    path = repository.root / "paper" / "tables" / "run-1" / "boots.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def _finding(name: str) -> Callable[[Repository], Path]:
    return lambda repository: repository.root / "paper" / "findings" / name


def _undo_retraction(repository: Repository) -> None:
    """F002 active again, and its retraction gone with all that pointed to it."""
    path = _finding("F002.md")(repository)
    text = path.read_text().replace("status: retracted", "status: active")
    path.write_text(text.replace("retracted-by: [F003]", "retracted-by: []"))
    third = _finding("F003.md")(repository)
    third.write_text(third.read_text().replace("retracts: [F002]", "retracts: []"))


def _reuse(repository: Repository) -> None:
    path = _finding("F003.md")(repository)
    path.write_text(path.read_text().replace("title: Not equal", "title: Something new"))


def _emptied(text: str) -> str:
    head, _, _ = text.partition("## What this does NOT establish")
    return head + "## What this does NOT establish\n"


def _more(text: str, name: str = "main.tex") -> Callable[[Repository], None]:
    """A text with something more at its end."""
    return _text(name, lambda t: t + text)


def _in_finding(text: str) -> Callable[[Repository], None]:
    """Something more in the body of a finding."""
    return _text("findings/F001.md", lambda t: t.replace("\n## What", f"\n{text}\n\n## What"))


def _file(name: str, text: str = "It was 17 percent faster.\n") -> Callable[[Repository], None]:
    """A new file of the project."""

    def apply(repository: Repository) -> None:
        path = repository.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return apply


def _linked_folder(repository: Repository) -> None:
    """A source in a folder that is a link to somewhere else."""
    elsewhere = repository.root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.tex").write_text("It was 17 percent faster.\n")
    (repository.root / "paper" / "more").symlink_to(elsewhere)


def _generated_held(repository: Repository) -> None:
    (repository.root / ".gitignore").write_text("/paper/generated/\n")
    _file("paper/generated/verdicts.tex")(repository)
    repository.commit()
    repository.git("add", "-f", "paper/generated/verdicts.tex")
    repository.git("commit", "-q", "-m", "for the reader's convenience")


def _title(repository: Repository) -> None:
    """A new finding whose title says it."""
    text = _finding("F001.md")(repository).read_text().replace("id: F001", "id: F004")
    text = text.replace("title: Acceptance", "title: It was 17 percent faster")
    text = text.replace("Anything about", "Whatever one might think of")
    _finding("F004.md")(repository).write_text(text)


def _limits(text: str) -> Callable[[Repository], None]:
    """Another text about what the finding does not establish."""

    def change(finding: str) -> str:
        head, title, _ = finding.partition("## What this does NOT establish")
        return f"{head}{title}\n\n{text}\n"

    return _text("findings/F001.md", change)


def _better_run(repository: Repository) -> None:
    """The study rests on run-3 in place of run-1, findings and numbers along with it."""
    old, new = (RunDirectory(repository.run(name)).seal_digest for name in ("run-1", "run-3"))
    paper_folder = repository.root / "paper"
    left_out = re.compile(r"\n\[study[^\n]*left_out\].*", re.DOTALL)
    for path in (paper_folder / "evidence.toml", *(paper_folder / "findings").iterdir()):
        text = left_out.sub("\n", path.read_text()) if path.suffix == ".toml" else path.read_text()
        path.write_text(text.replace(str(old), str(new)).replace("run-1", "run-3"))
    value = paper(RepositoryView(repository.root, repository.data)).evaluation.values[CLAIM]
    first = _finding("F001.md")(repository)
    first.write_text(re.sub(r"\[[^\]]*\]\(claim", f"[{value.printed}](claim", first.read_text()))


def _moved_run(repository: Repository) -> None:
    """A run that the study named, in a study of its own that nothing cites."""
    path = repository.root / "paper" / "evidence.toml"
    seal = RunDirectory(repository.run("run-3")).seal_digest
    text = path.read_text().replace('"run-3" = "made for other tests"\n', "")
    aside = f'\n[study.aside]\nplan = "test-plan"\n\n[study.aside.runs]\n"run-3" = "{seal}"\n'
    path.write_text(text + aside)


def _another_run(repository: Repository) -> None:
    """One more run of the study's plan, committed, of which nobody speaks."""
    repository.add_run("run-4", sealed_run.Shape())


_RULE = """
[[claim]]
id = "own.cv"
text = "a spread"
figure = "13.92"
unit = "%"
source = "abstract"
quantity = "throughput"
test = "cv-margin"
fixed = "2026-11-30"

[claim.of]
engine = "vllm 0.29.0"
capability = "0"

[claim.margin]
relative = "0.50"
fixed = "2026-11-30"
reason = "for tests"

[[claim.measured]]
plan = "test-plan"
arms = ["draft"]
window = "c1"
"""


def _wider_margin(repository: Repository) -> None:
    """A margin widened once the run that it judges was known."""
    path = repository.root / "paper" / "published.toml"
    path.write_text(path.read_text() + _RULE)
    repository.commit("a rule")
    path.write_text(path.read_text().replace(_RULE, _RULE.replace("0.50", "0.95")))


def _after_the_run(old: str, new: str) -> Callable[[Repository], None]:
    """What measures a claim changed once the run that it judges was known."""

    def apply(repository: Repository) -> None:
        path = repository.root / "paper" / "published.toml"
        path.write_text(path.read_text() + _RULE)
        repository.commit("a rule")
        path.write_text(path.read_text().replace(_RULE, _RULE.replace(old, new)))
        repository.commit("another rule")

    return apply


_WORDS = (
    ("in words", "It was seventeen percent faster.\n"),
    ("in one word", "It was twice as fast.\n"),
    ("in a word of its own", "It was tenfold.\n"),
    ("as an order of magnitude", "It was an order of magnitude faster.\n"),
    ("as a part", "It was a third slower.\n"),
    ("dressed as a name", "FP42 tok/s was reached.\n"),
    ("after a command's name", "It was \\relax17 percent faster.\n"),
    ("after a letter", "It was x17 faster.\n"),
    ("in a note to a reference", "It was so~\\cite[17 percent]{rfc}.\n"),
    ("in an address", "\\url{17-percent-faster}\n"),
    ("behind the columns of a table", "\\begin{tabular}{l}17 & \\textbf{x}\n\\end{tabular}\n"),
    ("in Chinese", "It was 十七 percent faster.\n"),
    ("in circles", "It was ⑰ percent faster.\n"),
    ("in full width", "It was １７ percent faster.\n"),  # noqa: RUF001
)
_CONCEALED = (
    ("behind a percent sign that is no comment", "It was \\verb|%17 percent| faster.\n"),
    ("with the percent sign made a letter", "\\catcode`\\%=12 It was %17 percent.\n"),
    ("by its code point", "It was ^^31^^37 faster.\n"),
    ("as a Roman numeral", "It was \\romannumeral17 faster.\n"),
    ("as a counter", "\\setcounter{page}{17}It was \\thepage.\n"),
    ("by another meaning of the claim's command", "\\let\\claim\\published\n"),
    ("from a file that is no source", "\\input{results.txt}\n"),
    ("from a file outside of the paper", "\\input{../build/x}\n"),
    ("as a picture", "\\includegraphics{chart.png}\n"),
    ("from a style elsewhere", "\\usepackage{../speedup}\n"),
    ("as a figure drawn elsewhere", "\\kitfigure{../../chart}{fig:a}{Faster.}\n"),
    ("read backwards", f"It was \u202e\\claim{{{CLAIM}}}\u202c.\n"),
)
_MARKDOWN = (
    ("as an entity", "NUM01", "It was &#x31;&#x37; percent faster."),
    ("as an entity of a fraction", "NUM01", "It was &frac12; faster."),
    ("between underscores", "NUM01", "It was _17_ percent faster."),
    ("as a picture", "TEXT01", "![chart](chart.svg)"),
    ("as a picture in HTML", "TEXT01", "<img src=chart.svg>"),
    ("with a link elsewhere on the page", "CLAIM01", f"It was [one][c].\n\n[c]: claim:{CLAIM}"),
)
_README = (
    ("a percentage", "NUM01", "It was 17 % faster.\n"),
    ("a factor", "NUM01", "It was 2.5 times faster.\n"),
    ("a rate", "NUM01", "It gave 250 tok/s.\n"),
    ("a link in angle brackets", "CLAIM01", f"It gave [9.9](<claim:{CLAIM}>).\n"),
    ("a link in HTML", "CLAIM01", f'It gave <a href="claim:{CLAIM}">9.9</a>.\n'),
)
_UNREAD = (
    ("a picture with numbers", "paper/figs/chart.svg"),
    ("a style of its own", "paper/speedup.sty"),
    ("a bibliography made by hand", "paper/main.bbl"),
    ("notes beside the findings", "paper/findings/notes.txt"),
    ("a finding in a folder below", "paper/findings/more/F004.md"),
)

ALL = (
    *(Corruption(f"a number in the paper {how}", "NUM01", _more(t)) for how, t in _WORDS),
    *(Corruption(f"a number in the paper {how}", "TEXT01", _more(t)) for how, t in _CONCEALED),
    *(Corruption(f"a number in a finding {how}", c, _in_finding(t)) for how, c, t in _MARKDOWN),
    *(Corruption(f"in the README {what}", c, _file("README.md", t)) for what, c, t in _README),
    *(Corruption(f"in the paper {what}", "TEXT02", _file(name)) for what, name in _UNREAD),
    Corruption("a number in the title of a finding", "NUM01", _title),
    Corruption(
        "a number in a note of the bibliography",
        "NUM01",
        _file("paper/references.bib", "@misc{a, note = {It was 17 percent faster}, year = 2020}\n"),
    ),
    Corruption(
        "a number in a style file",
        "NUM01",
        _file("paper/claims.sty", "\\newcommand{\\speedup}[1]{17\\%}\n"),
    ),
    Corruption(
        "an allowance for a number anywhere",
        "NUM02",
        _file(
            "paper/allowed-numbers.toml",
            '[[number]]\nvalue = "17"\nplace = "*"\nphrase = "17"\nreason = "it is true"\n',
        ),
    ),
    Corruption("sources in a folder that is a link", "TEXT02", _linked_folder),
    Corruption("a generated file committed", "TEXT03", _generated_held),
    Corruption("a text among the generated ones", "TEXT04", _file("paper/generated/extra.tex")),
    Corruption("a generated text edited", "CLAIM06", _file("paper/generated/verdicts.tex")),
    Corruption(
        "bytes that are no text",
        "TEXT01",
        lambda r: (r.root / "paper" / "main.tex").write_bytes(b"It was \xff.\n"),
    ),
    Corruption("a number in a table, its last digit by one", "TABLE01", _table_digit),
    Corruption("a row of a table taken out", "TABLE01", _row_gone),
    Corruption(
        "a table deleted", "TABLE02", lambda r: (r.root / "paper/tables/run-1/goodput.tex").unlink()
    ),
    Corruption(
        "a table added", "TABLE03", lambda r: (r.root / "paper/tables/run-1/best.tex").touch()
    ),
    Corruption(
        "tables over records that do not hold",
        "TABLE04",
        lambda r: (r.run("run-1") / "seal.json").write_bytes(b""),
    ),
    Corruption(
        "a cited number by one in its last digit",
        "CLAIM02",
        _text("findings/F001.md", _last_digit_of_claim),
    ),
    Corruption(
        "a claim that nothing defines",
        "CLAIM01",
        _text("main.tex", lambda t: t.replace(CLAIM, "invented")),
    ),
    Corruption(
        "a claim of an arm that there is not",
        "CLAIM01",
        _text("main.tex", lambda t: t.replace(".draft.", ".best.")),
    ),
    Corruption(
        "claims resting on another run's seal",
        "CLAIM05",
        _text("evidence.toml", lambda t: re.sub("sha256:[0-9a-f]+", str(OTHER), t)),
    ),
    Corruption(
        "a number typed into the paper",
        "NUM01",
        _text("main.tex", lambda t: t + "It was 17 percent faster.\n"),
    ),
    Corruption("a retraction quietly undone", "FIND12", _undo_retraction),
    Corruption("a finding removed", "FIND11", lambda r: _finding("F003.md")(r).unlink()),
    Corruption("a finding's number reused", "FIND10", _reuse),
    Corruption(
        "half of a retraction taken back",
        "FIND06",
        _text("findings/F003.md", lambda t: t.replace("retracts: [F002]", "retracts: []")),
    ),
    Corruption(
        "a finding's title that steers a terminal",
        "FIND01",
        _text("findings/F001.md", lambda text: text.replace("title: ", "title: \x1b", 1)),
    ),
    Corruption("a finding without its limits", "FIND03", _text("findings/F001.md", _emptied)),
    Corruption("limits that say nothing", "FIND03", _limits("N/A.")),
    Corruption("limits that nobody sees", "FIND03", _limits("<!-- Anything about hosts. -->")),
    Corruption(
        "the section on limits commented out",
        "FIND03",
        _text("findings/F001.md", lambda t: t.replace("## What", "<!--\n## What") + "-->\n"),
    ),
    Corruption("a better run chosen for a study", "SELECT01", _better_run),
    Corruption(
        "a reason to leave a run out taken back",
        "SELECT01",
        _text("evidence.toml", lambda t: t.replace('"run-2" = "a boot failed"\n', "")),
    ),
    Corruption("a run moved to a study that nothing cites", "SELECT01", _moved_run),
    Corruption(
        "a reason that is a full stop",
        "SELECT01",
        _text("evidence.toml", lambda t: t.replace("made for other tests", ".")),
    ),
    Corruption(
        "a reason read backwards",
        "TEXT01",
        _text("evidence.toml", lambda t: t.replace("made for", "made \u202efor")),
    ),
    Corruption(
        "a reason read backwards by an escape",
        "TEXT01",
        _text("evidence.toml", lambda t: t.replace("made for", "made \\u202efor")),
    ),
    Corruption("a run of a study's plan passed over", "SELECT02", _another_run),
    Corruption("a margin widened after the data", "SELECT03", _wider_margin),
    *(
        Corruption(f"{what} after the data", "SELECT03", _after_the_run(old, new))
        for what, old, new in (
            ("another arm", '["draft"]', '["plain"]'),
            ("another window", '"c1"', '"c64"'),
            ("no measurement", _RULE[_RULE.index("[[claim.measured]]") :], ""),
        )
    ),
    Corruption(
        "evidence that is no text",
        "CLAIM05",
        lambda r: (r.root / "paper" / "evidence.toml").write_bytes(b"\xff"),
    ),
    Corruption(
        "evidence nested without end",
        "CLAIM05",
        _text("evidence.toml", lambda _: "a=" + "[" * 99999),
    ),
    Corruption(
        "a finding resting on no run here",
        "FIND05",
        _text("findings/F002.md", lambda t: re.sub("sha256:[0-9a-f]+", str(OTHER), t)),
    ),
    Corruption(
        "a finding turned into terminal output",
        "FIND07",
        _text(
            "findings/F001.md", lambda t: t.replace("provenance: record", "provenance: terminal")
        ),
    ),
    Corruption(
        "an e-mail address in the paper",
        "HYGIENE03",
        _text("main.tex", lambda t: t + "someone@lab.university.edu\n"),
    ),
)
