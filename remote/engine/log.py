"""Read from the log of vLLM 0.29.0 what the engine decided.

Invariant: a decision the engine did not log is one of the declared states below, never a guess and
never None. The engine logs most decisions once per distinct text (`info_once`), so a draft model
that decides as the target did leaves no line of its own. The wording is that of vLLM 0.29.0:
platforms/cuda.py, config/{vllm,compilation}.py, compilation/backends.py, utils/jit_monitor.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from remote.engine.death import cause_of_death, last_lines
from remote.engine.lines import LogLine, split
from remote.engine.redact import redact
from remote.engine.tail import Increment, LogTail

__all__ = [
    "Increment",
    "LogTail",
    "cause_of_death",
    "jit_lines",
    "last_lines",
    "parse",
    "redact",
]

UNLOGGED = "unlogged"
SAME_OR_UNLOGGED = "same or unlogged"
NO_DRAFT = "no draft model"
AUTOMATIC = "automatic"
PINNED = "pinned"
# More than one backend for one model: layers of different kinds, or a marker line that is missing.
SEVERAL = "several: "

# speculative methods without a model of their own (SpeculativeConfig.__repr__ in vLLM 0.29.0)
_MODEL_FREE = ("ngram", "suffix", "extract_hidden_states", "custom_class", "none")

_AUTOMATIC = re.compile(r"Using (\w+) attention backend out of potential backends: \[([^\]]*)\]")
_PINNED = re.compile(r"Using (?:AttentionBackendEnum\.)?([A-Z][A-Z0-9_]+) backend\.$")
_FLASH = re.compile(r"Using FlashAttention version (\S+)")
_RESOLVED_QUERY = re.compile(r"FlashInfer resolved query dtypes: (.*)")
_VERSION = re.compile(r"Initializing a V1 LLM engine \(v([^)]+)\)")
_BANNER = re.compile(r"\bversion (\d\S*)")
_SPECULATIVE = re.compile(
    r"speculative_config=(?:SpeculativeConfig\(method='?([^',]+)'?, model='?([^',)]*)'?, "
    r"num_spec_tokens=(\d+)\)|None)"
)
_KV_DTYPE = re.compile(r"\bkv_cache_dtype=([^,\s]+)")
_EAGER = re.compile(r"\benforce_eager=(True|False)")
_GRAPH_MODE = re.compile(r"'cudagraph_mode': (?:<CUDAGraphMode\.(\w+):|(None))")
_DOWNGRADE = re.compile(r"setting cudagraph_?\s?mode(?:=| to )(\w+)", re.IGNORECASE)
_DRAFT_ARGS = re.compile(r"'speculative_config': (\{[^{}]*\})")
_DRAFT_KV = re.compile(r"'kv_cache_dtype': '([^']+)'")
_KV_TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
_KV_LAYOUT = re.compile(r"Using (\w+) KV cache layout")
_RUNNER_FALLBACK = re.compile(r"using the V1 model runner instead|Defaulting to V1 model runner")
_CACHE_DIR = re.compile(r"Using cache directory: \S*?/([0-9a-f]+)/rank_\S*?/(\w+) for vLLM's")
_AOT = re.compile(
    r"(saved AOT compiled function to|Directly load AOT compilation from path) \S*?"
    r"torch_aot_compile/([0-9a-f]+)/"
)
_GRAPH_HIT = re.compile(r"Directly load the compiled graph\(s\) for compile range")
_GRAPH_MISS = re.compile(r"Compiling a graph for compile range")
_NO_COMPILE = re.compile(r"Enforce eager set, disabling torch\.compile")
_STALE = re.compile(r"Compiling model again due to a load failure")
_INIT = re.compile(r"init engine \([^)]*\) took ([\d.]+) s(?: \(compilation: ([\d.]+) s)?")
_JIT = re.compile(
    r"(?P<maker>\w+) (?:kernel )?JIT compilation during inference: (?P<kernel>[^\s(]+)"
)
_AUTOTUNED = re.compile(r"Triton autotuning for function (?P<kernel>\w+)")
_READY = re.compile(r"Application startup complete\.")
_SERVING = re.compile(r"Starting vLLM server on (\S+)")


@dataclass(frozen=True, slots=True)
class ModelDecisions:
    """What was decided for one model. Every string may be one of the declared states."""

    backend: str
    chosen: str
    potential_backends: tuple[str, ...]
    flash_attention_version: str
    kv_cache_dtype: str


@dataclass(frozen=True, slots=True)
class Downgrade:
    """A change of the CUDA-graph mode after the configuration was printed, with its reason."""

    to: str
    reason: str
    line: int


@dataclass(frozen=True, slots=True)
class CompileCache:
    """torch.compile's cache: `state` is hit, miss, mixed, disabled or unlogged."""

    state: str
    directory_hashes: tuple[str, ...]
    aot_hashes: tuple[str, ...]
    compile_ms: int
    stale: bool


