"""Components of variance: what was put in comes out, and what cannot be told apart is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from sealed_run import make_run, small_plan

from analysis.figures.components import TOGETHER, Component, components
from analysis.metrics import WindowMetrics, run_metrics
from analysis.reading import read_run

ARMS, WINDOWS = ("a", "b", "c"), ("c1", "c8")


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> WindowMetrics:
    """Any window's metrics, to be filled with throughputs of a test's own."""
    path = tmp_path_factory.mktemp("data") / "20261130T000000Z-test-plan-aaaaaa"
    return run_metrics(read_run(make_run(path, small_plan(1))))[0]


def _metrics(
    window: WindowMetrics, logs: dict[tuple[str, int, str, str], float]
) -> list[WindowMetrics]:
    return [
        replace(
            window,
            run_id=run,
            block=block,
            arm=arm,
            window=name,
            boot=f"b{block}-{arm}",
            output_tokens_per_s=math.exp(value),
        )
        for (run, block, arm, name), value in logs.items()
    ]


def _found(metrics: list[WindowMetrics], hosts: dict[str, str]) -> dict[tuple[str, str], Component]:
    return {(c.scope, c.source): c for c in components(metrics, hosts)}


def _simulated(
    window: WindowMetrics,
    sds: tuple[float, float, float, float],
    hosts: int,
    blocks: int,
    seed: int,
) -> dict[tuple[str, str], Component]:
    rng = np.random.default_rng(seed)
    host_sd, block_sd, boot_sd, window_sd = sds
    logs = {}
    for host in range(hosts):
        of_host = host_sd * rng.standard_normal()
        for block in range(blocks):
            of_block = of_host + block_sd * rng.standard_normal()
            for arm in ARMS:
                of_boot = of_block + boot_sd * rng.standard_normal()
                for place, name in enumerate(WINDOWS):
                    mean = 3.0 + ord(arm) + 2.0 * place * ord(arm) / 100
                    logs[f"run{host}", block, arm, name] = (
                        mean + of_boot + window_sd * rng.standard_normal()
                    )
    return _found(_metrics(window, logs), {f"run{h}": f"host{h}" for h in range(hosts)})


def test_components_come_out_as_they_were_put_in(window: WindowMetrics) -> None:
    found = _simulated(window, (0.08, 0.05, 0.03, 0.01), hosts=40, blocks=40, seed=1)
    wanted = {"host": 8.0, "block": 5.0, "boot": 3.0, "window": 1.0}
    for source, sd in wanted.items():
        one = found[TOGETHER, source]
        assert one.sd_percent == pytest.approx(sd, rel=0.25 if source == "host" else 0.06)
        assert one.low_percent is not None
        assert one.high_percent is not None
        assert one.low_percent <= one.sd_percent <= one.high_percent
    # Of one arm by itself, boot takes in block and host.
    together = math.sqrt(8.0**2 + 5.0**2 + 3.0**2)
    assert found["a", "boot"].sd_percent == pytest.approx(together, rel=0.25)


@pytest.mark.parametrize(("source", "place"), [("block", 1), ("boot", 2), ("window", 3)])
def test_intervals_cover_the_truth_about_as_often_as_they_say(
    window: WindowMetrics, source: str, place: int
) -> None:
    sds = (0.0, 0.04, 0.03, 0.02)
    trials, held = 150, 0
    for seed in range(trials):
        one = _simulated(window, sds, hosts=1, blocks=6, seed=seed)[TOGETHER, source]
        assert one.low_percent is not None
        assert one.high_percent is not None
        held += one.low_percent <= 100 * sds[place] <= one.high_percent
    # 95 % nominal; the binomial's own spread over so many trials is below two in a hundred.
    assert held / trials >= 0.90


def test_a_worked_example_by_hand(window: WindowMetrics) -> None:
    # Two blocks, two arms, one window each: residuals by hand, in logarithms.
    logs = {
        ("r", 1, "a", "c1"): 1.0,
        ("r", 1, "b", "c1"): 2.2,
        ("r", 2, "a", "c1"): 1.2,
        ("r", 2, "b", "c1"): 2.6,
    }
    found = _found(_metrics(window, logs), {"r": "h"})
    # Centred: block 1 (-0.1, -0.2), block 2 (0.1, 0.2): block means -0.15 and 0.15.
    # MS block = 2 arms x (0.15^2 + 0.15^2) / 1 = 0.09; boots 0.05, -0.05 twice: MS boot = 0.01 / 1.
    boot, block = found[TOGETHER, "boot"], found[TOGETHER, "block"]
    assert boot.sd_percent == pytest.approx(100 * math.sqrt(0.01))
    assert block.sd_percent == pytest.approx(100 * math.sqrt((0.09 - 0.01) / 2))
    assert (boot.df, block.df) == (1, 1)
    assert "one window a boot" in found[TOGETHER, "window"].why_not


def test_what_the_records_cannot_tell_apart_is_said(window: WindowMetrics) -> None:
    one_host = _simulated(window, (0.0, 0.04, 0.03, 0.02), hosts=1, blocks=2, seed=3)
    assert one_host[TOGETHER, "host"].why_not == "one host"
    assert one_host[TOGETHER, "host"].sd_percent is None
    one_block = _simulated(window, (0.0, 0.04, 0.03, 0.02), hosts=3, blocks=1, seed=3)
    assert "no telling it from the host" in one_block[TOGETHER, "block"].why_not
    single = _simulated(window, (0.0, 0.04, 0.03, 0.02), hosts=1, blocks=1, seed=3)
    assert all(component.sd_percent is None for component in single.values())


def test_a_block_without_every_window_is_left_out(window: WindowMetrics) -> None:
    full = _metrics(
        window,
        {
            ("r", block, arm, name): 1.0 + 0.1 * block + 0.01 * len(arm)
            for block in (1, 2, 3)
            for arm in ARMS
            for name in WINDOWS
        },
    )
    torn = [m for m in full if (m.block, m.arm, m.window) != (3, "a", "c8")]
    found = _found(torn, {"r": "h"})
    assert found[TOGETHER, "window"].df == len(ARMS) * (2 - 1) * (len(WINDOWS) - 1)
    assert found["b", "boot"].df == 2


def test_arms_that_are_in_some_blocks_only_do_not_spoil_those_in_all(
    window: WindowMetrics,
) -> None:
    # As a plan has it that measures two arms in every block and four more in some of them.
    blocks = {"a": range(1, 13), "b": range(1, 13), "c": (6, 8, 10), "d": (6, 8, 10), "e": (7, 9)}
    logs = {
        ("r", block, arm, name): 1.0 + 0.01 * ((7 * block + ord(arm)) % 5)
        for arm, taken in blocks.items()
        for block in taken
        for name in WINDOWS
    }
    found = _found(_metrics(window, logs), {"r": "h"})
    boot = found[TOGETHER, "boot"]
    assert boot.arms == ("a", "b")
    assert boot.df == (2 - 1) * (12 - 1)
    assert found["c", "boot"].df == 2
    assert found["e", "boot"].df == 1
