"""Calibrate the client on this machine, through the very archive that a run would use.

Invariant: nothing is recorded; the verdict uses the plan's own bound.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kit.home import Home
from kit.launch import Say, build_harness
from records import canonical
from records.decode import from_object
from records.errors import CalibrationError
from records.plan import Plan
from records.schema import Calibrated


@dataclass(frozen=True, slots=True)
class Asked:
    """At which concurrencies; `cpus`: the client's processors, () leaves them to the kernel."""

    concurrencies: tuple[int, ...]
    cpus: tuple[int, ...] = ()
    user_stamps: bool = False


def calibrate(home: Home, plan: Plan, asked: Asked, say: Say) -> list[Calibrated]:
    """What the plan's calibration says of this machine. CalibrationError where it cannot be had."""
    harness, digest = build_harness(home)
    say(f"harness {digest}")
    home.path.mkdir(parents=True, exist_ok=True)
    how = plan.calibration
    argv = [sys.executable, "-I", "-S", str(harness), "calibrate", "--scratch", str(home.path)]
    argv += ["--step-gap-ms", str(how.step_gap_ms), "--output-tokens", str(how.output_tokens)]
    argv += ["--requests-per-stream", str(how.requests_per_stream)]
    for concurrency in asked.concurrencies:
        argv += ["--concurrency", str(concurrency)]
    for cpu in asked.cpus:
        argv += ["--cpu", str(cpu)]
    if asked.user_stamps:
        argv.append("--user-stamps")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None  # noqa: S101 - opened as pipes just above
        assert child.stderr is not None  # noqa: S101
        said = []
        for line in child.stderr:
            said.append(line.rstrip())
            say(said[-1])
        printed = child.stdout.read()
    if child.returncode != 0:
        cause = next((line for line in said if line.startswith("error: ")), "see above")
        raise CalibrationError(
            f"the calibration ended with status {child.returncode}: {cause}",
            remedy="correct the cause, then: kit calibrate",
        )
    return [from_object(Calibrated, value) for value in canonical.decode(printed.strip().encode())]


def concurrencies(plan: Plan) -> tuple[int, ...]:
    """Those of the plan's windows."""
    return tuple(sorted({window.load.concurrency for window in plan.windows}))


def require_within(plan: Plan, events: Sequence[Calibrated]) -> None:
    """CalibrationError unless every error is within the plan's bound."""
    bound_ns = plan.bounds.calibrated_p99_ns
    beyond = [e for e in events if e.bound_ns > bound_ns]
    if beyond:
        at = ", ".join(f"{e.bound_ns / 1e6:.3f} ms at {e.concurrency}" for e in beyond)
        raise CalibrationError(
            f"the client errs by {at}; plan {plan.id} allows {bound_ns / 1e6:.3f} ms",
            remedy="use an idle host, or give the client processors of its own: --client-cpus",
        )
