"""What is left of a plan follows from the journal alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.planning.plan_file import load_plan
from records import schema
from records.errors import FormatError
from records.plan import boot_order
from remote.progress import Progress

CLOCK = schema.Clock(1, 2, "0123456789ab")


@pytest.fixture(scope="module")
def plan():
    return load_plan(Path("kit/plans/demo.toml"))


def started(boot, attempt=1):
    identity = boot.id if attempt == 1 else f"{boot.id}.{attempt}"
    return schema.BootStarted(identity, boot.id, attempt, boot.arm, (), {}, 8000, {}, CLOCK)


def ended(boot, outcome, attempt=1):
    identity = boot.id if attempt == 1 else f"{boot.id}.{attempt}"
    return schema.BootEnded(identity, outcome, "", "", {}, {})


def seen(*events):
    progress = Progress()
    for event in events:
        progress.see(event)
    return progress


def test_a_new_run_has_everything_before_it(plan):
    assert Progress().remaining(plan) == list(boot_order(plan))


def test_completed_and_failed_boots_are_not_tried_again(plan):
    first, second, *rest = boot_order(plan)
    progress = seen(
        started(first), ended(first, "completed"), started(second), ended(second, "failed")
    )
    assert progress.remaining(plan) == rest
    assert (progress.completed, progress.failed) == (1, 1)


def test_an_interrupted_boot_comes_back_as_its_next_attempt(plan):
    first = boot_order(plan)[0]
    progress = seen(started(first), ended(first, "interrupted"))
    assert progress.remaining(plan)[0] == first
    assert progress.next_attempt(first) == (f"{first.id}.2", 2)


def test_a_boot_whose_harness_died_is_open(plan):
    first = boot_order(plan)[0]
    assert seen(started(first)).open_boot == first.id


def test_no_number_of_interruptions_uses_a_boot_up(plan):
    first = boot_order(plan)[0]
    events = []
    for attempt in range(1, 8):
        events += [started(first, attempt), ended(first, "interrupted", attempt)]
    progress = seen(*events)
    assert progress.remaining(plan)[0] == first
    assert progress.next_attempt(first) == (f"{first.id}.8", 8)
    assert progress.failed == 0


def test_priming_counts_for_its_arm_only_when_it_completed(plan):
    arm = plan.arms[0].id
    prime = schema.BootStarted(f"prime-{arm}", "", 1, arm, (), {}, 8000, {}, CLOCK)
    assert seen(prime, schema.BootEnded(prime.boot, "failed", "x", "", {}, {})).primed == set()
    progress = seen(prime, schema.BootEnded(prime.boot, "completed", "", "", {}, {}))
    assert progress.primed == {arm}
    assert progress.priming_attempts == {arm: 1}
    assert progress.remaining(plan) == list(boot_order(plan))


def test_an_end_without_a_start_is_not_a_journal(plan):
    with pytest.raises(FormatError, match="without having started"):
        seen(ended(boot_order(plan)[0], "completed"))
