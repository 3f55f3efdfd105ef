"""Citations and numerals of texts: what counts as one, what is blanked out, what never escapes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.claiming.documents import Document, citations, documents
from analysis.claiming.numerals import (
    Allowed,
    is_allowed,
    measured_numerals,
    numerals,
    parse_allowed,
)
from records.errors import ClaimError


def tex(text: str) -> Document:
    return Document("paper/main.tex", "tex", text, scanned=True)


def markdown(text: str) -> Document:
    return Document("paper/findings/F001.md", "markdown", text, scanned=True)


def found(document: Document) -> list[str]:
    return [numeral.text for numeral in numerals(document)]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("It was 13.92 per cent.", ["13.92"]),
        ("1,000 requests in 3 blocks", ["1,000", "3"]),
        ("FP8, BF16, e4m3, p95, F001, H200", []),
        ("v0.29.0", ["29.0"]),
        ("c13.92", ["92"]),
        ("-4 and +5 and .5", ["4", "5", "5"]),
        ("x² and ½", ["²", "½"]),
        ("٣ boots", ["٣"]),
        ("12x faster", ["12"]),
        ("\\claim{a.1} and \\published{b.2}", []),
        ("\\label{sec:1} \\cite{x99} \\input{sections/2} \\\\[3pt] \\vspace{2mm}", []),
        ("as in \\cite[p. 3]{x99}", ["3"]),
        ("\\url{17}", ["17"]),
        ("\\relax17 and x17 and $x18$", ["17", "17", "18"]),
        ("\\begin{tabular}{l}17 \\textbf{x}", ["17"]),
        ("十七, ⑰, Ⅻ", ["十", "七", "⑰", "Ⅻ"]),
        ("seventeen percent, twenty-five\\,\\% or so", ["seventeen"]),
        ("one hundred and five ms", ["one hundred and five"]),
        ("It was twice as fast, two cores", ["twice"]),
        ("a third of the boots, in seventeen\npercent", ["seventeen"]),
        ("It was tenfold, a hundredfold", ["tenfold", "hundredfold"]),
        (
            "orders of magnitude, an order\nof magnitude",
            ["orders of magnitude", "order of magnitude"],
        ),
        ("a third slower, three quarters as fast, a third arm", ["third", "quarters"]),
        ("F99 tok/s, FP42 tok/s, H2000\ntok/s on H200", ["99", "42", "2000"]),
        ("p95 of F001 in FP8\n\nms are units, a twofold manifold", ["twofold"]),
        ("\\begin{tabular}{p{3cm}r} 7", ["7"]),
        ("text % 99 in a comment", []),
        ("100\\% here", ["100"]),
        ("\\textbf{13.92}", ["13.92"]),
    ],
)
def test_numerals_in_tex(text, want):
    assert found(tex(text)) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("[13.92 %](claim:a.b) of 12", ["12"]),
        ("[page 3](https://example.org/4)", ["3"]),
        ("---\nid: F001\nevidence: [sha256:12]\n---\nbody 5", ["5"]),
        ("`5` in code", ["5"]),
        ("[13.92](claim: a)", ["13.92"]),
        ("&#x31;&#55; and &frac12;", ["17", "½"]),
        ("_17_ and **18**", ["17", "18"]),
        ("---\nid: F001\ntitle: It was 17 % faster\n---\nbody", ["17"]),
    ],
)
def test_numerals_in_findings(text, want):
    assert found(markdown(text)) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("17 % faster, 2.5 times faster, 3x", ["17", "2.5", "3"]),
        ("250 tok/s after 11 s on port 8000, 90 MB", ["250"]),
        ("[1.117](claim:a.b) times the throughput", []),
    ],
)
def test_measured_numbers_of_a_text_that_is_not_scanned(text, want):
    document = Document("README.md", "markdown", text, scanned=False)
    assert [numeral.text for numeral in measured_numerals(document)] == want


@given(st.text(alphabet="abc (){}[]\\%.`-\n", max_size=30), st.integers(0, 10**6))
def test_a_number_between_blanks_is_seen_unless_it_is_not_printed(around, value):
    document = markdown(f"{around}\n {value} \n")
    assert str(value) in found(document)


def test_citations_and_their_places():
    one = list(citations(markdown("a\n[1 %](claim:x.y) and [2](published:z)\n")))
    assert [(c.line, c.scheme, c.id, c.shown) for c in one] == [
        (2, "claim", "x.y", "1 %"),
        (2, "published", "z", "2"),
    ]
    two = list(citations(tex("\\claim{a} % \\claim{b}\n\\published{c}")))
    assert [(c.line, c.scheme, c.id) for c in two] == [(1, "claim", "a"), (2, "published", "c")]


@pytest.mark.parametrize("text", ["\\claim a", "\\claim{a\n}", "\\claim", "\\published {a}"])
def test_a_torn_citation_in_tex_cites_nothing(text):
    assert [c.id for c in citations(tex(text))] == [""]


@pytest.mark.parametrize(
    "text",
    [
        "[1\n](claim:a)",
        "(claim:a)",
        "[1](claim:a b)",
        "[1][a]\n\n[a]: claim:a",
        "[1](<claim:a>)",
        '<a href="claim:a">1</a>',
    ],
)
def test_a_torn_citation_in_markdown_cites_nothing(text):
    assert [c.id for c in citations(markdown(text))] == [""]


def test_longer_commands_are_not_citations():
    assert list(citations(tex("\\claims{a} \\claimed"))) == []


def test_the_readme_may_show_how_it_is_done(tmp_path):
    (tmp_path / "README.md").write_text("write `[1](claim:id)`, 12 times\n")
    (readme,) = documents(tmp_path)
    assert list(citations(readme)) == []
    assert not readme.scanned


def test_generated_and_derived_sources_are_not_scanned(tmp_path):
    for name in ("main.tex", "generated/claims.tex", "tables/run/by-boot.tex", "sections/a.tex"):
        path = tmp_path / "paper" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("5")
    assert [d.name for d in documents(tmp_path)] == ["paper/main.tex", "paper/sections/a.tex"]


def test_an_allowance_covers_its_phrase_only():
    entry = Allowed("8", "paper/*.tex", "at 8 streams", "the plan's concurrency")
    inside, outside = numerals(tex("at 8 streams, 8 boots"))
    assert is_allowed(inside, entry)
    assert not is_allowed(outside, entry)
    (elsewhere,) = numerals(markdown("at 8 streams"))
    assert not is_allowed(elsewhere, entry)


@pytest.mark.parametrize(
    "text",
    [
        '[[number]]\nvalue = "1"\nplace = "a"\nphrase = "1"',
        '[[number]]\nvalue = "1"\nplace = "a"\nphrase = "1"\nreason = ""',
        '[[number]]\nvalue = 1\nplace = "a"\nphrase = "1"\nreason = "r"',
        '[[number]]\nvalue = "1"\nplace = "a"\nphrase = "one"\nreason = "r"',
        "[other]",
        "number = 3",
    ],
)
def test_an_allowance_without_a_reason_is_none(text):
    with pytest.raises(ClaimError):
        parse_allowed(text)
