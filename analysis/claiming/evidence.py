"""paper/evidence.toml: which sealed runs each study's claims rest on.

Invariant: runs are named one by one, each with the digest of its seal; a run that is not named
changes no claim, however often a plan is carried out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tomllib

from analysis.claiming.reading import StudyRun, read_study_run
from records.digest import Digest
from records.errors import ClaimError, FormatError
from records.run_directory import RunDirectory

EVIDENCE = Path("paper") / "evidence.toml"
_KEYS = {"plan", "runs"}


@dataclass(frozen=True, slots=True)
class Study:
    """The runs of one plan that claims rest on; `runs`: id -> digest of its seal.json."""

    id: str
    plan: str
    runs: dict[str, Digest]


def load_evidence(root: Path) -> dict[str, Study]:
    """The studies by id; none where the project has no such file. ClaimError says what is wrong."""
    path = root / EVIDENCE
    if not path.is_file():
        return {}
    return parse_evidence(path.read_text(encoding="utf-8"))


def parse_evidence(text: str) -> dict[str, Study]:
    """Read the file: `[study.<id>]` with `plan`, and `[study.<id>.runs]`. ClaimError if not so."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClaimError(f"{EVIDENCE}: {error}") from error
    studies = value.pop("study", {})
    if value or not isinstance(studies, dict):
        raise ClaimError(f"{EVIDENCE}: want nothing but [study.<id>] tables")
    return {id_: _study(id_, table) for id_, table in studies.items()}


def _study(id_: str, table: object) -> Study:
    if not isinstance(table, dict) or set(table) != _KEYS:
        raise ClaimError(f"{EVIDENCE}: study {id_}: want exactly plan and runs")
    plan, runs = table["plan"], table["runs"]
    if not isinstance(plan, str) or not isinstance(runs, dict) or not runs:
        raise ClaimError(f"{EVIDENCE}: study {id_}: plan is a name, runs a table of at least one")
    try:
        return Study(id_, plan, {run: Digest.parse(str(seal)) for run, seal in runs.items()})
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
