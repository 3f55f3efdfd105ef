"""What a record says of the container that an engine ran in, read from `docker inspect`.

Invariant: pure; nothing in it names a place or a person of the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from records.image_digests import ImageDigests


def binding_facts(
    want: ImageDigests,
    image: Mapping[str, Any],
    container: Mapping[str, Any],
    version: Mapping[str, Any],
    registry: str,
) -> dict[str, Any]:
    """What a record says of the container beside its digest."""
    host = container.get("HostConfig") or {}
    driver = image.get("GraphDriver") or {}
    return {
        "index_digest": str(want.index),
        "manifest_digest": str(want.manifest),
        "image_id": str(image.get("Id")),
        "container_image": str(container.get("Image")),
        "repo_digests": sorted(str(d).rpartition("@")[2] for d in image.get("RepoDigests") or ()),
        "registry": registry,
        "docker": str(version.get("Version", "")),
        "storage": str(driver.get("Name", "containerd")),
        "gpus": "device request" if host.get("DeviceRequests") else "none",
        "runtime": str(host.get("Runtime", "")),
        "network": str(host.get("NetworkMode", "")),
        "read_only_root": bool(host.get("ReadonlyRootfs")),
        "cap_drop": [str(one) for one in host.get("CapDrop") or ()],
        "privileged": bool(host.get("Privileged")),
        "ipc": str(host.get("IpcMode", "")),
        "shm_bytes": int(host.get("ShmSize") or 0),
    }
