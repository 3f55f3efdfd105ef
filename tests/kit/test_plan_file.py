from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest

from kit.planning.plan_file import load_plan, parse_plan
from kit.planning.toml_lines import key_lines, paths_around
from records import canonical
from records.decode import from_object, to_object
from records.errors import PlanError
from records.plan import Plan, boot_order

PLANS = Path(__file__).parents[2] / "kit" / "plans"
SMOKE = (PLANS / "smoke-cpu.toml").read_text()


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.toml")), ids=lambda p: p.stem)
def test_every_plan_of_the_kit_decodes_and_survives_its_canonical_form(path: Path) -> None:
    plan = load_plan(path)
    assert plan.id == path.stem
    assert from_object(Plan, canonical.decode(canonical.encode(to_object(plan)))) == plan


def test_smoke_cpu_asks_what_the_main_job_needs() -> None:
    plan = load_plan(PLANS / "smoke-cpu.toml")
    assert [arm.id for arm in plan.arms] == ["draft", "ngram", "none"]
    assert plan.blocks >= 2
    assert [w.load.concurrency for w in plan.windows] == [1, 8]
    assert plan.arms[0].draft_model == "smollm2-135m-draft25"
    assert plan.arms[0].args[-1] == "detailed"  # the arm's own come after the defaults
    assert plan.arms[2].args[-1] != "detailed"
    assert all(w.sampling.temperature == 0 and not w.prompts.unique for w in plan.windows)


def test_l4_confounds_has_the_published_boots_thresholds_and_dtypes() -> None:
    plan = load_plan(PLANS / "l4-confounds.toml")
    assert plan.blocks == 12
    assert (min(plan.thresholds_ms), max(plan.thresholds_ms)) == (20, 75)
    assert {w.load.concurrency for w in plan.windows} == {1, 64}
    assert {arm.factors["kv"] for arm in plan.arms} == {"bf16", "fp8_e4m3"}
    assert len(boot_order(plan)) == 12 * len(plan.arms)
    assert plan.requirements.compute_capability == Decimal("8.9")


