"""The plan: a frozen description of what to measure, and the order it prescribes.

Invariant: a plan decides everything that a run does except what the host and the engine are; the
order of boots follows from it alone, by a rule that any language can compute.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal

from records import canonical
from records.decode import to_object
from records.digest import Digest
from records.errors import FormatError
from records.limits import FieldError, at_least, plain_text
from records.load import Window

PLAN_FORMAT = 1
MAX_BLOCKS = 10_000
CACHES = ("cold", "warm", "none")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Engine:
    """Which engine: `lock` names the file under images/ whose digests it is held against."""

    name: str
    version: str
    lock: str

    def __post_init__(self) -> None:
        plain_text("name", self.name)
        plain_text("version", self.version)
        plain_text("lock", self.lock)
        if "/" in self.lock or self.lock.startswith("."):
            raise FieldError("lock", f"lock {self.lock!r} is not the plain name of a file")


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a host must have; `compute_capability` "0" and `gpu_memory_mib` 0: no GPU needed."""

    memory_mib: int
    disk_mib: int
    cpu_flags: tuple[str, ...]
    compute_capability: Decimal
    gpu_memory_mib: int

    def __post_init__(self) -> None:
        at_least(0, memory_mib=self.memory_mib, disk_mib=self.disk_mib)
        at_least(0, gpu_memory_mib=self.gpu_memory_mib)
        plain_text("cpu_flags", *self.cpu_flags)
        if self.compute_capability < 0:
            raise FieldError("compute_capability", "compute_capability must be at least 0")


