"""Every latency definition that the kit can express, each with where its rule was read.

Invariant: ids are unique and never reused for another rule. Sources name repository, path and,
where one fixes the rule, the pull request or issue. Each rule was held against the code named
there, save what its source marks "not read": those follow what is said of the tool.
"""

from __future__ import annotations

from analysis.definitions import rules
from analysis.definitions.definition import Definition
from records.errors import FormatError

_VLLM = "vllm-project/vllm vllm/benchmarks/serve.py (calculate_metrics); PR 50600 (not read)"
_INFERENCEX = "SemiAnalysisAI/InferenceX utils/bench_serving/benchmark_serving.py"
_GUIDELLM = (
    "vllm-project/guidellm src/guidellm/schemas/request_stats.py, "
    "src/guidellm/benchmark/schemas/metrics.py, src/guidellm/schemas/statistics.py, issue 1145"
)
_AIPERF_ITL = "ai-dynamo/aiperf src/aiperf/metrics/types/inter_token_latency_metric.py"
_INFERENCE_PERF = "kubernetes-sigs/inference-perf inference_perf/reportgen/base.py, PR 410"
_LLMPERF = "ray-project/llmperf token_benchmark_ray.py"
_OWN = "this kit, analysis/definitions/rules.py"

_GAPS_EDGE = "fewer than two chunks: no gap, so no value"
_N1_EDGE = "n <= 1: no value; one chunk with n > 1 tokens: 0"

DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        id="vllm.bench.itl",
        tool="vLLM bench",
        quantity="ITL",
        rule="gap per streamed output, pooled over requests",
        edge=_GAPS_EDGE,
        unit="ms",
        source=_VLLM,
        per="gap",
        compute=rules.chunk_gap,
        prints_when_empty_ms=0.0,
    ),
    Definition(
        id="vllm.bench.tpot",
        tool="vLLM bench",
        quantity="TPOT",
        rule="(E2E - TTFT) / (n - 1), one a request",
        edge=_N1_EDGE + "; its goodput takes n <= 1 as 0",
        unit="ms/token",
        source=_VLLM,
        per="request",
        compute=rules.decode_per_token,
        prints_when_empty_ms=0.0,
    ),
    Definition(
        id="vllm.metrics.itl",
        tool="vLLM /metrics",
        quantity="inter_token_latency",
        rule="gap per engine output; the server takes it on its own clock, here the client's",
        edge=_GAPS_EDGE,
        unit="ms",
        source="vllm-project/vllm vllm/v1/metrics/stats.py (update_from_output)",
        per="gap",
        compute=rules.chunk_gap,
    ),
    Definition(
        id="inferencex.itl",
        tool="InferenceX bench_serving",
        quantity="ITL",
        rule="gap per chunk, pooled over requests",
        edge=_GAPS_EDGE,
        unit="ms",
        source=_INFERENCEX,
        per="gap",
        compute=rules.chunk_gap,
        prints_when_empty_ms=0.0,
    ),
    Definition(
        id="inferencex.tpot",
        tool="InferenceX bench_serving",
        quantity="TPOT",
        rule="(E2E - TTFT) / (n - 1), one a request",
        edge=_N1_EDGE,
        unit="ms/token",
        source=_INFERENCEX,
        per="request",
        compute=rules.decode_per_token,
        prints_when_empty_ms=0.0,
    ),
    Definition(
        id="sglang.itl",
        tool="SGLang bench_serving",
        quantity="ITL",
        rule="gap / k, k times, for its own backends; other backends get the plain gap",
        edge="a later chunk without tokens rolls its gap into the next; one chunk: no value",
        unit="ms",
        source=(
            "sgl-project/sglang python/sglang/bench_serving.py (async_request_sglang_generate); "
            "its OpenAI backends: PR 12064 (description, code not read)"
        ),
        per="token",
        compute=rules.gap_per_token,
        prints_when_empty_ms=0.0,
    ),
    Definition(
        id="guidellm.itl",
        tool="guidellm",
        quantity="ITL",
        rule="(last - first) / (n - 1), one a request, weighted by n - 1: no tail of gaps",
        edge="n <= 1: weight 0, so no value; one chunk with n > 1 tokens: 0 with weight n - 1",
        unit="ms/token",
        source=_GUIDELLM,
        per="request",
        compute=rules.decode_per_token_by_tokens,
        percentile_method="inverted_cdf",
        prints_when_empty_ms=0.0,
    ),
    Definition(
        id="guidellm.tpot",
        tool="guidellm",
        quantity="TPOT",
        rule="(last - start) / n, TTFT included, weighted by n",
        edge="n = 0: weight 0, so no value; n = 1: the TTFT",
        unit="ms/token",
        source=_GUIDELLM,
        per="request",
        compute=rules.latency_per_token_by_tokens,
        percentile_method="inverted_cdf",
        prints_when_empty_ms=0.0,
    ),
    Definition(
        id="genai-perf.itl",
        tool="genai-perf",
        quantity="ITL",
        rule="(latency - TTFT) / (n - 1), rounded to ns; gap / k only for its plots",
        edge="one chunk, or n <= 1: no value",
        unit="ms/token",
        source=(
            "triton-inference-server/perf_analyzer "
            "genai-perf/genai_perf/profile_data_parser/llm_profile_data_parser.py"
        ),
        per="request",
        compute=rules.decode_per_token_rounded,
    ),
    Definition(
        id="aiperf.itl",
        tool="AIPerf",
        quantity="ITL",
        rule="(latency - TTFT) / (n - 1), one a request",
        edge=_N1_EDGE,
        unit="ms/token",
        source=_AIPERF_ITL,
        per="request",
        compute=rules.decode_per_token,
    ),
    Definition(
        id="aiperf.itl.per-chunk-usage",
        tool="AIPerf --per-chunk-usage",
        quantity="ITL",
        rule="(latency - TTFT) / (n - k1), one a request",
        edge="n <= 1: no value; k1 = 0 or k1 = n: divided by n - 1, so one chunk gives 0",
        unit="ms/token",
        source=_AIPERF_ITL + ", PR 1279",
        per="request",
        compute=rules.decode_per_later_token_or_n1,
    ),
    Definition(
        id="aiperf.icl",
        tool="AIPerf",
        quantity="ICL",
        rule="gap between content chunks, pooled over requests",
        edge=_GAPS_EDGE,
        unit="ms",
        source="ai-dynamo/aiperf src/aiperf/metrics/types/inter_chunk_latency_metric.py",
        per="gap",
        compute=rules.chunk_gap,
    ),
    Definition(
        id="inference-perf.itl",
        tool="inference-perf",
        quantity="ITL",
        rule="every token gets its chunk's time: zeros inside a chunk, the gap between chunks",
        edge="n <= 1: no value; one chunk with n > 1 tokens: n - 1 zeros",
        unit="ms",
        source=_INFERENCE_PERF,
        per="token",
        compute=rules.token_gap,
    ),
    Definition(
        id="inference-perf.tpot",
        tool="inference-perf",
        quantity="TPOT",
        rule="(last - first) / (n - 1) over chunks that carry tokens",
        edge=_N1_EDGE + "; its goodput takes no value as a miss",
        unit="ms/token",
        source=_INFERENCE_PERF,
        per="request",
        compute=rules.decode_per_token_of_token_chunks,
    ),
    Definition(
        id="inference-perf.ntpot",
        tool="inference-perf",
        quantity="NTPOT",
        rule="E2E / n",
        edge="n = 0: counts as 0",
        unit="ms/token",
        source=_INFERENCE_PERF,
        per="request",
        compute=rules.latency_per_token_or_zero,
    ),
    Definition(
        id="mlperf.tpot",
        tool="MLPerf loadgen",
        quantity="TPOT",
        rule="(latency - first token) / (n - 1), one a request",
        edge="n <= 1: an error of the run, which then has no result; one chunk, n > 1: 0",
        unit="ms/token",
        source=(
            "mlcommons/inference loadgen/logging.cc (rule and n <= 1: not read), "
            "percentiles loadgen/results.cc"
        ),
        per="request",
        compute=rules.decode_per_token_or_error,
        percentile_method="floor_index",
    ),
    Definition(
        id="llmperf.itl",
        tool="llmperf",
        quantity="ITL",
        rule="sum of gaps, TTFT included, over received chunks",
        edge="no tokens: counts as 0; one chunk: the TTFT",
        unit="ms",
        source=_LLMPERF + " (results gathered while requests run)",
        per="request",
        compute=rules.latency_per_chunk_or_zero,
    ),
    Definition(
        id="llmperf.itl.final",
        tool="llmperf",
        quantity="ITL, final path",
        rule="sum of gaps, TTFT included, over retokenised n",
        edge="no tokens: counts as 0; n = 1: the TTFT",
        unit="ms/token",
        source=_LLMPERF + " (results gathered after the last request)",
        per="request",
        compute=rules.latency_per_token_or_zero,
    ),
    Definition(
        id="llmperf.itl.pr99",
        tool="llmperf with PR 99",
        quantity="ITL",
        rule="sum of gaps without TTFT over n - 1",
        edge="n <= 1: excluded here, the pull request's text does not say; one chunk, n > 1: 0",
        unit="ms/token",
        source="ray-project/llmperf PR 99 (open; its description, code not read)",
        per="request",
        compute=rules.decode_per_token,
    ),
    Definition(
        id="step-gap",
        tool="this kit",
        quantity="step gap",
        rule="t[i+1] - t[i] over the chunks of a request, pooled",
        edge=_GAPS_EDGE,
        unit="ms",
        source=_OWN,
        per="gap",
        compute=rules.chunk_gap,
    ),
    Definition(
        id="tpot.n-1",
        tool="this kit",
        quantity="TPOT(n-1)",
        rule="(t_last - t_first) / (n - 1)",
        edge=_N1_EDGE,
        unit="ms/token",
        source=_OWN,
        per="request",
        compute=rules.decode_per_token,
    ),
    Definition(
        id="tpot.n-k1",
        tool="this kit",
        quantity="TPOT(n-k1)",
        rule="(t_last - t_first) / (n - k1), k1 tokens in the first chunk",
        edge="n = k1, so also one chunk or none: undefined, excluded and counted",
        unit="ms/token",
        source=_OWN,
        per="request",
        compute=rules.decode_per_later_token,
    ),
    Definition(
        id="ntpot",
        tool="this kit",
        quantity="NTPOT",
        rule="(t_last - t_sent) / n",
        edge="n = 0: excluded and counted; n = 1: the TTFT",
        unit="ms/token",
        source=_OWN,
        per="request",
        compute=rules.latency_per_token,
    ),
    Definition(
        id="ttft.sent",
        tool="this kit",
        quantity="TTFT",
        rule="t_first - t_sent",
        edge="no chunk: excluded and counted",
        unit="ms",
        source=_OWN,
        per="request",
        compute=rules.first_chunk_from_sent,
    ),
    Definition(
        id="ttft.scheduled",
        tool="this kit",
        quantity="TTFT from schedule",
        rule="t_first - t_scheduled, so that queueing in the client counts",
        edge="no chunk: excluded and counted",
        unit="ms",
        source=_OWN,
        per="request",
        compute=rules.first_chunk_from_scheduled,
    ),
)


def definition(id_: str) -> Definition:
    """The definition of this id; FormatError with the known ids when there is none."""
    for candidate in DEFINITIONS:
        if candidate.id == id_:
            return candidate
    known = ", ".join(candidate.id for candidate in DEFINITIONS)
    raise FormatError(f"no latency definition {id_!r}", remedy=f"known: {known}")
