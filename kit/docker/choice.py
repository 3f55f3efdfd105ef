"""Which image a run is to use, from the lock, and from which registry it comes.

Invariant: only a resolved image can be chosen: index, platform manifest and image id are all known
before anything is pulled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kit.image_lock import LOCK_NAME, LockedImage, read_image_lock
from kit.registry.resolve import Platform
from records.digest import Digest, ImageRef
from records.image_digests import PLATFORM, ImageDigests


@dataclass(frozen=True, slots=True)
class DockerChoice:
    """An image of the lock. `registry`: where to pull, the image's own or a mirror."""

    image: LockedImage
    platform: Platform
    registry: str
    lock_name: str
    lock_digest: Digest
    platform_name: str = PLATFORM

    @property
    def reference(self) -> ImageRef:
        """What to pull: always by the index digest."""
        return ImageRef(self.registry, self.image.repository, self.image.index_digest)

    @property
    def digests(self) -> ImageDigests:
        """What the host must show."""
        platform = self.platform
        return ImageDigests(self.image.index_digest, platform.manifest_digest, platform.image_id)


def choose(images: Path, name: str, mirror: str, lock: Path | None = None) -> DockerChoice:
    """The image `name` of the lock in `images`, or its only one. UnresolvedImageError."""
    path = lock or images / LOCK_NAME
    image = read_image_lock(path).image(name)
    return DockerChoice(
        image,
        image.platform(PLATFORM),
        mirror or image.registry,
        path.name,
        Digest.of(path.read_bytes()),
    )