@dataclass(frozen=True, slots=True)
class JitLine:
    """A kernel compiled while serving: which compiler, which kernel, on which line of the log."""

    line: int
    maker: str
    kernel: str


@dataclass(frozen=True, slots=True)
class EngineDecisions:
    """Everything read from one boot's log. `*_ms` and counts are -1 where none was logged."""

    version: str
    target: ModelDecisions
    draft: ModelDecisions
    spec_method: str
    spec_tokens: int
    cudagraph_initial: str
    cudagraph_effective: str
    cudagraph_downgrades: tuple[Downgrade, ...]
    enforce_eager: str
    kv_cache_tokens: int
    kv_layout: str
    model_runner: str
    model_runner_reason: str
    flashinfer_query_dtypes: tuple[str, ...]
    compile_cache: CompileCache
    init_ms: int
    jit: tuple[JitLine, ...]
    serving_on: str
    ready: bool


def parse(log: bytes | str) -> EngineDecisions:
    """Read a whole log. Errors: none; what is not there is a declared state."""
    lines = split(log)
    config = _message(lines, _VERSION)
    method, spec_tokens = _speculation(config)
    target_lines, draft_lines = _phases(lines)
    target = _target(target_lines, _first(_KV_DTYPE, config))
    mode = _GRAPH_MODE.search(config)
    initial = (mode[1] or mode[2]) if mode else UNLOGGED
    downgrades = _downgrades(lines)
    runner, runner_reason = _runner(lines)
    init = _INIT.search(_message(lines, _INIT))
    return EngineDecisions(
        version=_first(_VERSION, config) if config else _banner(lines),
        target=target,
        draft=_draft(draft_lines, target, method, _draft_kv(lines)),
        spec_method=method,
        spec_tokens=spec_tokens,
        cudagraph_initial=initial,
        cudagraph_effective=downgrades[-1].to if downgrades else initial,
        cudagraph_downgrades=downgrades,
        enforce_eager=_first(_EAGER, config).lower(),
        kv_cache_tokens=_count(_first(_KV_TOKENS, _message(lines, _KV_TOKENS))),
        kv_layout=_first(_KV_LAYOUT, _message(lines, _KV_LAYOUT)),
        model_runner=runner,
        model_runner_reason=runner_reason,
        flashinfer_query_dtypes=_distinct(_all(_RESOLVED_QUERY, lines)),
        compile_cache=_compile_cache(lines, init[2] if init else None),
        init_ms=_ms(init[1] if init else None),
        jit=_jit(lines),
        serving_on=_first(_SERVING, _message(lines, _SERVING)),
        ready=any(_READY.search(line.message) for line in lines),
    )


def jit_lines(text: bytes | str, first_number: int = 1) -> tuple[JitLine, ...]:
    """The kernels compiled while serving, in this part of a log that starts at `first_number`."""
    return _jit(split(text, first_number))


def _jit(lines: Iterable[LogLine]) -> tuple[JitLine, ...]:
    found = []
    for line in lines:
        if match := _JIT.match(line.message):
            found.append(JitLine(line.number, match["maker"], match["kernel"].rstrip(".")))
        elif match := _AUTOTUNED.search(line.message):
            found.append(JitLine(line.number, "Triton autotuner", match["kernel"]))
    return tuple(found)


def _phases(lines: Sequence[LogLine]) -> tuple[list[LogLine], list[LogLine]]:
    """Lines before and after each process starts to load the draft model."""
    target: list[LogLine] = []
    draft: list[LogLine] = []
    drafting: set[int] = set()
    for line in lines:
        if line.message.startswith("Loading drafter model"):
            drafting.add(line.pid)
        (draft if line.pid in drafting else target).append(line)
    return target, draft


