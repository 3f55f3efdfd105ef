"""An in-toto statement on one run: the checks of the audit that it passed, over its digests.

Invariant: the statement says what the audit found and nothing more; a test that did not run is in
no list.

Statement v1 (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md) with the
predicate test-result v0.1 (https://in-toto.io/attestation/test-result/v0.1).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.reading import Run
from analysis.tables import SYNTHETIC
from records.digest import Digest
from records.journal import EVENTS_NAME
from records.seal import SEAL_NAME

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an audit found of a run: names of checks by how they came out.

    `auditor`: a digest over the auditor's sources and what it holds a run against.
    """

    passed: Sequence[str]
    warned: Sequence[str]
    failed: Sequence[str]
    auditor: Digest


def statement(run: Run, journal: Digest, seal: Digest, outcome: Outcome) -> bytes:
    """The statement as JSON, to be signed in an envelope by whoever vouches for it."""
    about = _annotations(run)
    started = run.started
    value = {
        "_type": STATEMENT,
        "subject": [
            _resource(f"{run.run_id}/{SEAL_NAME}", seal, about),
            _resource(f"{run.run_id}/{EVENTS_NAME}", journal, about),
        ],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "FAILED" if outcome.failed else "WARNED" if outcome.warned else "PASSED",
            "configuration": [
                _resource(f"plan {started.plan.id}", started.plan_digest),
                _resource("harness", started.harness_digest),
                _resource("auditor", outcome.auditor),
            ],
            "passedTests": list(outcome.passed),
            "warnedTests": list(outcome.warned),
            "failedTests": list(outcome.failed),
        },
    }
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _annotations(run: Run) -> dict[str, Any]:
    synthetic = run.started.synthetic
    return {
        "synthetic": synthetic,
        **({"warning": SYNTHETIC} if synthetic else {}),
        **({"state": run.closing} if run.closed else {}),
    }


def _resource(
    name: str, digest: Digest, annotations: dict[str, Any] | None = None
) -> dict[str, Any]:
    more = {"annotations": annotations} if annotations else {}
    return {"name": name, "digest": {"sha256": digest.hex}, **more}
