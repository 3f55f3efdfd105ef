"""paper/evidence.toml: which sealed runs each study's claims rest on.

Invariant: runs are named one by one, each with the digest of its seal; a run that is not named
changes no claim, however often a plan is carried out again. A run of the plan that is to stay out
of a study stands under `left_out`, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from analysis.claiming.reading import StudyRun, read_study_run
from analysis.claiming.toml_file import toml_text, toml_value
from records.digest import Digest
from records.errors import ClaimError, FormatError
from records.run_directory import RunDirectory

EVIDENCE = Path("paper") / "evidence.toml"
_KEYS = {"plan", "runs"}
_OPTIONAL = {"left_out"}


@dataclass(frozen=True, slots=True)
class Study:
    """The runs of one plan that claims rest on; `runs`: id -> digest of its seal.json.

    `left_out`: runs of the plan that they do not rest on: id -> why.
    """

    id: str
    plan: str
    runs: dict[str, Digest]
    left_out: dict[str, str] = field(default_factory=dict)


def load_evidence(root: Path) -> dict[str, Study]:
    """The studies by id; none where the project has no such file. ClaimError says what is wrong."""
    path = root / EVIDENCE
    if not path.is_file():
        return {}
    return parse_evidence(toml_text(path))


def parse_evidence(text: str) -> dict[str, Study]:
    """Read the file: `[study.<id>]` with `plan`, `[study.<id>.runs]` and, where a run of the plan
    is not used, `[study.<id>.left_out]`. ClaimError if not so."""
    value = toml_value(text, EVIDENCE)
    studies = value.pop("study", {})
    if value or not isinstance(studies, dict):
        raise ClaimError(f"{EVIDENCE}: want nothing but [study.<id>] tables")
    return {id_: _study(id_, table) for id_, table in studies.items()}


def _study(id_: str, table: object) -> Study:
    if not isinstance(table, dict) or not _KEYS <= set(table) <= _KEYS | _OPTIONAL:
        raise ClaimError(f"{EVIDENCE}: study {id_}: want plan, runs and, if need be, left_out")
    plan, runs, left_out = table["plan"], table["runs"], table.get("left_out", {})
    if not isinstance(plan, str) or not isinstance(runs, dict) or not runs:
        raise ClaimError(f"{EVIDENCE}: study {id_}: plan is a name, runs a table of at least one")
    if not isinstance(left_out, dict) or not all(
        isinstance(why, str) and why.strip() for why in left_out.values()
    ):
        raise ClaimError(f"{EVIDENCE}: study {id_}: left_out gives a reason for each run")
    if both := sorted(runs.keys() & left_out.keys()):
        raise ClaimError(f"{EVIDENCE}: study {id_}: {', '.join(both)}: left out, or not?")
    try:
        seals = {run: Digest.parse(str(seal)) for run, seal in runs.items()}
        return Study(id_, plan, seals, dict(left_out))
    except FormatError as error:
        raise ClaimError(f"{EVIDENCE}: study {id_}: {error.message}") from error


def read_study(study: Study, data: Path) -> tuple[StudyRun, ...]:
    """Verify and read the runs of a study, in order of id.

    ClaimError: a run is not there, not sealed, under another seal, of another plan, or synthetic;
    ChainError and FormatError as the records give them.
    """
    found = []
    for run_id, seal in sorted(study.runs.items()):
        directory = RunDirectory(data / run_id)
        if not directory.is_sealed:
            raise ClaimError(
                f"study {study.id}: no sealed run {run_id}", remedy=f"see {EVIDENCE} and kit status"
            )
        if directory.seal_digest != seal:
            raise ClaimError(
                f"study {study.id}: run {run_id} has the seal {directory.seal_digest}, "
                f"not {seal} as {EVIDENCE} says",
                remedy="restore the run from git",
            )
        run = read_study_run(directory)
        if run.plan.id != study.plan:
            raise ClaimError(
                f"study {study.id}: run {run_id} is of plan {run.plan.id}, not {study.plan}"
            )
        if run.started.synthetic:
            raise ClaimError(f"study {study.id}: run {run_id} is synthetic and is no evidence")
        found.append(run)
    return tuple(found)
