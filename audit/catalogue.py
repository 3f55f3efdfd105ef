"""The checks that an audit runs, in this order."""

from __future__ import annotations

from audit.checks import (
    binding,
    calibration,
    chain,
    checkpoint,
    coverage,
    engine,
    events,
    history,
    hygiene,
    plan,
    seal,
    tables,
    validity,
)
from audit.finding import Check

ALL: tuple[Check, ...] = (
    chain.CHECK,
    seal.CHECK,
    checkpoint.CHECK,
    history.CHECK,
    events.CHECK,
    plan.CHECK,
    binding.CHECK,
    coverage.CHECK,
    calibration.CHECK,
    validity.CHECK,
    engine.CHECK,
    tables.CHECK,
    hygiene.CHECK,
)