def _backends(lines: Iterable[LogLine]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Each distinct (backend, how chosen, potential backends), in order."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for line in lines:
        if match := _AUTOMATIC.search(line.message):
            names = tuple(n.strip().strip("'") for n in match[2].split(",") if n.strip())
            choice = (match[1], AUTOMATIC, names)
        # Other parts say "Using X backend." too; the attention choice is the platform's.
        elif (match := _PINNED.match(line.message)) and line.source.startswith(
            ("cuda.py:", "cpu.py:", "rocm.py:", "xpu.py:")
        ):
            choice = (match[1], PINNED, ())
        else:
            continue
        if choice not in found:
            found.append(choice)
    return found


def _decide(lines: Sequence[LogLine], missing: str, kv_dtype: str) -> ModelDecisions:
    chosen = _backends(lines)
    versions = _distinct(_all(_FLASH, lines))
    backend, how = missing, missing
    potential: tuple[str, ...] = ()
    if len(chosen) == 1:
        backend, how, potential = chosen[0]
    elif chosen:
        backend = SEVERAL + ", ".join(c[0] for c in chosen)
        how = SEVERAL + ", ".join(c[1] for c in chosen)
    version = versions[0] if len(versions) == 1 else SEVERAL + ", ".join(versions)
    return ModelDecisions(backend, how, potential, version if versions else missing, kv_dtype)


def _target(lines: Sequence[LogLine], kv_dtype: str) -> ModelDecisions:
    return _decide(lines, UNLOGGED, kv_dtype)


def _draft(
    lines: Sequence[LogLine], target: ModelDecisions, method: str, kv_dtype: str
) -> ModelDecisions:
    if method in _MODEL_FREE:
        return ModelDecisions(NO_DRAFT, NO_DRAFT, (), NO_DRAFT, NO_DRAFT)
    missing = UNLOGGED if target.backend == UNLOGGED else SAME_OR_UNLOGGED
    return _decide(lines, missing, kv_dtype)


def _draft_kv(lines: Iterable[LogLine]) -> str:
    """The draft's own KV dtype where the arguments name one; else it may follow the target's."""
    for line in lines:
        if "non-default args:" in line.message:
            args = _DRAFT_ARGS.search(line.message)
            own = _DRAFT_KV.search(args[1]) if args else None
            return own[1] if own else SAME_OR_UNLOGGED
    return SAME_OR_UNLOGGED


def _speculation(config: str) -> tuple[str, int]:
    match = _SPECULATIVE.search(config)
    if match is None:
        return UNLOGGED, -1
    return (match[1], int(match[3])) if match[1] else ("none", 0)


def _downgrades(lines: Iterable[LogLine]) -> tuple[Downgrade, ...]:
    """Changes after the configuration line: what came before it is already in its mode."""
    found: list[Downgrade] = []
    started = False
    for line in lines:
        started = started or bool(_VERSION.search(line.message))
        match = _DOWNGRADE.search(line.message)
        if started and match and line.level == "WARNING":
            entry = Downgrade(match[1], line.message, line.number)
            if all(entry.reason != other.reason for other in found):
                found.append(entry)
    return tuple(found)


def _runner(lines: Iterable[LogLine]) -> tuple[str, str]:
    for line in lines:
        if _RUNNER_FALLBACK.search(line.message):
            return "V1", line.message
        if "Using V2 Model Runner" in line.message:
            return "V2", line.message
    return UNLOGGED, UNLOGGED


def _compile_cache(lines: Sequence[LogLine], seconds: str | None) -> CompileCache:
    aot = _pairs(_AOT, lines)
    hits = any(what.startswith("Directly") for what, _ in aot) or _any(_GRAPH_HIT, lines)
    misses = any(what.startswith("saved") for what, _ in aot) or _any(_GRAPH_MISS, lines)
    state = {(True, False): "hit", (False, True): "miss", (True, True): "mixed"}
    silent = "disabled" if _any(_NO_COMPILE, lines) else UNLOGGED
    return CompileCache(
        state=state.get((hits, misses), silent),
        directory_hashes=_distinct(f"{part}:{hash_}" for hash_, part in _pairs(_CACHE_DIR, lines)),
        aot_hashes=_distinct(hash_ for _, hash_ in aot),
        compile_ms=_ms(seconds),
        stale=_any(_STALE, lines),
    )


def _banner(lines: Iterable[LogLine]) -> str:
    for line in lines:
        if line.source.startswith("api_utils.py:") and (match := _BANNER.search(line.message)):
            return match[1]
    return UNLOGGED


def _message(lines: Iterable[LogLine], pattern: re.Pattern[str]) -> str:
    return next((line.message for line in lines if pattern.search(line.message)), "")


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else UNLOGGED


def _all(pattern: re.Pattern[str], lines: Iterable[LogLine]) -> list[str]:
    return [match[1] for line in lines if (match := pattern.search(line.message))]


def _pairs(pattern: re.Pattern[str], lines: Iterable[LogLine]) -> list[tuple[str, str]]:
    return [(m[1], m[2]) for line in lines if (m := pattern.search(line.message))]


def _any(pattern: re.Pattern[str], lines: Iterable[LogLine]) -> bool:
    return any(pattern.search(line.message) for line in lines)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _count(text: str) -> int:
    return -1 if text == UNLOGGED else int(text.replace(",", ""))


def _ms(seconds: str | None) -> int:
    return -1 if seconds is None else int(Decimal(seconds) * 1000)
