"""An image by its three digests, and whether what a Docker daemon shows is that image.

Invariant: pure; got and want are named in every difference. Docker's classic store calls an image
by the digest of its configuration, containerd's by that of its manifest or index (moby#44144): each
is accepted only as the locked digest of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from records.digest import Digest

PLATFORM = "linux/amd64"


@dataclass(frozen=True, slots=True)
class ImageDigests:
    """`image_id` is the digest of the configuration, `manifest` that of the platform."""

    index: Digest
    manifest: Digest
    image_id: Digest

    def differences(
        self, image: Mapping[str, Any], container: Mapping[str, Any] | None = None
    ) -> Iterator[str]:
        """What `docker inspect` says of an image, and of a container of it, that is not this."""
        known = {str(self.image_id), str(self.manifest), str(self.index)}
        got = str(image.get("Id", ""))
        if got not in known:
            yield f"image id: got {got or 'none'}, want {self.image_id}"
        digests = {str(d).rpartition("@")[2] for d in image.get("RepoDigests") or ()}
        if not digests & {str(self.index), str(self.manifest)}:
            listed = ", ".join(sorted(digests)) or "none"
            yield f"repository digest: got {listed}, want {self.index}"
        platform = f"{image.get('Os')}/{image.get('Architecture')}"
        if platform != PLATFORM:
            yield f"platform: got {platform}, want {PLATFORM}"
        if container is not None and str(container.get("Image", "")) != got:
            yield f"image of the container: got {container.get('Image')}, want {got}"
