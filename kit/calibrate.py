"""Calibrate the client on a host, through the very archive that a run would use there.

Invariant: nothing is recorded; the verdict uses the plan's own bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.home import Home
from kit.hosts.host import Host
from kit.run.launch import Say, bring_harness, build_harness
from records import canonical
from records.decode import from_object
from records.errors import CalibrationError, FormatError
from records.plan import Plan
from records.schema import Calibrated

_SPARE_S = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """At which concurrencies; `cpus`: the client's processors, () leaves them to the kernel."""

    concurrencies: tuple[int, ...]
    cpus: tuple[int, ...] = ()
    user_stamps: bool = False


def calibrate(home: Home, host: Host, plan: Plan, asked: Asked, say: Say) -> list[Calibrated]:
    """What the plan's calibration says of the host. CalibrationError where it cannot be had."""
    archive, digest = build_harness(home)
    say(f"harness {digest}")
    harness = bring_harness(home, host, archive)
    how = plan.calibration
    options = ["--step-gap-ms", str(how.step_gap_ms), "--output-tokens", str(how.output_tokens)]
    options += ["--requests-per-stream", str(how.requests_per_stream)]
    for cpu in asked.cpus:
        options += ["--cpu", str(cpu)]
    if asked.user_stamps:
        options.append("--user-stamps")
    # Each chunk may come half a gap late, the first one up to a whole gap (remote/calibration.py).
    longest_ms = how.requests_per_stream * (how.output_tokens + 1) * how.step_gap_ms * 3 // 2
    events = []
    for concurrency in asked.concurrencies:
        say(f"calibrating the client on {host.name} at concurrency {concurrency}")
        argv = [host.python, "-I", "-S", str(harness), "calibrate", *options]
        argv += ["--concurrency", str(concurrency)]
        done = host.run(argv, timeout_s=_SPARE_S + longest_ms // 1000)
        if done.status != 0:
            causes = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            raise CalibrationError(
                f"the calibration ended with status {done.status}: "
                f"{causes[0].removeprefix('error: ') if causes else done.stderr.strip()[-200:]}",
                remedy="correct the cause, then: kit calibrate",
            )
        events += _decoded(done.stdout)
    return events


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


def _decoded(printed: str) -> list[Calibrated]:
    try:
        values = canonical.decode(printed.strip().encode())
        return [from_object(Calibrated, value) for value in values]
    except FormatError as error:
        raise CalibrationError(
            f"the host answered what is no calibration: {error.message}",
            remedy="kit doctor looks for what speaks in between",
        ) from error
