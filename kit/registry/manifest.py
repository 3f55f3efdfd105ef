"""Read the JSON of an image: index, platform manifest, configuration (OCI image specification 1.1).

Invariant: pure; a document that lacks what the specification requires raises FormatError, unknown
keys are allowed as the specification demands.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from records.digest import Digest
from records.errors import FormatError

INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
# As Go names systems and processors (image specification, image-index.md, "platform").
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_CUDA = "NVIDIA_REQUIRE_CUDA="


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A blob by digest and size; `platform` "" where the descriptor names none."""

    media_type: str
    digest: Digest
    size_bytes: int
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """One image for several platforms. Attestations (platform unknown/unknown) are left out."""

    manifests: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One platform's image: its configuration and its layers, compressed."""

    config: Descriptor
    layers: tuple[Descriptor, ...]

    @property
    def layers_bytes(self) -> int:
        """What a pull transfers: the compressed layers, each once."""
        return sum({layer.digest: layer.size_bytes for layer in self.layers}.values())


@dataclass(frozen=True, slots=True)
class Config:
    """`requires_cuda` is NVIDIA_REQUIRE_CUDA of the image, "" where it has none."""

    platform: str
    requires_cuda: str
    layer_count: int


def parse_index_or_manifest(data: bytes) -> Index | Manifest:
    """What a manifest endpoint answered, told apart by its own mediaType."""
    value = _object(data, "manifest")
    if value.get("schemaVersion") != 2:
        raise FormatError(f"manifest: schemaVersion {value.get('schemaVersion')!r}, want 2")
    media_type = value.get("mediaType", "")
    if media_type in INDEX_TYPES or (not media_type and "manifests" in value):
        found = (_descriptor(item, "manifests") for item in _list(value, "manifests"))
        return Index(tuple(one for one in found if one.platform != "unknown/unknown"))
    if media_type in MANIFEST_TYPES or (not media_type and "layers" in value):
        layers = tuple(_descriptor(item, "layers") for item in _list(value, "layers"))
        return Manifest(_descriptor(value.get("config"), "config"), layers)
    raise FormatError(f"manifest: media type {media_type!r} is neither an index nor an image")


def parse_config(data: bytes) -> Config:
    """The image's configuration: platform, environment, number of layers."""
    value = _object(data, "image configuration")
    platform = _platform(value, "image configuration")
    inner = value.get("config")
    env = inner.get("Env") if isinstance(inner, dict) else None
    listed = env if isinstance(env, list) else []
    required = [e for e in listed if isinstance(e, str) and e.startswith(_CUDA)]
    rootfs = value.get("rootfs")
    layers = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
    if not isinstance(layers, list):
        raise FormatError("image configuration: no rootfs.diff_ids")
    return Config(platform, required[-1].removeprefix(_CUDA) if required else "", len(layers))


def _descriptor(value: Any, where: str) -> Descriptor:
    if not isinstance(value, dict):
        raise FormatError(f"{where}: a descriptor is an object, got {type(value).__name__}")
    size, media_type, digest = (value.get(key) for key in ("size", "mediaType", "digest"))
    if not isinstance(size, int) or size < 0 or not isinstance(media_type, str):
        raise FormatError(f"{where}: a descriptor without size or mediaType")
    platform = value.get("platform")
    named = _platform(platform, where) if isinstance(platform, dict) else ""
    return Descriptor(media_type, Digest.parse(str(digest)), size, named)


def _platform(value: dict[str, Any], where: str) -> str:
    os, architecture = value.get("os"), value.get("architecture")
    if not isinstance(os, str) or not isinstance(architecture, str):
        raise FormatError(f"{where}: no os and architecture")
    if not _NAME.fullmatch(os) or not _NAME.fullmatch(architecture):
        raise FormatError(f"{where}: {f'{os}/{architecture}'[:80]!r} is no platform")
    # linux/arm64 and linux/arm64/v8 are one platform; for 32-bit arm the variant tells more.
    variant = value.get("variant")
    return (
        f"{os}/{architecture}/{variant}"
        if variant and architecture == "arm"
        else (f"{os}/{architecture}")
    )


def _list(value: dict[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    if not isinstance(found, list):
        raise FormatError(f"manifest: {key} is no list")
    return found


def _object(data: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise FormatError(f"{what}: not a JSON object")
    return value
