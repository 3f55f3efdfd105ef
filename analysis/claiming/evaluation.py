"""All claims of a project over its evidence: values where the records give them, else a reason.

Invariant: nothing is skipped in silence; a study that cannot be read is a problem of its own, and
each claim on it says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from analysis.claiming.claim import Claim, Value, evaluate
from analysis.claiming.evidence import Study, load_evidence, read_study
from analysis.claiming.reading import Reading, StudyRun
from analysis.claims import NAMED, claims_of
from records.errors import ChainError, ClaimError, ForeignDirectoryError, FormatError

_SHOWN = 6  # of the claims that begin as what was asked for


@dataclass(slots=True)
class Evaluation:
    """`values` and `problems` by claim id; `study_problems` by study, "" for the file itself.

    `runs`: the runs that the values were made of, by id.
    """

    studies: dict[str, Study] = field(default_factory=dict)
    runs: dict[str, StudyRun] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    study_problems: dict[str, str] = field(default_factory=dict)
    named: frozenset[str] = frozenset()

    def value(self, claim_id: str) -> Value:
        """The value of a claim. ClaimError: unknown, without evidence, or not computable."""
        if claim_id in self.values:
            return self.values[claim_id]
        raise ClaimError(self.why_not(claim_id), self._hint(claim_id))

    def _hint(self, claim_id: str) -> str:
        """Which claim may be meant: those that begin so, or else the one most alike."""
        lists = "kit claims lists those there are"
        if self.knows(claim_id):
            return lists
        known = list(dict.fromkeys([*self.values, *self.problems]))
        begun = [id_ for id_ in known if id_.startswith(claim_id)] if claim_id else []
        if len(begun) > 1:
            shown, more = begun[:_SHOWN], len(begun) - _SHOWN
            named = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
            return f"{named} begin so; kit claims {claim_id} lists them"
        near = begun or get_close_matches(claim_id, known, n=1)
        return f"did you mean {near[0]}? {lists}" if near else lists

    def knows(self, claim_id: str) -> bool:
        """Whether there is such a claim, with a value or without."""
        return (
            claim_id in self.values
            or claim_id in self.problems
            or claim_id.partition(".")[0] in self.study_problems
        )

    def why_not(self, claim_id: str) -> str:
        """Why a claim has no value."""
        study = claim_id.partition(".")[0]
        if claim_id in self.problems:
            return f"claim {claim_id}: {self.problems[claim_id]}"
        if study in self.study_problems:
            return f"claim {claim_id}: {self.study_problems[study]}"
        return f"no claim {claim_id!r}"


def evaluate_project(root: Path, data: Path, only: frozenset[str] = frozenset()) -> Evaluation:
    """Evaluate every claim of the project at `root` over the records at `data`.

    `only`: no others than these, where they are all that is wanted. Errors become problems.
    """
    result = Evaluation(named=frozenset(claim.id for claim in NAMED))
    try:
        result.studies.update(load_evidence(root))
    except ClaimError as error:
        result.study_problems[""] = error.message
    for claim in NAMED:
        if claim.study not in result.studies:
            result.problems[claim.id] = f"no evidence yet: no study {claim.study}"
    for study in result.studies.values():
        try:
            runs = read_study(study, data)
        except (ChainError, ClaimError, ForeignDirectoryError, FormatError) as error:
            result.study_problems[study.id] = error.message
            for claim in NAMED:
                if claim.study == study.id:
                    result.problems[claim.id] = error.message
            continue
        result.runs.update((run.run_id, run) for run in runs)
        named = [claim for claim in NAMED if claim.study == study.id]
        _evaluate(result, [*named, *claims_of(study.id, runs[0].plan)], study, runs, only)
    return result


def _evaluate(
    result: Evaluation,
    claims: Iterable[Claim],
    study: Study,
    runs: tuple[StudyRun, ...],
    only: frozenset[str],
) -> None:
    for claim in claims:
        if only and claim.id not in only:
            continue
        try:
            result.values[claim.id] = evaluate(claim, Reading(study.id, runs))
        except (ClaimError, FormatError) as error:
            result.problems[claim.id] = error.message
