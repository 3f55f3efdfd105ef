"""A warm cache that came home from one host, as files of the bundle for the next.

Invariant: its parts are those of its listing, by digest, before they are packed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kit.bundle.cut import Packed
from records.bundle import Content
from records.cache_listing import CARRIED, LISTING, CacheListing, arm_digest, read_listing
from records.digest import Digest
from records.errors import BundleDamagedError, BundleIncompleteError
from records.plan import Plan

Say = Callable[[str], None]


def cache_files(directory: Path, plans: Sequence[Plan], say: Say) -> list[Packed]:
    """The cache's listing and parts; says which arms of the plans it was filled by.

    BundleIncompleteError, BundleDamagedError: a part is not here, or has another digest.
    """
    listing = read_listing(directory)
    for part in listing.parts:
        path = directory / part.name
        try:
            with path.open("rb") as file:
                got = Digest.of_file(file)
        except FileNotFoundError as error:
            raise BundleIncompleteError(f"{path} is not here", f"carry {part.name} home") from error
        if got != part.digest:
            raise BundleDamagedError(f"{path}: got {got}, want {part.digest}", "carry it anew")
    say(
        f"cache {listing.digest} of {listing.run}: {len(listing.files)} files, "
        f"{listing.size_bytes / 1e6:.1f} MB; filled by {_told(listing, plans)}"
    )
    data = (directory / LISTING).read_bytes()
    packed = [
        Packed(Content(f"{CARRIED}/{LISTING}", len(data), Digest.of(data)), directory / LISTING)
    ]
    for part in listing.parts:
        content = Content(f"{CARRIED}/{part.name}", part.size_bytes, part.digest)
        packed.append(Packed(content, directory / part.name))
    return packed


def _told(listing: CacheListing, plans: Sequence[Plan]) -> str:
    """Which arms of each plan filled the cache; the plan is named where there are several."""
    told = []
    for plan in plans:
        warm = [arm for arm in plan.arms if arm.cache == "warm"]
        filled = ", ".join(arm.id for arm in warm if arm_digest(arm) in listing.arms)
        whose = plan.id if len(plans) > 1 else "this plan"
        told.append(filled if len(plans) == 1 and filled else f"{filled or 'no arm'} of {whose}")
    return "; ".join(told)
