"""images/images.lock.json: which image, by index, platform manifest and configuration digest.

Invariant: what is not resolved is null, never guessed; what is resolved is compared, never
overwritten.
"""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from kit.registry.resolve import Platform
from records.decode import from_object, to_object
from records.digest import Digest, ImageRef
from records.errors import FormatError, ImageMismatchError, UnresolvedImageError

LOCK_FORMAT = 1
LOCK_NAME = "images.lock.json"


@dataclass(frozen=True, slots=True)
class LockedPlatform:
    """One platform; null until it was asked from the registry.

    `image_id`: the digest of the configuration. `layers_bytes`: what a pull transfers.
    `requires_cuda`: NVIDIA_REQUIRE_CUDA of the configuration, "" where it has none.
    """

    manifest_digest: Digest | None = None
    image_id: Digest | None = None
    layers_bytes: int | None = None
    layer_count: int | None = None
    requires_cuda: str | None = None


@dataclass(frozen=True, slots=True)
class LockedImage:
    """One image. `released_as` is the tag it was published under: for people, and to notice moves.

    `python`: the interpreter in it that has the engine; it runs the harness too.
    """

    registry: str
    repository: str
    released_as: str
    index_digest: Digest
    resolved: bool
    platforms: dict[str, LockedPlatform]
    python: str = "python3"

    def __post_init__(self) -> None:
        ImageRef(self.registry, self.repository, self.index_digest)
        holes = [
            f"{name}.{key}"
            for name, platform in self.platforms.items()
            for key, value in to_object(platform).items()
            if value is None
        ]
        if self.resolved and (holes or not self.platforms):
            raise FormatError(f"resolved, but {holes[0] if holes else 'platforms'} is null")

    @property
    def reference(self) -> ImageRef:
        """The image by its index digest."""
        return ImageRef(self.registry, self.repository, self.index_digest)

    def platform(self, name: str) -> Platform:
        """One resolved platform. UnresolvedImageError where the lock does not know it."""
        found = self.platforms.get(name)
        if (
            found is None
            or found.manifest_digest is None
            or found.image_id is None
            or found.layers_bytes is None
            or found.layer_count is None
            or found.requires_cuda is None
        ):
            known = ", ".join(self.platforms) or "none"
            what = "is not resolved" if found else f"has no {name}, but {known}"
            raise UnresolvedImageError(
                f"{self.reference} {what} in images/{LOCK_NAME}", "kit images lock"
            )
        return Platform(
            found.manifest_digest,
            found.image_id,
            found.layers_bytes,
            found.layer_count,
            found.requires_cuda,
        )


@dataclass(frozen=True, slots=True)
class ImageLock:
    """The whole file."""

    format: int
    images: dict[str, LockedImage]

    def __post_init__(self) -> None:
        if self.format != LOCK_FORMAT:
            raise FormatError(f"image lock format {self.format}; this kit reads {LOCK_FORMAT}")

    def image(self, name: str) -> LockedImage:
        """The image of this name, or the only one where `name` is ""."""
        if not name and len(self.images) == 1:
            return next(iter(self.images.values()))
        if name not in self.images:
            near = difflib.get_close_matches(name, self.images, n=1)
            raise FormatError(
                f"no image {name!r} in images/{LOCK_NAME}; there are: {', '.join(self.images)}",
                f"write {near[0]}" if near else "kit images list",
            )
        return self.images[name]


def read_image_lock(path: Path) -> ImageLock:
    """The lock; FormatError names file and key."""
    try:
        return from_object(ImageLock, json.loads(path.read_bytes()), path.name)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file", "restore it from git") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: {error}", "restore it from git") from error


def write_image_lock(path: Path, lock: ImageLock) -> None:
    """Write the lock, whole or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(json.dumps(to_object(lock), indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def filled(image: LockedImage, found: dict[str, Platform]) -> LockedImage:
    """The image with what was found. ImageMismatchError where the lock says otherwise already."""
    require_same(image, found)
    platforms = {
        name: LockedPlatform(
            p.manifest_digest, p.image_id, p.layers_bytes, p.layer_count, p.requires_cuda
        )
        for name, p in found.items()
    }
    return replace(image, resolved=True, platforms=platforms)


def require_same(image: LockedImage, found: dict[str, Platform]) -> None:
    """ImageMismatchError names the first value that differs; null in the lock is no value."""
    for name, locked in image.platforms.items():
        if name not in found:
            raise ImageMismatchError(
                f"{image.reference}: got platforms {', '.join(found)}, want {name} among them"
            )
        want, got = to_object(locked), to_object(found[name])
        for key, value in want.items():
            if value is not None and value != got[key]:
                raise ImageMismatchError(
                    f"{image.reference} {name} {key}: got {got[key]}, want {value} (image lock)",
                    "restore images/images.lock.json from git, and ask again",
                )
    extra = [name for name in found if image.resolved and name not in image.platforms]
    if extra:
        raise ImageMismatchError(
            f"{image.reference}: got a platform {extra[0]}, want {', '.join(image.platforms)}"
        )
