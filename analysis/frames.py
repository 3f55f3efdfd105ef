"""Runs as pandas frames: runs, boots, windows, requests.

Invariant: synthetic runs and real ones never share a frame; void windows and boots that failed are
rows like any other, flagged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.reading import Boot, MeasuredWindow, Run
from records.errors import FormatError
from records.measurement import OUTCOMES, ClientReport
from records.schema import Counters

_NS_PER_S = 1e9
_REPORT = tuple(ClientReport.__dataclass_fields__)
_COUNTERS = tuple(Counters.__dataclass_fields__)


def runs_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a run. FormatError when synthetic and real runs are mixed."""
    require_one_kind(runs)
    return pd.DataFrame([_run_row(run) for run in runs])


def boots_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row an attempt at a boot; `block` and `position` are 0 for a boot outside the plan."""
    require_one_kind(runs)
    return pd.DataFrame([_boot_row(run, boot) for run in runs for boot in run.boots])


def windows_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a window; report and counters are missing where the window never ended."""
    require_one_kind(runs)
    rows = [
        _window_row(run, boot, window)
        for run in runs
        for boot in run.boots
        for window in boot.windows
    ]
    return pd.DataFrame(rows).convert_dtypes()


def requests_frame(run: Run, boot: Boot, measured: MeasuredWindow) -> pd.DataFrame:
    """One row a request of one window; times in ns from the start of the window or of sending."""
    requests = measured.requests
    frame = pd.DataFrame(requests.scalars)
    frame.insert(0, "window", measured.window.id)
    frame.insert(0, "boot", boot.started.boot)
    frame.insert(0, "run", run.run_id)
    frame["outcome"] = [OUTCOMES[o] for o in requests.outcome]
    frame["ramp"] = requests.ramp
    frame["chunks"] = requests.chunks.chunk_counts()
    frame["tokens"] = requests.chunks.output_tokens()
    frame["merged"] = requests.merged
    frame["finish_reason"] = requests.finish_reason
    frame["error"] = requests.error
    return frame


def require_one_kind(runs: Sequence[Run]) -> None:
    """FormatError when some of the runs are synthetic and others are not."""
    kinds = {run.started.synthetic for run in runs}
    if len(kinds) > 1:
        synthetic = ", ".join(r.run_id for r in runs if r.started.synthetic)
        raise FormatError(
            f"synthetic runs ({synthetic}) cannot be analysed together with real ones",
            remedy="name either kind alone",
        )


def _run_row(run: Run) -> dict[str, Any]:
    started = run.started
    return {
        "run": run.run_id,
        "synthetic": started.synthetic,
        "sealed": run.sealed,
        "plan": started.plan.id,
        "plan_digest": str(started.plan_digest),
        "harness_digest": str(started.harness_digest),
        "host": run.host_id,
        "engine": str(run.engines[0].digest) if run.engines else "",
        "resumed": len(run.resumed),
        "completed": run.ended.completed if run.ended else 0,
        "failed": run.ended.failed if run.ended else 0,
    }


def _boot_row(run: Run, boot: Boot) -> dict[str, Any]:
    started, planned = boot.started, boot.planned
    return {
        "run": run.run_id,
        "boot": started.boot,
        "planned": started.planned,
        "attempt": started.attempt,
        "arm": started.arm,
        "block": planned.block if planned else 0,
        "position": planned.position if planned else 0,
        "outcome": boot.outcome,
        "cause": boot.ended.cause if boot.ended else "",
        "healthy_s": boot.healthy.after_ns / _NS_PER_S if boot.healthy else None,
        "warm_up_rounds": len(boot.warmed.jit_lines) if boot.warmed else 0,
        "quiet": boot.warmed.quiet if boot.warmed else False,
        "cache": run.started.plan.arm(started.arm).cache,
        "windows": len(boot.windows),
        "void_windows": sum(1 for w in boot.windows if w.void),
    }


def _window_row(run: Run, boot: Boot, measured: MeasuredWindow) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": run.run_id,
        "boot": boot.started.boot,
        "arm": boot.started.arm,
        "window": measured.window.id,
        "concurrency": measured.window.load.concurrency,
        "outcome": boot.outcome,
        "void": bool(measured.void),
        "void_reasons": "; ".join(measured.void),
        "usable": measured in boot.usable_windows,
        "requests": len(measured.requests),
        "ramp": int(measured.requests.ramp.sum()),
    }
    ended = measured.ended
    row |= {name: getattr(ended.report, name) if ended else None for name in _REPORT}
    row |= {
        f"server_{name}": getattr(ended.counters, name) if ended else None for name in _COUNTERS
    }
    row["steal_ppm"] = ended.steal_ppm if ended else None
    return row
