"""The quantities in which two sets of boots are compared: one number a window, and its error.

Invariant: a quantity is taken from a window's metrics under its own name; None where the window
does not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from analysis.calibration import stamp_error_ns
from analysis.claiming.leading import goodput_rate, output_rate
from analysis.claiming.reading import StudyRun
from analysis.claiming.resolution import latency_error_ns
from analysis.goodput import Goodput
from analysis.metrics import WindowMetrics
from records.plan import Plan

_NS_PER_MS = 1e6
_LATENCIES = (
    ("step-gap", "p50", "ms"),
    ("step-gap", "p95", "ms"),
    ("tpot.n-1", "p50", "ms/token"),
    ("tpot.n-k1", "p50", "ms/token"),
    ("ntpot", "p50", "ms/token"),
    ("ttft.sent", "p50", "ms"),
)
# The two between which a ranking turns (paper/published.toml, goodput.inversion).
_OBJECTIVES = ("p95-step-gap", "tpot.n-1")


@dataclass(frozen=True, slots=True)
class Quantity:
    """`latency`: the id of a latency quantity, "" for rates and lengths. `objective`: of goodput,
    quantity and threshold in ms.
    """

    id: str
    unit: str
    of: Callable[[WindowMetrics], float | None]
    latency: str = ""
    objective: tuple[str, int] | None = None


def quantities_of(plan: Plan, threshold_ms: int | None = None) -> tuple[Quantity, ...]:
    """What windows of this plan are compared in.

    Goodput at one threshold: all of them tell nearly the same again. `threshold_ms`: None for the
    one in the middle of the plan's.
    """
    ordered = sorted(plan.thresholds_ms)
    at = ordered[len(ordered) // 2] if threshold_ms is None else threshold_ms
    return (
        Quantity("throughput", "tok/s", lambda m: m.output_tokens_per_s),
        Quantity("acceptance", "tok/step", lambda m: m.acceptance.server_length),
        *[
            Quantity(f"{id_}.{point}", unit, partial(_percentile, id_, point), id_)
            for id_, point, unit in _LATENCIES
        ],
        *[
            Quantity(
                f"goodput.{name}.{at}ms", "req/s", partial(_goodput, name, at), objective=(name, at)
            )
            for name in _OBJECTIVES
        ],
    )


def client_error(
    quantity: Quantity, value: float, windows: Sequence[WindowMetrics], runs: Sequence[StudyRun]
) -> float:
    """By how much the client's stamps may bend a value of this quantity, as a share of it.

    CalibrationError where no run has a calibration at the concurrency of the windows.
    """
    if quantity.id == "acceptance":
        return 0.0
    concurrency = windows[0].concurrency
    error_ns = stamp_error_ns(
        [c for run in runs for c in run.calibrations if c.concurrency == concurrency]
    )
    if quantity.latency:
        window = windows[0]
        error = latency_error_ns(quantity.latency, error_ns, window.arm, window.window, runs)
        return error / _NS_PER_MS / value
    rate = (
        goodput_rate(windows, _objectives(quantity.objective, windows))
        if quantity.objective
        else output_rate(windows)
    )
    return max(rate.value - rate.low, rate.high - rate.value) / value


def turning(quantity: Quantity, windows: Sequence[WindowMetrics]) -> int:
    """Requests on which alone it turns, in some window, whether any meets the objective."""
    if quantity.objective is None:
        return 0
    found = _objectives(quantity.objective, windows)
    return sum(one.possibly for one in found if not one.surely)


def _percentile(id_: str, point: str, window: WindowMetrics) -> float | None:
    value: float | None = getattr(window.latency_of(id_), point)
    return value


def _goodput(name: str, threshold_ms: int, window: WindowMetrics) -> float | None:
    """None where the plan has no such threshold."""
    found = _objectives((name, threshold_ms), [window])
    return found[0].per_second if found else None


def _objectives(objective: tuple[str, int], windows: Sequence[WindowMetrics]) -> list[Goodput]:
    return [
        one
        for window in windows
        for one in window.goodput
        if (one.quantity, round(one.threshold_ms)) == objective
    ]
