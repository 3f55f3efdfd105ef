"""The client on itself, over all its workers.

Invariant: planned = completed + failed + cancelled (ClientReport holds it); nothing is averaged
over workers: the busiest, the latest and the sum are what matters.
"""

from __future__ import annotations

from collections.abc import Sequence

from records.measurement import ClientReport
from remote.client.histogram import Histogram
from remote.client.worker import Account


def combine(accounts: Sequence[Account]) -> ClientReport:
    """One report of the workers' accounts."""
    tallies = [account.tally for account in accounts]
    lag, late = Histogram(), Histogram()
    for tally in tallies:
        lag.merge(tally.lag)
        late.merge(tally.late)
    completed = sum(tally.completed for tally in tallies)
    failed = sum(tally.failed for tally in tallies)
    cancelled = sum(tally.cancelled for tally in tallies)
    # One read without a kernel stamp makes the window one of user stamps: the weakest bound holds.
    kernel = lag.total > 0 and not any(tally.unstamped for tally in tallies)
    low = min(tally.offset_low_ns for tally in tallies)
    high = max(tally.offset_high_ns for tally in tallies)
    return ClientReport(
        stamps="kernel" if kernel else "user",
        workers=len(accounts),
        planned=completed + failed + cancelled,
        completed=completed,
        failed=failed,
        cancelled=cancelled,
        chunks=sum(tally.chunks for tally in tallies),
        merged=sum(tally.merged for tally in tallies),
        wall_ns=max(account.wall_ns for account in accounts),
        lag_p50_ns=lag.percentile_ns(50) if kernel else -1,
        lag_p99_ns=lag.percentile_ns(99) if kernel else -1,
        lag_max_ns=lag.max_ns if kernel else -1,
        late_send_p99_ns=late.percentile_ns(99),
        busiest_cpu_ppm=max(a.cpu_ns * 1_000_000 // max(a.wall_ns, 1) for a in accounts),
        cpu_ns=sum(account.cpu_ns for account in accounts),
        clock_step_ns=high - low,
        received_bytes=sum(tally.received_bytes for tally in tallies),
        peak_rss_bytes=sum(account.peak_rss_bytes for account in accounts),
    )
