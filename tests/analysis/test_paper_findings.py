"""Findings as texts: one form, numbers that only grow, retractions that mark both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import findings
from records.digest import Digest
from records.errors import FormatError

SEAL = Digest.of(b"seal")
IDS = st.integers(1, 5000).map(lambda n: f"F{n:03d}")


def a_finding(**changes: object) -> findings.Finding:
    values = {
        "id": "F001",
        "title": "A title: with a colon",
        "status": "active",
        "retracts": (),
        "retracted_by": (),
        "provenance": "record",
        "evidence": (SEAL,),
        "defect": "",
        "body": "\ntext\n\n## What this does NOT establish\n\nmuch\n",
        **changes,
    }
    return findings.Finding(**values)  # type: ignore[arg-type]


@given(
    IDS,
    st.text(alphabet=st.characters(categories=["L", "Nd", "Zs"]), min_size=1).map(str.strip),
    st.lists(IDS, max_size=3),
    st.lists(st.binary(max_size=4).map(Digest.of), max_size=3),
    st.text(max_size=50),
)
def test_what_is_rendered_is_read_again(id_, title, retracts, evidence, body):
    if not title:
        return
    one = a_finding(
        id=id_, title=title, retracts=tuple(retracts), evidence=tuple(evidence), body=body
    )
    assert findings.parse(findings.render(one)) == one


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "withdrawn"},
        {"provenance": "memory"},
        {"id": "F1"},
        {"retracts": ("F1x",)},
        {"title": ""},
    ],
)
def test_values_that_are_none(changes):
    with pytest.raises(FormatError):
        findings.parse(findings.render(a_finding(**changes)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("---\n", ""),
        ("status: active\n", ""),
        ("status: active", "status:  active"),
        ("retracts: []", "retracts: none"),
        ("retracts: []", "retracts: [ ]"),
        ("id: F001", "id: F001\nauthor: me"),
        ("id: F001\n", "id: F001\nid: F001\n"),
        ("sha256:", "sha1:"),
    ],
)
def test_front_matter_has_one_form(old, new):
    text = findings.render(a_finding())
    assert old in text
    with pytest.raises(FormatError):
        findings.parse(text.replace(old, new, 1))


def test_the_section_is_read_up_to_the_next_heading():
    body = "\nx\n\n## What this does NOT establish\n\nthis\n\n## More\n\nthat\n"
    assert a_finding(body=body).not_established == "this"
    assert a_finding(body="\nx\n").not_established == ""


def test_numbers_only_grow():
    assert findings.next_number([]) == 1
    names = ["paper/findings/F002.md", "F011.md", "README.md", "F11.md"]
    assert findings.next_number(names) == 12


def test_a_new_finding_has_its_form_and_nothing_said_yet():
    made = findings.parse(findings.new(7, "A title", [SEAL]))
    assert (made.id, made.status, made.evidence) == ("F007", "active", (SEAL,))
    assert made.not_established == ""


def test_a_retraction_marks_the_finding_once():
    marked = findings.retracted(a_finding(), "F009")
    assert (marked.status, marked.retracted_by) == ("retracted", ("F009",))
    with pytest.raises(FormatError, match="retracted already"):
        findings.retracted(marked, "F010")
