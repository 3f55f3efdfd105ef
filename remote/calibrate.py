"""The `calibrate` command: the calibration of a run, on this host, without a run.

Invariant: what is printed is what a run at these settings would have recorded; nothing is recorded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from records import canonical
from records.decode import to_object
from records.errors import CalibrationError
from records.plan import Calibration
from remote.calibration import Setting, calibrate_at


def parser() -> argparse.ArgumentParser:
    """The options of the calibration."""
    p = argparse.ArgumentParser(
        prog="calibrate",
        description="Measure the client against the reference server; print client.calibrated "
        "events as one line of canonical JSON, a list.",
    )
    p.add_argument("--concurrency", type=int, action="append", help="[1]; repeatable as --cpu is")
    p.add_argument("--step-gap-ms", type=int, default=20)
    p.add_argument("--requests-per-stream", type=int, default=2)
    p.add_argument("--output-tokens", type=int, default=64)
    p.add_argument("--cpu", type=int, action="append", default=[], help="for the client")
    p.add_argument("--user-stamps", action="store_true", help="as on a kernel that gives no stamps")
    p.add_argument("--bound-ns", type=int, default=0, help="exit 53 beyond this error [no bound]")
    p.add_argument("--scratch", type=Path, help="for logs and spill [a temporary directory]")
    return p


def main(argv: list[str]) -> int:
    """Calibrate and print. CalibrationError where the error is beyond `--bound-ns`."""
    args = parser().parse_args(argv)
    asked = Calibration(args.step_gap_ms, args.requests_per_stream, args.output_tokens)
    events = []
    with tempfile.TemporaryDirectory(dir=args.scratch, prefix="calibrate-") as scratch:
        setting = Setting(asked, tuple(args.cpu), Path(scratch), not args.user_stamps)
        for concurrency in args.concurrency or [1]:
            print(
                f"calibrating the client at concurrency {concurrency}", file=sys.stderr, flush=True
            )
            events.append(calibrate_at(setting, concurrency))
    sys.stdout.write(canonical.encode([to_object(event) for event in events]).decode() + "\n")
    sys.stdout.flush()
    beyond = [e for e in events if 0 < args.bound_ns < e.bound_ns]
    if beyond:
        raise CalibrationError(
            f"at concurrency {beyond[0].concurrency} stamps err by {beyond[0].bound_ns} ns, "
            f"the bound is {args.bound_ns}",
            remedy="give client and engine processors of their own, on an idle host",
        )
    return 0
