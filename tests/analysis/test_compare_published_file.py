"""paper/published.toml: what it must say of each claim, and that it names what there is."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from analysis.claims import NAMED, arms_of_claims
from analysis.published import Published, load_published, parse_published
from kit.planning.plan_file import load_plan
from records.errors import ClaimError

ROOT = Path(__file__).parents[2]
HEAD = (
    '[[claim]]\nid = "a"\ntext = "t"\nfigure = "1"\nunit = "%"\nsource = "s"\n'
    'fixed = "2026-11-30"\n'
)
OF = '[claim.of]\nengine = "vllm 0.29.0"\ncapability = "8.9"\n'
MARGIN = '[claim.margin]\nrelative = "0.5"\nfixed = "2026-11-30"\nreason = "r"\n'
CV = HEAD + 'quantity = "throughput"\ntest = "cv-margin"\n'
KIND = HEAD + 'quantity = "target-backend"\ntest = "kind"\n'
ZERO = HEAD + 'quantity = "goodput.ntpot"\ntest = "zero-goodput"\n'
PLACE = '[[claim.measured]]\nplan = "p"\narms = ["a"]\n'


@pytest.mark.parametrize(
    "text", [CV + OF + MARGIN, KIND + OF + PLACE, ZERO + "thresholds_ms = [20, 75]\n" + OF]
)
def test_published_that_is(text: str) -> None:
    (one,) = parse_published(text).values()
    assert (one.bounds is not None) == (one.test == "cv-margin")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[claim]]", "missing or unknown"),
        (CV.replace('"1"', "13.92") + OF + MARGIN, "are texts"),
        (CV + OF + MARGIN.replace("0.5", "1.5"), "between 0 and 1"),
        (CV + "boots = 1\nhosts = 2\n" + OF + MARGIN, "missing or unknown: hosts"),
        (CV + OF, "a margin belongs to cv-margin"),
        (KIND + OF + MARGIN, "a margin belongs to cv-margin"),
        (CV.replace("throughput", "target-backend") + OF + MARGIN, "is of throughput"),
        (CV.replace('"cv-margin"', '"by eye"') + OF + MARGIN, "is none of"),
        (CV.replace("2026-11-30", "beforehand") + OF + MARGIN, "fixed on no day"),
        (CV + OF + MARGIN.replace("2026-11-30", "beforehand"), "fixed on no day"),
        (CV.replace('"1"', '"0"') + OF + MARGIN, "above 0"),
        (CV.replace('"1"', '"one"') + OF + MARGIN, "not a number"),
        (ZERO + OF, "first and the last"),
        (ZERO + "thresholds_ms = [75, 20]\n" + OF, "first and the last"),
        (KIND + '[claim.of]\nengine = "e"\n', "missing or unknown: capability"),
        (KIND + OF + PLACE + PLACE, "measures it twice"),
        (KIND + OF + PLACE.replace('["a"]', "[]"), "arms are names"),
        (KIND + OF + "[claim.decided]\nspec_tokens = 4\n", "names of decisions"),
        ((KIND + OF) * 2, "is there twice"),
        ("claim = 1", "want nothing but"),
        ("[claim", "paper/published.toml"),
    ],
)
def test_published_that_is_not(text: str, said: str) -> None:
    with pytest.raises(ClaimError, match=re.escape(said)):
        parse_published(text)


@pytest.fixture(scope="module")
def published() -> dict[str, Published]:
    return load_published(ROOT)


def test_every_place_is_in_its_plan(published: dict[str, Published]) -> None:
    for claim in published.values():
        assert claim.measured, claim.id
        for place in claim.measured:
            plan = load_plan(ROOT / "kit" / "plans" / f"{place.plan}.toml")
            assert set(place.arms) <= {arm.id for arm in plan.arms}, (claim.id, place)
            assert place.window in ("", *plan.window_ids)
            assert (place.window == "") == (claim.test == "kind")


def test_the_places_are_those_of_the_claims_of_this_kit(published: dict[str, Published]) -> None:
    """`kit claims` and `kit compare` speak of the same arms and the same window."""
    plan = load_plan(ROOT / "kit" / "plans" / "l4-confounds.toml")
    arms = arms_of_claims(plan)
    named = [claim for claim in NAMED if claim.study == plan.id]
    assert {claim.id for claim in named} == set(published)
    for claim in named:
        (place,) = [p for p in published[claim.id].measured if p.plan == claim.study]
        assert set(place.arms) == set(arms[claim.id])
        assert isinstance(claim.function, partial)
        assert place.window in ("", claim.function.args[-1])
