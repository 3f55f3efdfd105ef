"""Walk an image from its index to its platform manifests and configurations.

Invariant: each step asks for a digest that the step before named, so the index digest alone decides
what is found; a registry can fail to answer, but not to tell the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

from kit.registry.client import Registry
from kit.registry.manifest import Descriptor, Index, Manifest, parse_config, parse_index_or_manifest
from records.digest import Digest
from records.errors import ImageMismatchError, RegistryError


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform of an image. `image_id` is the digest of its configuration.

    `layers_bytes`: the compressed layers; `requires_cuda`: NVIDIA_REQUIRE_CUDA as it stands there.
    """

    manifest_digest: Digest
    image_id: Digest
    layers_bytes: int
    layer_count: int
    requires_cuda: str


def resolve(registry: Registry, repository: str, index: Digest) -> dict[str, Platform]:
    """Every platform under the index digest, in the index's order.

    The digest of an image for one platform is resolved too: it is then its own manifest.
    """
    what = f"{registry.name}/{repository}@{index}"
    found = parse_index_or_manifest(registry.manifest(repository, index).data)
    if isinstance(found, Manifest):
        name, platform = _platform(registry, repository, index, found)
        return {name: platform}
    platforms: dict[str, Platform] = {}
    for entry in found.manifests:
        manifest = _manifest(registry, repository, entry, what)
        name, platform = _platform(registry, repository, entry.digest, manifest)
        if entry.platform and entry.platform != name:
            raise ImageMismatchError(
                f"{what}: the index names {entry.digest} for {entry.platform}, "
                f"its configuration says {name}",
                "do not use this image: its index does not say what it holds",
            )
        # Of several for one platform Docker takes the first: containerd, core/images/image.go.
        platforms.setdefault(name, platform)
    if not platforms:
        raise RegistryError(f"{what}: the index names no platform")
    return platforms


def _manifest(registry: Registry, repository: str, entry: Descriptor, what: str) -> Manifest:
    content = registry.manifest(repository, entry.digest)
    if len(content.data) != entry.size_bytes:
        raise ImageMismatchError(
            f"{what}: manifest {entry.digest} has {len(content.data)} bytes, "
            f"its descriptor says {entry.size_bytes}"
        )
    found = parse_index_or_manifest(content.data)
    if isinstance(found, Index):
        raise RegistryError(f"{what}: {entry.digest} is an index in an index")
    return found


def _platform(
    registry: Registry, repository: str, digest: Digest, manifest: Manifest
) -> tuple[str, Platform]:
    config = parse_config(registry.blob(repository, manifest.config).data)
    if config.layer_count != len(manifest.layers):
        raise ImageMismatchError(
            f"{registry.name}/{repository}@{digest}: {len(manifest.layers)} layers, "
            f"its configuration lists {config.layer_count}"
        )
    return config.platform, Platform(
        digest,
        manifest.config.digest,
        manifest.layers_bytes,
        len(manifest.layers),
        config.requires_cuda,
    )
