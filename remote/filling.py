"""Which arms of a block still have to fill the warm cache.

Invariant: told from the plan, the carried cache and what the journal holds of boots that filled the
cache since it was last found gone, by nothing else.
"""

from __future__ import annotations

from collections.abc import Collection

from records.cache_listing import CacheBinding
from records.plan import Plan
from remote.compile_cache import covers
from remote.progress import Progress


def arms_to_fill(
    plan: Plan, carried: CacheBinding | None, progress: Progress, needed: Collection[str]
) -> list[str]:
    """The arms among `needed` whose caches are still to be filled, as far as it is known now.

    A carried cache need not be filled again by an arm that filled it; but one of these arms boots
    all the same, and where it compiled anew, which its log says, the cache does not fit this host.
    """
    wanting = [
        arm
        for arm in plan.arms
        if arm.cache == "warm" and arm.id in needed and arm.id not in progress.primed
    ]
    covered = [arm.id for arm in wanting if covers(carried, arm)]
    told = {
        progress.compiled.get(arm.id, "miss")
        for arm in plan.arms
        if arm.id in progress.primed and covers(carried, arm)
    }
    if not told:
        spared = covered[1:]
    elif told & {"miss", "mixed"}:
        spared = []
    else:
        spared = covered
    return [arm.id for arm in wanting if arm.id not in spared]
