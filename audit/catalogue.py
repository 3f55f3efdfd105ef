"""The checks that an audit runs, in this order."""

from __future__ import annotations

from audit.checks import (
    binding,
    calibration,
    chain,
    checkpoint,
    consistency,
    counters,
    coverage,
    engine,
    events,
    harness,
    history,
    hygiene,
    licences,
    plan,
    requests,
    seal,
    signatures,
    tables,
    timeline,
    validity,
)
from audit.finding import Check

ALL: tuple[Check, ...] = (
    chain.CHECK,
    seal.CHECK,
    checkpoint.CHECK,
    consistency.CHECK,
    history.CHECK,
    signatures.CHECK,
    events.CHECK,
    seal.EVENTS_CHECK,
    timeline.CHECK,
    requests.CHECK,
    counters.CHECK,
    plan.CHECK,
    binding.CHECK,
    coverage.CHECK,
    calibration.CHECK,
    validity.CHECK,
    engine.CHECK,
    engine.MODULES_CHECK,
    harness.CHECK,
    tables.CHECK,
    hygiene.CHECK,
    hygiene.TEXT_CHECK,
    licences.CHECK,
)
