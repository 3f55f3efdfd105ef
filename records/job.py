"""The job: what the local tool hands to the harness on a host, as one file.

Invariant: a job adds places and digests to a plan, never a choice that belongs in the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from records.cache_listing import CacheBinding
from records.digest import Digest
from records.image_digests import ImageDigests
from records.plan import Plan, require_blocks

# What a host must be there for after its last boot, besides binding the engine again: the seal, and
# carrying home. The harness leaves out a block by it, and whoever foretells its blocks counts it.
LEASE_RESERVE_S = 15


@dataclass(frozen=True, slots=True)
class Sif:
    """An image file of Apptainer. `image`: what it was built of, `registry` where from."""

    path: str
    digest: Digest
    image: ImageDigests
    registry: str


@dataclass(frozen=True, slots=True)
class EngineOnHost:
    """The engine as installed: how to start it, and what its binding covers.

    `launcher` is the head of the command line, to which the harness adds the arm's arguments
    (for vLLM: python -m vllm.entrypoints.openai.api_server). `site_directories`: what the binding
    digest is taken over. `runtime`: "wheels" (installed
    from the lock alone), "installed" (somebody else's packages are among them), "docker" (an image,
    unmodified), "apptainer" (the same as one file: `sif`),
    or "reference" for the synthetic engine. `attestation`: with "docker", the
    directory in which the harness asks what it runs in.
    """

    runtime: str
    launcher: tuple[str, ...]
    site_directories: tuple[str, ...]
    env: dict[str, str]
    lock: str
    lock_digest: Digest
    attestation: str = ""
    sif: Sif | None = None


@dataclass(frozen=True, slots=True)
class ModelOnHost:
    """A materialised model: its directory and what its files must hash to."""

    path: str
    files: dict[str, Digest]


@dataclass(frozen=True, slots=True)
class Job:
    """One run to carry out or to continue.

    `run_directory` grows the records; `scratch` holds what may be lost (engine caches, spill
    files). `port` 0: any free one. `client_cpus`, `engine_cpus`: processors by number, empty to
    leave both to the kernel. `blocks`: those of the plan's blocks that this run is to carry out,
    empty for all. `place`: a salted name of where the host was reached, "" where it was this
    machine. `private_names`: what must not reach a record besides what the host knows of itself.
    `ends_unix_s`: when the host goes back, 0 where that is not known; no block is begun that would
    not end before. `cache`: the warm cache that was there before the run, carried from
    another host or filled by other plans on this one, None where none was.
    """

    run_id: str
    plan: Plan
    engine: EngineOnHost
    models: dict[str, ModelOnHost]
    run_directory: str
    scratch: str
    host_salt: str
    port: int = 0
    client_cpus: tuple[int, ...] = ()
    engine_cpus: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()
    place: str = ""
    private_names: tuple[str, ...] = ()
    ends_unix_s: int = 0
    cache: CacheBinding | None = None

    def __post_init__(self) -> None:
        require_blocks(self.plan, self.blocks)

    @property
    def synthetic(self) -> bool:
        """Whether the engine is the reference server, in whatever runtime."""
        return "reference" in (self.engine.runtime, self.plan.engine.name)

    @property
    def prompts_directory(self) -> str:
        """Where the plan's prompt files lie, each named by the hex digits of its digest."""
        return f"{self.scratch}/prompts"
