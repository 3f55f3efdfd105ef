"""What is read from the captured logs of vLLM 0.29.0, and from lines they do not hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import canonical
from remote.engine.log import (
    AUTOMATIC,
    NO_DRAFT,
    PINNED,
    SAME_OR_UNLOGGED,
    UNLOGGED,
    EngineDecisions,
    Increment,
    JitLine,
    LogTail,
    jit_lines,
    parse,
)

CAPTURES = Path(__file__).parents[1] / "fixtures" / "vllm-0.29.0"
JIT_KERNELS = [
    "eagle_prepare_next_token_padded_kernel",
    "copy_and_expand_eagle_inputs_kernel",
    "eagle_step_slot_mapping_metadata_kernel",
    "eagle_prepare_inputs_padded_kernel",
]


def read(name: str) -> EngineDecisions:
    return parse((CAPTURES / name).read_bytes())


def test_bf16_on_flash_attention_2() -> None:
    seen = read("cuda/engine-bf16-fa2.log")
    assert seen.version == "0.29.0"
    assert (seen.spec_method, seen.spec_tokens) == ("draft_model", 4)
    assert seen.target.backend == "FLASH_ATTN"
    assert seen.target.chosen == AUTOMATIC
    assert seen.target.potential_backends == (
        "FLASH_ATTN",
        "FLASHINFER",
        "TRITON_ATTN",
        "FLEX_ATTENTION",
    )
    assert seen.target.flash_attention_version == "2"
    assert seen.target.kv_cache_dtype == "auto"
    assert seen.cudagraph_initial == seen.cudagraph_effective == "FULL_AND_PIECEWISE"
    assert seen.cudagraph_downgrades == ()
    assert seen.enforce_eager == "false"
    assert seen.kv_cache_tokens == 1_706_320
    assert seen.kv_layout == "LBNHC"
    assert seen.model_runner == "V1"
    assert "speculative method 'draft_model'" in seen.model_runner_reason
    assert seen.compile_cache.state == "miss"
    assert seen.compile_cache.directory_hashes == ("backbone:e318771a0d", "draft_model:e318771a0d")
    assert [h[:8] for h in seen.compile_cache.aot_hashes] == ["0f461a28", "63f7f40f"]
    assert seen.compile_cache.compile_ms == 27_690
    assert seen.init_ms == 120_600
    assert seen.serving_on == "http://127.0.0.1:8011"
    assert seen.ready


def test_a_draft_that_logged_nothing_of_its_own_is_never_guessed() -> None:
    for name in ("bf16-fa2", "fp8kv-fa2", "eager"):
        draft = read(f"cuda/engine-{name}.log").draft
        assert draft.backend == SAME_OR_UNLOGGED
        assert draft.chosen == SAME_OR_UNLOGGED
        assert draft.flash_attention_version == SAME_OR_UNLOGGED
        assert draft.kv_cache_dtype == SAME_OR_UNLOGGED


def test_fp8_kv_changes_backend_and_graph_mode() -> None:
    seen = read("cuda/engine-fp8kv-fa2.log")
    assert seen.target.backend == "FLASHINFER"
    assert seen.target.potential_backends == ("FLASHINFER", "TRITON_ATTN")
    assert seen.target.flash_attention_version == UNLOGGED
    assert seen.target.kv_cache_dtype == "fp8_e4m3"
    assert seen.cudagraph_initial == "FULL_AND_PIECEWISE"
    assert seen.cudagraph_effective == "PIECEWISE"
    (downgrade,) = seen.cudagraph_downgrades
    assert downgrade.to == "PIECEWISE"
    assert "not supported with spec-decode for attention backend FlashInfer" in downgrade.reason
    (query,) = seen.flashinfer_query_dtypes
    assert query.startswith("prefill=torch.float8_e4m3fn, decode=torch.bfloat16, ")


def test_eager() -> None:
    seen = read("cuda/engine-eager.log")
    assert seen.enforce_eager == "true"
    assert seen.cudagraph_effective == "NONE"
    assert seen.target.flash_attention_version == "3"
    assert seen.compile_cache.state == "disabled"
    assert seen.compile_cache.compile_ms == -1


def test_the_cpu_build_logs_no_backend() -> None:
    seen = read("cpu/engine-fp8kv-draft.log")
    assert seen.target.backend == seen.target.chosen == UNLOGGED
    assert seen.draft.backend == UNLOGGED
    assert seen.target.kv_cache_dtype == "fp8_e4m3"
    assert seen.model_runner == "V1"
    assert "requires Triton" in seen.model_runner_reason
    assert seen.kv_cache_tokens == 101_632
    assert seen.jit == ()
    assert seen.ready


def test_jit_lines_name_kernel_and_line() -> None:
    log = (CAPTURES / "cuda/engine-bf16-fa2.log").read_bytes()
    found = parse(log).jit
    assert [line.kernel for line in found] == JIT_KERNELS
    rows = log.decode().split("\n")
    for line in found:
        assert line.maker == "Triton"
        assert line.kernel in rows[line.line - 1]


def test_other_makers_of_kernels_count_too() -> None:
    text = (
        "(EngineCore pid=1) WARNING 11-30 09:00:00 [jit_monitor.py:141] CuTeDSL JIT compilation"
        " during inference: gemm (dtype=bf16). This causes a latency spike\n"
        "Triton autotuning for function topk_kernel,\n"
    )
    assert jit_lines(text, first_number=10) == (
        JitLine(10, "CuTeDSL", "gemm"),
        JitLine(11, "Triton autotuner", "topk_kernel"),
    )


def core(message: str, source: str = "cuda.py:432", level: str = "INFO") -> str:
    return f"(EngineCore pid=9) {level} 11-30 09:00:00 [{source}] {message}\n"


CONFIG = core(
    "Initializing a V1 LLM engine (v0.29.0) with config: model='/m', speculative_config="
    "SpeculativeConfig(method='draft_model', model='/d', num_spec_tokens=3), "
    "enforce_eager=False, kv_cache_dtype=auto, compilation_config={'cudagraph_mode': "
    "<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'x': 1}",
    "core.py:123",
)
DRAFTING = core("Loading drafter model...", "gpu_model_runner.py:5403")


def test_pinned_backends_of_target_and_draft_are_told_apart() -> None:
    log = (
        CONFIG
        + core("Using AttentionBackendEnum.FLASHINFER backend.")
        + DRAFTING
        + core("Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].")
        + core("Using FlashAttention version 2", "flash_attn.py:897")
    )
    seen = parse(log)
    assert (seen.target.backend, seen.target.chosen) == ("FLASHINFER", PINNED)
    assert seen.target.flash_attention_version == UNLOGGED
    assert (seen.draft.backend, seen.draft.chosen) == ("FLASH_ATTN", AUTOMATIC)
    assert seen.draft.flash_attention_version == "2"


def test_backends_of_other_parts_are_not_attention() -> None:
    log = CONFIG + core("Using MARLIN backend.", "moe.py:7") + core("Using NCCL backend", "x.py:1")
    assert parse(log).target.backend == UNLOGGED


def test_several_backends_for_one_model_are_all_named() -> None:
    log = CONFIG + core("Using FLASHINFER backend.") + core("Using FLASH_ATTN backend.")
    assert parse(log).target.backend == "several: FLASHINFER, FLASH_ATTN"


NGRAM = "SpeculativeConfig(method='ngram', model=None, num_spec_tokens=4)"


@pytest.mark.parametrize("config", [NGRAM, "None"])
def test_without_a_draft_model_there_is_nothing_to_decide(config: str) -> None:
    head = CONFIG.replace(
        CONFIG[CONFIG.index("SpeculativeConfig(") : CONFIG.index(", enf")], config
    )
    seen = parse(head + DRAFTING)
    assert seen.draft.backend == NO_DRAFT
    assert (seen.spec_method, seen.spec_tokens) == (
        ("none", 0) if config == "None" else ("ngram", 4)
    )


def test_a_draft_with_its_own_kv_dtype() -> None:
    args = core(
        "non-default args: {'port': 1, 'speculative_config': {'method': 'draft_model', "
        "'kv_cache_dtype': 'fp8_e4m3'}}",
        "api_utils.py:286",
    )
    assert parse(args + CONFIG).draft.kv_cache_dtype == "fp8_e4m3"
    assert parse(args + CONFIG).target.kv_cache_dtype == "auto"


AOT_HIT = "Directly load AOT compilation from path /c/torch_aot_compile/ab12/rank_0_0/model"
COMPILED = "Compiling a graph for compile range (1, 8192) takes 6.67 s"


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ([AOT_HIT], "hit"),
        (["Directly load the compiled graph(s) for compile range (1, 8) from the cache"], "hit"),
        ([COMPILED], "miss"),
        ([COMPILED, AOT_HIT], "mixed"),
        ([], UNLOGGED),
    ],
)  # fmt: skip
def test_state_of_the_compile_cache(lines: list[str], state: str) -> None:
    assert (
        parse("".join(core(line, "backends.py:1") for line in lines)).compile_cache.state == state
    )


def test_a_progress_bar_before_a_line_does_not_hide_it() -> None:
    log = "(EngineCore pid=9) \rLoading: 0%\rLoading: 100%" + core("Using FLASHINFER backend.")
    assert parse(log).target.backend == "FLASHINFER"


def test_an_empty_log_says_unlogged_throughout() -> None:
    seen = parse(b"")
    assert seen.version == seen.target.backend == seen.model_runner == UNLOGGED
    assert seen.cudagraph_effective == seen.kv_layout == seen.serving_on == UNLOGGED
    assert (seen.kv_cache_tokens, seen.init_ms) == (-1, -1)
    assert not seen.ready


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*/*.log")), ids=lambda p: p.stem)
def test_decisions_are_a_canonical_record(path: Path) -> None:
    assert canonical.encode(dataclasses.asdict(parse(path.read_bytes())))


@given(st.binary(max_size=400))
def test_any_bytes_are_read(data: bytes) -> None:
    parse(data)


def test_a_tail_gives_each_complete_line_once(tmp_path: Path) -> None:
    path = tmp_path / "engine.log"
    tail = LogTail(path)
    assert tail.read() == Increment(1, "")
    with path.open("ab", buffering=0) as file:
        file.write(b"one\ntw")
        assert tail.read() == Increment(1, "one\n")
        assert tail.read() == Increment(2, "")
        file.write(b"o\nthree\n")
        assert tail.read() == Increment(2, "two\nthree\n")


def test_a_tail_in_pieces_finds_what_the_whole_holds(tmp_path: Path) -> None:
    log = (CAPTURES / "cuda/engine-fp8kv-fa2.log").read_bytes()
    path = tmp_path / "engine.log"
    tail = LogTail(path)
    found: list[JitLine] = []
    with path.open("ab", buffering=0) as file:
        for at in range(0, len(log), 5000):
            file.write(log[at : at + 5000])
            new = tail.read()
            found.extend(jit_lines(new.text, new.first_number))
    assert tuple(found) == parse(log).jit
