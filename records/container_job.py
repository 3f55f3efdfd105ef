"""The container of a run: what the local tool hands to the keeper on a host, beside the job.

Invariant: `request` is the body of the create call, byte for byte as it will be sent; the keeper
adds nothing to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from records.image_digests import ImageDigests


@dataclass(frozen=True, slots=True)
class ContainerJob:
    """`socket`: the daemon's; `exchange`: where harness and keeper meet, on the host.

    `seal`: the file whose presence says that the run needs no container any more.
    `registry`: where the image was pulled from, for the record.
    """

    socket: str
    name: str
    request: dict[str, Any]
    image: ImageDigests
    exchange: str
    seal: str
    registry: str