@dataclass(frozen=True, slots=True)
class Warmup:
    """Rounds of the measured shapes before the first window: until a round logs no JIT line.

    `output_tokens`: at most so many a request; 0: as many as in the window. What compiles at a
    later step only compiles in the window, and voids it.
    """

    requests: int
    max_rounds: int
    boot_timeout_s: int
    output_tokens: int = field(default=0, metadata={"since": 2})

    def __post_init__(self) -> None:
        at_least(0, requests=self.requests, output_tokens=self.output_tokens)
        at_least(1, max_rounds=self.max_rounds, boot_timeout_s=self.boot_timeout_s)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Beyond these a window is void; `calibrated_p99_ns` bounds the client's error on this host.

    `power_cap_ppm`: how far a GPU at its power limit may lower its clock within a window, the
    lowest sampled below the highest; cards not at their limit do not count. 0, as where a plan says
    nothing: any power cap voids.
    """

    calibrated_p99_ns: int
    client_lag_p99_ns: int
    client_cpu_ppm: int
    merged_ppm: int
    steal_ppm: int
    clock_step_ns: int
    power_cap_ppm: int = field(default=0, metadata={"since": 2})

    def __post_init__(self) -> None:
        at_least(0, **{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True)
class Calibration:
    """The client against the reference server, before measuring, at the plan's concurrencies."""

    step_gap_ms: int
    requests_per_stream: int
    output_tokens: int

    def __post_init__(self) -> None:
        at_least(1, **{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True)
class Estimates:
    """Expected durations in seconds, for `kit plan show` and `kit plan cost`; they bind nothing.

    `setup_s`: what passes on a host before the first boot: staging, installation, binding.
    """

    first_boot_s: int
    boot_s: int
    window_s: int
    setup_s: int = field(default=0, metadata={"since": 2})

    def __post_init__(self) -> None:
        at_least(0, **{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True)
class Arm:
    """One engine configuration.

    `speculative_config` is the engine's own JSON option; a "model" in it names a locked model, as
    does `model`. `factors` declares in what the arms differ: two arms may be compared only in the
    factors whose values differ. `cache`: "cold" empties the compile caches before each boot, "warm"
    fills them once by an unmeasured boot, "none" declares that nothing is compiled. `blocks`: the
    blocks of the plan in which the arm has a boot, empty for all of them. `first_boot_s`: how long
    the boot that fills the caches is expected to take, where that is not what the estimates say.
    """

    id: str
    model: str
    speculative_config: str
    args: tuple[str, ...]
    env: dict[str, str]
    factors: dict[str, str]
    cache: str
    blocks: tuple[int, ...] = field(default=(), metadata={"since": 2})
    first_boot_s: int = field(default=0, metadata={"since": 2})

    def __post_init__(self) -> None:
        _check_id("arm", self.id)
        at_least(0, first_boot_s=self.first_boot_s)
        if self.blocks != tuple(sorted(set(self.blocks))) or (self.blocks and self.blocks[0] < 1):
            raise FieldError(
                "blocks", f"arm {self.id}: want blocks from 1 on, each once, ascending"
            )
        if self.cache not in CACHES:
            raise FieldError(
                "cache", f"arm {self.id}: cache {self.cache!r} is none of {', '.join(CACHES)}"
            )
        plain_text("model", self.model)
        plain_text("args", *self.args)
        plain_text("env", *self.env, *self.env.values())
        plain_text("factors", *self.factors, *self.factors.values())
        for name in self.env:
            if not name or "=" in name:
                raise FieldError("env", f"arm {self.id}: {name!r} cannot name a variable in env")
        _check_speculative(self)

    @property
    def draft_model(self) -> str:
        """The locked model that drafts, or "" where none does."""
        if not self.speculative_config:
            return ""
        return str(json.loads(self.speculative_config).get("model", ""))

    @property
    def models(self) -> tuple[str, ...]:
        """Every locked model this arm loads."""
        return (self.model, self.draft_model) if self.draft_model else (self.model,)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure: arms x blocks boots, each with the same windows."""

    format: int
    id: str
    title: str
    seed: int
    blocks: int
    engine: Engine
    requirements: Requirements
    warmup: Warmup
    calibration: Calibration
    bounds: Bounds
    estimates: Estimates
    thresholds_ms: tuple[int, ...]
    arms: tuple[Arm, ...]
    windows: tuple[Window, ...]

    def __post_init__(self) -> None:
        if self.format != PLAN_FORMAT:
            raise FieldError("format", f"plan format {self.format}; this kit reads {PLAN_FORMAT}")
        _check_id("plan", self.id)
        plain_text("title", self.title)
        if self.blocks < 1 or not self.arms or not self.windows:
            raise FieldError(
                "blocks" if self.blocks < 1 else "arms" if not self.arms else "windows",
                "a plan needs at least one block, one arm and one window",
            )
        if self.blocks > MAX_BLOCKS:
            raise FieldError("blocks", f"blocks is {self.blocks}; must be at most {MAX_BLOCKS}")
        _check_thresholds(self.thresholds_ms)
        _check_blocks(self.blocks, self.arms)
        for kind, ids in (("arm", [a.id for a in self.arms]), ("window", self.window_ids)):
            seen: set[str] = set()
            for i, one in enumerate(ids):
                _check_id(kind, one, f"{kind}s[{i}].id")
                if one in seen:
                    raise FieldError(f"{kind}s[{i}].id", f"two {kind}s are called {one!r}")
                seen.add(one)

    @property
    def window_ids(self) -> list[str]:
        """The windows of every boot, in order."""
        return [w.id for w in self.windows]

    def arm(self, arm_id: str) -> Arm:
        """The arm of this id; FormatError where there is none."""
        for arm in self.arms:
            if arm.id == arm_id:
                return arm
        raise FormatError(f"plan {self.id} has no arm {arm_id!r}")

    def arms_in(self, block: int) -> tuple[Arm, ...]:
        """The arms that have a boot in this block."""
        return tuple(arm for arm in self.arms if not arm.blocks or block in arm.blocks)

    def first_boot_s(self, arm_id: str) -> int:
        """Expected seconds of the boot that fills the arm's caches; 0 where no boot does."""
        arm = self.arm(arm_id)
        return (arm.first_boot_s or self.estimates.first_boot_s) if arm.cache == "warm" else 0

    @property
    def models(self) -> tuple[str, ...]:
        """Every locked model the plan loads, each once, in order of appearance."""
        return tuple(dict.fromkeys(m for arm in self.arms for m in arm.models))

    @property
    def digest(self) -> Digest:
        """The digest of the plan's canonical encoding."""
        return Digest.of(canonical.encode(to_object(self)))


@dataclass(frozen=True, slots=True)
class PlannedBoot:
    """One boot the plan asks for; `id` is unique in the plan."""

    id: str
    block: int
    position: int
    arm: str


def require_blocks(plan: Plan, blocks: tuple[int, ...]) -> None:
    """FormatError unless `blocks` are blocks of the plan, each once and in order."""
    if blocks != tuple(sorted({b for b in blocks if 1 <= b <= plan.blocks})):
        listed = ", ".join(str(block) for block in blocks)
        raise FormatError(
            f"blocks {listed} of plan {plan.id}: want numbers from 1 to {plan.blocks}, ascending"
        )


def boot_order(plan: Plan, blocks: tuple[int, ...] = ()) -> tuple[PlannedBoot, ...]:
    """All boots in order: randomised complete blocks (Fisher 1935; Montgomery, ch. 4).

    Within a block the arms stand in the order of SHA-256("<seed>/<block>/<arm>"), so that the
    order can be recomputed without knowing any library's random generator. An arm that names its
    blocks has no boot in others: the arms are compared within the blocks that hold them all.
    `blocks`: only the boots of these; empty for all.
    """
    boots = []
    for block in blocks or range(1, plan.blocks + 1):
        for position, arm in enumerate(
            _shuffled(plan.seed, block, [a.id for a in plan.arms_in(block)]), 1
        ):
            boots.append(PlannedBoot(f"b{block:02d}-{position}-{arm}", block, position, arm))
    return tuple(boots)


def _shuffled(seed: int, block: int, arms: Sequence[str]) -> list[str]:
    return sorted(arms, key=lambda arm: hashlib.sha256(f"{seed}/{block}/{arm}".encode()).digest())


def _check_id(kind: str, text: str, key: str = "id") -> None:
    if not _ID.fullmatch(text):
        raise FieldError(
            key, f"{kind} id {text!r}: want a-z, 0-9 and '-', at most 40, not '-' first"
        )


def _check_blocks(blocks: int, arms: tuple[Arm, ...]) -> None:
    for i, arm in enumerate(arms):
        if arm.blocks and arm.blocks[-1] > blocks:
            raise FieldError(
                f"arms[{i}].blocks", f"arm {arm.id}: block {arm.blocks[-1]} of a plan of {blocks}"
            )
    if any(not arm.blocks for arm in arms):
        return
    held = {block for arm in arms for block in arm.blocks}
    for block in range(1, blocks + 1):
        if block not in held:
            raise FieldError("arms", f"no arm has a boot in block {block}")


def _check_thresholds(thresholds_ms: tuple[int, ...]) -> None:
    if not thresholds_ms or min(thresholds_ms) < 0:
        raise FieldError("thresholds_ms", "thresholds_ms needs numbers, none below 0")
    if len(set(thresholds_ms)) < len(thresholds_ms):
        raise FieldError("thresholds_ms", "thresholds_ms names a number twice")


def _check_speculative(arm: Arm) -> None:
    if not arm.speculative_config:
        return
    where = f"arm {arm.id}: speculative_config"
    try:
        config = json.loads(arm.speculative_config)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of 5,000 digits
        raise FieldError("speculative_config", f"{where}: {error}") from error
    if not isinstance(config, dict):
        raise FieldError("speculative_config", f"{where} is not a JSON object")
    if not isinstance(config.get("model", ""), str):
        raise FieldError("speculative_config", f"{where}: model is not a string")
    plain_text("speculative_config", config.get("model", ""))
