"""A block is begun only if it ends before the host goes back; one that was begun is carried on."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit.planning.plan_file import load_plan
from records import canonical
from records.decode import from_object, to_object
from records.digest import Digest
from records.job import Job
from records.journal import Journal
from records.plan import Plan, boot_order
from records.run_directory import RunDirectory, RunFileError
from records.schema import BootEnded, BootStarted, Clock, Envelope, RunEnded, RunStarted
from remote.lease import Lease
from remote.progress import Progress
from remote.run import _boots
from tests.remote.test_stop_at_any_moment import prepared

FAR = 10**6


@pytest.fixture
def plan() -> Plan:
    """Two arms, in three blocks; a boot takes 10 s by the plan."""
    plan = load_plan(Path("kit/plans/demo.toml"))
    estimates = replace(plan.estimates, boot_s=6, window_s=2)
    return replace(plan, blocks=3, estimates=estimates)


def test_a_host_that_stays_holds_every_block(plan):
    boots = boot_order(plan)
    assert Lease(plan, 0, 15).left_out(boots[0], {}, boots) == ()


def fits_until(lease: Lease, need_s: int, first: Sequence[str] = ()) -> bool:
    """Whether block 1 takes exactly so long, besides a binding of 5 s and the reserve."""
    last_s = 1000 - need_s - 5 - 15
    fits = lease.fits(1, last_s, first)
    return fits and not lease.fits(1, last_s + 1, first)


def test_by_the_plan_before_the_first_boot_then_by_the_longest_of_each_arm(plan):
    lease = Lease(plan, 1000, binding_s=5)
    assert fits_until(lease, 2 * 10)
    first, second = (arm.id for arm in plan.arms)
    for seconds in (4, 30, 8):
        lease.took(first, seconds)
    assert fits_until(lease, 2 * 30)  # of the other arm nothing is known but that
    lease.took(second, 9)
    assert fits_until(lease, 30 + 9)


def test_boots_that_fill_a_cache_come_on_top(plan):
    warm = tuple(replace(arm, cache="warm") for arm in plan.arms)
    slow = (warm[0], replace(warm[1], first_boot_s=200))
    plan = replace(plan, arms=slow, estimates=replace(plan.estimates, first_boot_s=50))
    one, other = (arm.id for arm in plan.arms)
    lease = Lease(plan, 1000, binding_s=5)
    assert fits_until(lease, 2 * 10 + 50 + 200, first=[one, other])
    lease.took_first(one, 20)
    assert fits_until(lease, 2 * 10 + 200, first=[other])
    # Of two boots of 50 s by the plan 150 s became: the other will take half as long again, too.
    lease.took_first(one, 130)
    assert fits_until(lease, 2 * 10 + 300, first=[other])


def test_a_block_with_fewer_arms_fits_where_a_whole_one_does_not(plan):
    fewer = replace(plan, arms=(plan.arms[0], replace(plan.arms[1], blocks=(1, 3))))
    lease = Lease(fewer, 1000, binding_s=5)
    at_s = 1000 - 10 - 5 - 15
    assert lease.fits(2, at_s)
    assert not lease.fits(1, at_s)


def test_the_block_and_all_after_it_are_left_out_before_its_first_boot(plan):
    boots = boot_order(plan)
    lease = Lease(plan, int(time.time()) - FAR, binding_s=0)
    second = [boot for boot in boots if boot.block >= 2]
    assert lease.left_out(second[0], {boots[0].id: 1}, second) == (2, 3)
    assert lease.left_out(second[1], {}, second[1:]) == ()
    attempted = {second[0].id: 1}
    assert lease.left_out(second[0], attempted, second) == ()


def test_a_boot_that_failed_at_once_does_not_make_the_others_short(plan):
    lease = Lease(plan, 1000, binding_s=5)
    lease.took(plan.arms[0].id, 1, "failed")
    assert fits_until(lease, 1 + 10)


def told(lease_of: Plan, *boots: tuple[str, str, int, str]) -> list[Envelope]:
    """A journal of these boots one after another: (planned, arm, seconds, outcome)."""
    clock = Clock(0, 0, "h")
    lines = [Envelope(0, 0, journal_head(lease_of))]
    t_ns = 0
    for number, (planned, arm, seconds, outcome) in enumerate(boots):
        boot = f"{planned or 'prime'}.{number}"
        begun = BootStarted(boot, planned, 1, arm, (), {}, 1, {}, clock)
        lines.append(Envelope(len(lines), t_ns, begun))
        t_ns += seconds * 1_000_000_000
        ended = BootEnded(boot, outcome, "", "", {}, {})
        lines.append(Envelope(len(lines), t_ns, ended))
    return lines


def journal_head(of: Plan) -> RunStarted:
    some = Digest.of(b"")
    return RunStarted(1, "r", True, of, of.digest, some, "3", Clock(0, 0, "h"))


def test_a_run_that_goes_on_knows_what_its_boots_took_before(plan):
    """As one that was never interrupted; how long an interrupted boot was there tells nothing."""
    one, other = (arm.id for arm in plan.arms)
    warm = tuple(replace(arm, cache="warm") for arm in plan.arms)
    plan = replace(plan, arms=warm, estimates=replace(plan.estimates, first_boot_s=50))
    unbroken, resumed = Lease(plan, 1000, binding_s=5), Lease(plan, 1000, binding_s=5)
    unbroken.took_first(one, 120)
    unbroken.took(one, 30)
    unbroken.took(other, 44, "failed")
    resumed.recall(
        told(
            plan,
            ("", one, 120, "completed"),
            ("", other, 77, "failed"),
            ("", other, 500, "interrupted"),
            ("b01-1", one, 30, "completed"),
            ("b01-2", other, 44, "failed"),
            ("b02-1", one, 900, "interrupted"),
        )
    )
    assert resumed == unbroken


def test_a_harness_that_goes_on_leaves_out_what_its_earlier_boots_say_does_not_fit(tmp_path):
    """By the plan every block fits; by the boot that the journal holds none does."""
    argv = prepared(tmp_path)
    path = tmp_path / "job.json"
    job = from_object(Job, canonical.decode(path.read_bytes()))
    job = replace(job, plan=replace(job.plan, blocks=2), ends_unix_s=int(time.time()) + 600)
    path.write_bytes(canonical.encode(to_object(job)))
    Path(job.run_directory).mkdir()
    first, second = (boot for boot in boot_order(job.plan) if boot.block == 1)
    with Journal.create(RunDirectory(Path(job.run_directory)).events) as journal:
        for line in told(
            job.plan,
            (first.id, first.arm, 10_000, "completed"),
            (second.id, second.arm, 10_000, "completed"),
        ):
            journal.append(renamed(line.event), line.t_ns)
    subprocess.run(argv, check=True, capture_output=True)
    (ended,) = (e.event for e in RunDirectory(Path(job.run_directory)).read() if is_end(e.event))
    assert (ended.completed, ended.left_out) == (2, (2,))


def test_where_no_end_is_known_the_journal_is_not_read_for_what_boots_took(plan, tmp_path):
    job = SimpleNamespace(ends_unix_s=0)
    context = SimpleNamespace(plan=plan, job=job, records=tmp_path / "none")
    assert _boots(context, Progress(), [], 0) == ()
    job.ends_unix_s = FAR
    with pytest.raises(RunFileError):
        _boots(context, Progress(), [], 0)


def renamed(event: object) -> object:
    """A boot by the name that the harness gives it."""
    if isinstance(event, BootStarted | BootEnded):
        return replace(event, boot=event.boot.rpartition(".")[0])
    return event


def is_end(event: object) -> bool:
    return isinstance(event, RunEnded)
