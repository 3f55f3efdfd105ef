"""Hold the image lock against a registry: every digest walked from the index, the tag looked up.

Invariant: nothing here changes the lock; a mirror must serve the same bytes under the same digest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from kit.image_lock import LockedImage, require_same
from kit.registry import credentials
from kit.registry.client import NotAtRegistryError, Registry, base_url, is_loopback
from kit.registry.resolve import Platform, resolve
from kit.registry.transfer import Transfer, open_http
from records.digest import Digest
from records.errors import ImageMismatchError

Say = Callable[[str], None]


@contextmanager
def registry_at(name: str, environ: Mapping[str, str], say: Say) -> Iterator[Registry]:
    """A registry by name, with this user's credentials for it."""
    host = urlsplit(base_url(name)).hostname or ""
    with open_http(*([host] if is_loopback(host) else [])) as http:
        transfer = Transfer(http, time.sleep, say)
        yield Registry(name, transfer, credentials.find(name, environ))


def digest_of_tag(registry: Registry, repository: str, tag: str) -> Digest:
    """What a tag names now, hashed here."""
    return registry.manifest(repository, tag).digest


def verify(image: LockedImage, registry: Registry) -> dict[str, Platform]:
    """Walk the image at this registry and compare; what was found, by platform.

    ImageMismatchError: the tag moved, or a digest is not the locked one. At the image's own
    registry the tag must exist; a mirror may do without it.
    """
    require_tag(image, registry)
    found = resolve(registry, image.repository, image.index_digest)
    require_same(image, found)
    return found


def require_tag(image: LockedImage, registry: Registry) -> None:
    """ImageMismatchError where the tag that the image was released as names something else."""
    if not image.released_as:
        return
    try:
        got = digest_of_tag(registry, image.repository, image.released_as)
    except NotAtRegistryError:
        if registry.name == image.registry:
            raise
        return
    if got != image.index_digest:
        raise ImageMismatchError(
            f"{registry.name}/{image.repository}:{image.released_as}: "
            f"got {got}, want {image.index_digest} (image lock)",
            "the tag was moved, or another image stands under it: measure with the locked digest, "
            "or lock the new one under a new name: kit images lock NAME --add REFERENCE",
        )