def edited(old: str, new: str) -> tuple[str, int]:
    """The smoke plan with one edit, and the line where it stands."""
    assert old in SMOKE
    return SMOKE.replace(old, new, 1), SMOKE[: SMOKE.index(old)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("blocks = 2", "blokcs = 2", "unknown key 'blokcs'; nearest known key: 'blocks'"),
        ("memory_mib = 5000", "memory_mib = 5.5", "expected int, got float '5.5'"),
        ('version = "0.29.0"', "version = 0.29", "expected str, got float '0.29'"),
        ('version = "0.29.0"', "version = 2026-11-30", "expected str, got date"),
        ("temperature = 0.0", 'temperature = "0"', "expected a number, got str '0'"),
        ("temperature = 0.0", "temperature = true", "expected a number, got bool"),
        ("temperature = 0.0", "temprature = 0.0", "nearest known key: 'temperature'"),
        ("ignore_eos = true", "ignore_eos = 1", "expected bool, got int"),
        ('{ kind = "closed", concurrency = 1, requests = 4 }', "3", "expected an object"),
        ("requests = 24", "reqests = 40", "nearest known key: 'requests'"),
        ("concurrency = 8,", "concurrency = 0,", "concurrency must be at least 1"),
        ("seed = 20261130", "seed = ", "not TOML"),
        ('id = "ngram"', 'id = "N gram"', "arm id 'N gram'"),
        ('factors = { speculation = "none" }', 'factors = { graphs = "x" }', "same factors"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_what_was_meant(
    old: str, new: str, words: str
) -> None:
    text, line = edited(old, new)
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "my.toml")
    told = f"{caught.value.message} {caught.value.remedy}"
    assert words in told
    first = told.partition(": ")[0]
    # Problems of a table as a whole stand at the line of its header, at most a few above.
    assert first.startswith("my.toml:")
    assert line - 6 <= int(first.removeprefix("my.toml:")) <= line


def test_an_exact_line_for_a_key_of_its_own() -> None:
    text, line = edited("client_cpu_ppm = 500_000", "client_cpu_pmm = 500_000")
    with pytest.raises(PlanError, match=rf"^x\.toml:{line}: .*nearest known key: 'client_cpu_ppm'"):
        parse_plan(text, "x.toml")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("requests = 2\nmax", "requests = -1\nmax", "requests is -1; must be at least 0"),
        ("max_rounds = 2", "max_rounds = 0", "at least 1"),
        ("boot_timeout_s = 300", "boot_timeout_s = 0", "at least 1"),
        ("step_gap_ms = 20", "step_gap_ms = 0", "at least 1"),
        ("requests_per_stream = 2", "requests_per_stream = 0", "at least 1"),
        ("output_tokens = 64", "output_tokens = 0", "at least 1"),
        ("memory_mib = 5000", "memory_mib = -1", "at least 0"),
        ("disk_mib = 6000", "disk_mib = -1", "at least 0"),
        ("gpu_memory_mib = 0", "gpu_memory_mib = -1", "at least 0"),
        ("compute_capability = 0.0", "compute_capability = -8.9", "at least 0"),
        ("steal_ppm = 50_000", "steal_ppm = -1", "at least 0"),
        ("boot_s = 50", "boot_s = -50", "at least 0"),
        ("blocks = 2", "blocks = 10_001", "at most 10000"),
        ("blocks = 2", "blocks = 0", "at least one block"),
        ('id = "smoke-cpu"', 'id = "Smoke"', "plan id 'Smoke'"),
        ("thresholds_ms = [10, 20", "thresholds_ms = [-10, 20", "none below 0"),
        ("thresholds_ms = [10, 20", "thresholds_ms = [20, 20", "twice"),
        ("thresholds_ms = [10, 20, 30, 40, 50, 75, 100]", "thresholds_ms = []", "needs numbers"),
        ("top_k = 0", "top_k = -2", "top_k >= -1"),
        ("repetition_penalty = 1.0", "repetition_penalty = -1.0", "repetition_penalty > 0"),
        ("temperature = 0.0", "temperature = 1000.1", "temperature <= 1000"),
        ('env = { VLLM_CPU_KVCACHE_SPACE = "1" }', 'env = { "" = "1" }', "cannot name a variable"),
        ('env = { VLLM_CPU_KVCACHE_SPACE = "1" }', 'env = { "A=B" = "1" }', "cannot name"),
        ('env = { VLLM_CPU_KVCACHE_SPACE = "1" }', 'env = { A = "\\u0000" }', "control character"),
        ('env = { VLLM_CPU_KVCACHE_SPACE = "1" }', 'env = { "A.B[x]=" = "1" }', "cannot name"),
        ('args = ["--per', 'args = ["\\u0000--per', "control character '\\x00'"),
        ('title = "', 'title = "\\u001b[2J', "control character"),
        ('lock = "wheels-cpu.lock"', 'lock = "../other"', "plain name of a file"),
        ('lock = "wheels-cpu.lock"', 'lock = ".."', "plain name of a file"),
        ('lock = "wheels-cpu.lock"', 'lock = ".hidden"', "plain name of a file"),
        ('model = "smollm2-135m-draft25"', "model = 3", "model is not a string"),
        ('[[windows]]\nid = "c1"', '[[windwos]]\nid = "c1"', "unknown key 'windwos'"),
        ("format = 1", "format = 2", "plan format 2"),
        ("seed = 20261130", "seed." + "a." * 100_000 + "a = 1", "more than 4000 dots"),
        ('cache = "none"', 'cache = "tepid"', "cache 'tepid'"),
        ("seed = 20261130", f"seed = {2**63}", "integer beyond 63 bits"),
        ("seed = 20261130", "seed = 0x" + "f" * 5000, "integer beyond 63 bits"),
        ("seed = 20261130", "seed = " + "9" * 5000, "integer beyond 63 bits"),
        ("num_speculative_tokens = 4", f"num_speculative_tokens = {2**64}", "beyond 63 bits"),
        ("method = ", "since = 2026-11-30, method = ", "JSON has no date"),
        ("method = ", "since = 07:32:00, method = ", "JSON has no time"),
        ("method = ", "length = nan, method = ", "not a finite number"),
        ("method = ", "length = 1e999999, method = ", "more than 60 places"),
        ("seed = 20261130", "seed = " + "[" * 3000 + "]" * 3000, "nested too deep"),
        ("seed = 20261130", "seed = " + "[" * 40 + "]" * 40, "nested too deep"),
        ("seed = 20261130", "seed." + "a." * 3000 + "a = 1", "nested too deep"),
        ("temperature = 0.0", "temperature = 1e99999999999999999999", "number"),
        ("temperature = 0.0", "temperature = inf", "not a finite number"),
        ("presence_penalty = 0.0", "presence_penalty = 1e-999999", "more than 60 places"),
        ('id = "ngram"', 'id = "draft"', "two arms are called 'draft'"),
        ('id = "ngram"', 'id = "n gram"', "arm id 'n gram'"),
        ('id = "c8"', 'id = "c1"', "two windows are called 'c1'"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_its_own_line(old: str, new: str, words: str) -> None:
    text, line = edited(old, new)
    with pytest.raises(PlanError) as caught:
        parse_plan(text, "my.toml")
    assert words in caught.value.message
    assert caught.value.message.startswith(f"my.toml:{line}: ")


def test_a_missing_key_is_named_at_its_table() -> None:
    text, line = edited("top_k = 0\n", "")
    with pytest.raises(PlanError, match="missing key 'top_k'") as caught:
        parse_plan(text, "x.toml")
    assert int(caught.value.message.split(":")[1]) < line


def test_an_end_of_file_inside_a_string_has_a_line() -> None:
    with pytest.raises(PlanError, match=r"^x\.toml:\d+: not TOML"):
        parse_plan('id = """never closed\n', "x.toml")


def test_a_missing_file_says_how_to_list_plans(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        load_plan(tmp_path / "none.toml")
    assert caught.value.remedy == "list the plans with: kit plan list"


def test_integers_pass_for_decimals_and_keep_their_text() -> None:
    text, _ = edited("temperature = 0.0", "temperature = 1")
    assert parse_plan(text, "x").windows[0].sampling.temperature == Decimal(1)


def test_a_speculative_table_becomes_the_engines_json_with_its_numbers() -> None:
    text, _ = edited("num_speculative_tokens = 4 }", "num_speculative_tokens = 4, length = 3.2 }")
    config = parse_plan(text, "x").arms[0].speculative_config
    assert config.startswith('{"length":3.2,"method":"draft_model"')


def test_lines_pass_over_strings_arrays_comments_and_inline_tables() -> None:
    text = (
        'a = "no # comment" # [x]\n'
        "b = [ # first\n  '[[not a table]]',\n  { c = 1 },\n]\n"
        'd = """\n[e]\nf = 1\n""""\n'
        "[t.'q k']\n"
        "g.h = 1\n"
        "[[arr]]\ni = 1\n[arr.sub]\nj = 2\n[[arr]]\ni = 3\n"
    )
    lines = key_lines(text)
    assert lines == {
        "$": 1,
        "$.a": 1,
        "$.b": 2,
        "$.d": 6,
        "$.t": 10,
        "$.t.q k": 10,
        "$.t.q k.g": 11,
        "$.t.q k.g.h": 11,
        "$.arr": 12,
        "$.arr[0]": 12,
        "$.arr[0].i": 13,
        "$.arr[0].sub": 14,
        "$.arr[0].sub.j": 15,
        "$.arr[1]": 16,
        "$.arr[1].i": 17,
    }


def test_the_paths_around_a_path_end_at_the_document() -> None:
    assert list(paths_around("$.arr[1].k.l")) == [
        "$.arr[1].k.l",
        "$.arr[1].k",
        "$.arr[1]",
        "$.arr",
        "$",
    ]


def test_an_engines_json_may_not_be_nested_without_end_either() -> None:
    deep = f"speculative_config = '{'[' * 100_000}'"
    text, line = edited('speculative_config = ""', deep)
    with pytest.raises(PlanError, match=rf"^x\.toml:{line}: .*speculative_config"):
        parse_plan(text, "x.toml")


def test_a_byte_order_mark_and_line_ends_of_other_systems_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_bytes(b"\xef\xbb\xbf" + SMOKE.replace("\n", "\r\n").encode())
    assert load_plan(file).digest == load_plan(PLANS / "smoke-cpu.toml").digest


def test_bytes_that_are_no_text_are_told_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_bytes(b"# one\n# \xff\n")
    with pytest.raises(PlanError, match=r"p\.toml:2: not UTF-8"):
        load_plan(file)


def test_only_regular_files_of_bounded_length_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "directory.toml").mkdir()
    for name in ("fifo.toml", "zero.toml", "directory.toml"):
        with pytest.raises(PlanError, match="not a regular file") as caught:
            load_plan(tmp_path / name)
        assert caught.value.remedy
    (tmp_path / "long.toml").write_text(SMOKE + "#" * (1 << 20))
    with pytest.raises(PlanError, match="more than 1048576 bytes"):
        load_plan(tmp_path / "long.toml")


WRONG = (
    b"\xff",
    b"id = ",
    b"a = " + b"9" * 5000,
    b"a = " + b"[" * 50 + b"]" * 50,
    b"a." * 5000 + b"b = 1",
    b"a = 1e9999999999999999999",
    b"blocks = true",
    b"",
    SMOKE.encode() + b"\n" * (1 << 20),
)


@pytest.mark.parametrize("data", WRONG, ids=range(len(WRONG)))
def test_whatever_is_wrong_there_is_something_to_try(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_bytes(data)
    with pytest.raises(PlanError) as caught:
        load_plan(file)
    assert caught.value.remedy


def test_lines_of_many_keys_are_those_where_they_stand() -> None:
    lines = key_lines("".join(f"k{i} = {i}\n" for i in range(50_000)))
    assert [lines[f"$.k{i}"] for i in range(50_000)] == list(range(1, 50_001))


def test_the_digest_that_the_sealed_run_has_is_kept() -> None:
    digest = "sha256:5510cde5936089b69618468036022df1096bde0bbee4e783f927b8bb70f1714c"
    assert str(load_plan(PLANS / "smoke-cpu.toml").digest) == digest
