"""Synthetic runs and real ones never share a table, a figure, an export or a report."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.reading import Run
from records.errors import FormatError


def require_one_kind(runs: Sequence[Run]) -> None:
    """FormatError when some of the runs are synthetic and others are not."""
    kinds = {run.started.synthetic for run in runs}
    if len(kinds) > 1:
        synthetic = ", ".join(r.run_id for r in runs if r.started.synthetic)
        raise FormatError(
            f"synthetic runs ({synthetic}) cannot be analysed together with real ones",
            remedy="name either kind alone",
        )
