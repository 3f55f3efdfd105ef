"""Files of another tool that are damaged, or were never one: refused in words, never a bug."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.importing.aiperf import read_aiperf
from analysis.importing.tables import foreign_definitions_table
from analysis.importing.vllm_bench import read_vllm_bench
from kit.main import main
from records.errors import ForeignFileError

FILES = Path(__file__).parents[2] / "fixtures" / "foreign"
BENCH = json.loads((FILES / "vllm-bench.json").read_text())
RECORD = json.loads((FILES / "aiperf" / "profile_export.jsonl").read_text().splitlines()[0])
LISTS = ("ttfts", "itls", "output_lens", "input_lens", "errors", "start_times")
ODD = st.sampled_from(
    [float("nan"), float("inf"), -5.0, 1e300, 10**30, -3, "x", None, [], {}, ["x"], [float("inf")]]
)


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("read", [read_vllm_bench, read_aiperf])
@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"metadata": ', "\x00\x01", "9" * 5000])
def test_what_is_no_such_file(tmp_path: Path, read: Callable[[Path], object], text: str) -> None:
    with pytest.raises(ForeignFileError):
        read(written(tmp_path / "file.json", text))


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(LISTS), whole=st.booleans(), odd=ODD)
def test_one_odd_value_of_a_bench_result_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, whole: bool, odd: Any
) -> None:
    value = {**BENCH, name: odd if whole else [odd, *BENCH[name][1:]]}
    path = written(tmp_path_factory.mktemp("odd") / "bench.json", value)
    try:
        run = read_vllm_bench(path)
    except ForeignFileError:
        return
    foreign_definitions_table(run)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(RECORD["metrics"])), odd=ODD, inside=st.booleans())
def test_one_odd_value_of_an_aiperf_record_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, odd: Any, inside: bool
) -> None:
    metric = {**RECORD["metrics"][name], "value": odd} if inside else odd
    value = {**RECORD, "metrics": {**RECORD["metrics"], name: metric}}
    path = written(tmp_path_factory.mktemp("odd") / "records.jsonl", value)
    try:
        run = read_aiperf(path)
    except ForeignFileError:
        return
    foreign_definitions_table(run)


def test_times_that_run_backwards_are_refused(tmp_path: Path) -> None:
    gaps = [[-1.0, *BENCH["itls"][0][1:]], *BENCH["itls"][1:]]
    with pytest.raises(ForeignFileError, match=r"below 0|before the one before"):
        read_vllm_bench(written(tmp_path / "bench.json", {**BENCH, "itls": gaps}))


@pytest.mark.parametrize("tool", ["vllm-bench", "aiperf"])
def test_what_never_ends_is_not_read(
    tmp_path: Path, tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        assert main(["import", tool, path]) == 2
        assert "neither a file nor a directory" in capsys.readouterr().err
