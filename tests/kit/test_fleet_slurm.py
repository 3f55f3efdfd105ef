"""What Slurm is told and what it answers: golden words, real captures (22.05, trimmed)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from kit.fleet.study import Part, parts
from kit.home import Home
from kit.planning.plan_file import load_plan
from kit.planning.stays import primes_s
from kit.slurm.apptainer import require_bindable
from kit.slurm.site import SlurmSite, read_site
from kit.slurm.submission import gpus, limit_minutes, sbatch_argv, script
from kit.slurm.task_state import TaskState, parse_tasks
from records.digest import Digest
from records.errors import FormatError, HostUnfitError, PlanError
from records.job import EngineOnHost, Job
from records.plan import Plan

PLANS = Path(__file__).parents[2] / "kit" / "plans"
L4 = load_plan(PLANS / "l4-confounds.toml")
DEMO = load_plan(PLANS / "demo.toml")
SITE = SlurmSite(
    partition="gpu",
    account="proj",
    options=("--exclude=node7",),
    constraint={"8.0": "a100", "8.9": "l4|l40s", "9.0": "h100"},
)
# Some tasks wait under a range, one runs, one was cancelled after it had marked its boot.
SHOWN = """\
JobId=1 ArrayJobId=1 ArrayTaskId=3,5-7%2 JobName=kit-1 JobState=PENDING Reason=BeginTime Requeue=1 Restarts=1 ExitCode=0:0 RunTime=00:00:00
JobId=2 ArrayJobId=1 ArrayTaskId=1 JobName=kit-1 JobState=RUNNING Reason=None Requeue=1 Restarts=0 ExitCode=0:0 RunTime=00:00:02
JobId=3 ArrayJobId=1 ArrayTaskId=2 JobName=kit-1 JobState=CANCELLED Reason=None Requeue=1 Restarts=0 ExitCode=52:0 RunTime=00:00:02
JobId=4 JobName=wrap JobState=COMPLETED Reason=None Requeue=1 Restarts=0 ExitCode=0:0 RunTime=00:00:03
"""  # noqa: E501


def test_the_words_for_a_plan_on_gpus() -> None:
    assert sbatch_argv(SITE, L4, 4, "kit-0a", Path("/shared/slurm")) == (
        "sbatch",
        "--parsable",
        "--job-name=kit-0a",
        "--array=1-4",
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",
        "--mem=0",
        f"--time={limit_minutes(SITE, L4)}",
        "--requeue",
        "--signal=B:TERM@120",
        "--open-mode=append",
        "--output=/shared/slurm/%A_%a.out",
        "--partition=gpu",
        "--account=proj",
        "--gres=gpu:1",
        "--constraint=l4|l40s|h100",
        "--exclude=node7",
    )


@pytest.mark.parametrize("name", ["a%Ab", "50%", "%%", "%j x"])
def test_a_directory_is_no_pattern_of_slurms(name: str) -> None:
    # Slurm 22.05: unescaped, a task ends in JobLaunchFailure in all of these, and says no more.
    words = sbatch_argv(SITE, DEMO, 1, "kit-0a", Path("/s") / name)
    assert f"--output=/s/{name.replace('%', '%%')}/%A_%a.out" in words


def test_a_directory_that_slurm_cannot_write_to_is_refused() -> None:
    with pytest.raises(HostUnfitError, match="backslash") as refusal:
        sbatch_argv(SITE, DEMO, 1, "kit-0a", Path("/s/a\\b"))
    assert "KIT_HOME" in refusal.value.remedy


@pytest.mark.parametrize("path", ["/s/a:b", "/s/a,b", "/s/a\\b"])
def test_a_directory_that_apptainer_would_cut_is_refused(path: str) -> None:
    with pytest.raises(HostUnfitError, match="Apptainer"):
        require_bindable(path)
    require_bindable("/s/a b-c_d%A")


def test_a_plan_without_gpu_asks_for_none() -> None:
    words = sbatch_argv(SITE, DEMO, 1, "kit-0a", Path("/s"))
    assert not [word for word in words if word.startswith(("--gres", "--constraint"))]


def test_a_site_without_such_gpus() -> None:
    with pytest.raises(PlanError, match=r"compute capability 8\.9"):
        sbatch_argv(replace(SITE, constraint={"8.0": "a100"}), L4, 1, "k", Path("/s"))
    assert SlurmSite().features(Decimal("8.9")) == ""


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ((), 1),
        (("--tensor-parallel-size", "4"), 4),
        (("-tp=2", "--pipeline-parallel-size=2"), 4),
    ],
)
def test_gpus_by_the_arms_parallelism(args: tuple[str, ...], count: int) -> None:
    first, *rest = L4.arms
    plan = replace(L4, arms=(replace(first, args=(*first.args, *args)), *rest))
    assert gpus(plan) == count


def test_the_limit_holds_a_block_with_room() -> None:
    boots = len(L4.arms) * (L4.estimates.boot_s + len(L4.windows) * L4.estimates.window_s)
    assert limit_minutes(SITE, L4) * 60 > 2 * boots


def test_a_plan_whose_arms_name_their_blocks_is_given_time_for_its_longest_block() -> None:
    plan = load_plan(PLANS / "sm90-confounds.toml")
    longest = max(primes_s(plan, [n + 1]) for n in range(plan.blocks))
    assert limit_minutes(SITE, plan) * 60 > plan.estimates.setup_s + longest


def test_the_script_makes_room_for_the_harness() -> None:
    text = script("/usr/bin/python3", Path("/a b/h.pyz"), Path("/s/kit-1.json"))
    assert text == b"#!/bin/sh\nexec /usr/bin/python3 -I -S '/a b/h.pyz' slurm /s/kit-1.json\n"


def test_what_a_sites_wrapper_says_is_no_task() -> None:
    noise = "WARNING: maintenance on Friday, see JobId=none\n"
    assert parse_tasks(noise + SHOWN) == parse_tasks(SHOWN)


def test_states_as_slurm_tells_them() -> None:
    tasks = parse_tasks(SHOWN)
    assert set(tasks) == {"1_1", "1_2", "1_3", "1_5", "1_6", "1_7", "4"}
    assert tasks["1_3"].waits
    for state in ("RESV_DEL_HOLD", "CONFIGURING"):
        assert parse_tasks(SHOWN.replace("PENDING", state))["1_3"].waits
    assert not tasks["1_1"].has_ended
    assert (tasks["1_2"].has_ended, tasks["1_2"].exit_status) == (True, 52)
    assert (tasks["4"].has_ended, tasks["4"].exit_status) == (True, 0)


@pytest.mark.parametrize(
    ("state", "status", "signal", "want", "ended_as"),
    [
        ("COMPLETED", 0, 0, 0, ""),
        ("FAILED", 20, 0, 20, ""),
        ("FAILED", 0, 9, -9, ""),
        ("TIMEOUT", 0, 15, 52, "TIMEOUT"),
        ("NODE_FAIL", 0, 1, 52, "NODE_FAIL"),
        ("CANCELLED", 51, 0, 51, "CANCELLED"),
    ],
)
def test_ends(state: str, status: int, signal: int, want: int, ended_as: str) -> None:
    found = TaskState(state, "", status, signal)
    assert (found.exit_status, found.ended_as) == (want, ended_as)


@pytest.mark.parametrize(
    "text",
    ["JobId=1 Name=x\n", "JobId=1 ArrayJobId=1 ArrayTaskId=a JobState=RUNNING ExitCode=0:0\n"],
)
def test_answers_of_another_form(text: str) -> None:
    with pytest.raises(FormatError):
        parse_tasks(text)


@pytest.mark.parametrize(
    "text",
    [
        "gres = 1",
        "colour = 'x'",
        "container = 'docker'",
        "options = ['--job-name=mine']",
        "options = ['--exclude=node7', '-Mother']",
        "options = ['--arr=1-9']",
        "poll_s = 0",
        "[constraint]\nh100 = 'x'",
        "not toml",
    ],
)
def test_a_site_file_that_is_wrong(tmp_path: Path, text: str) -> None:
    (tmp_path / "slurm.toml").write_text(text)
    with pytest.raises(PlanError, match=r"slurm\.toml"):
        read_site(Home(tmp_path, tmp_path, tmp_path, tmp_path), {})


def test_a_site_file_by_its_place(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path, tmp_path, tmp_path)
    assert read_site(home, {}) == SlurmSite()
    (tmp_path / "slurm.toml").write_text('account = "a"\n[constraint]\n"9.0" = "h100"\n')
    assert read_site(home, {}) == SlurmSite(account="a", constraint={"9.0": "h100"})
    (tmp_path / "other.toml").write_text("poll_s = 3\n")
    assert read_site(home, {"KIT_SLURM": str(tmp_path / "other.toml")}).poll_s == 3
    with pytest.raises(PlanError, match="cannot be read"):
        read_site(home, {"KIT_SLURM": str(tmp_path / "none.toml")})


def job(run_id: str, plan: Plan, *blocks: int) -> Job:
    engine = EngineOnHost("reference", ("python3",), (), {}, "", Digest.of(b""))
    return Job(run_id, plan, engine, {}, "/r", "/s", "salt", blocks=blocks)


def test_a_study_is_completed_before_another_is_begun() -> None:
    plan = replace(DEMO, blocks=3)
    one, two, old = job("a", plan, 1), job("b", plan, 2), job("0", plan, 2)
    foreign = job("z", replace(plan, seed=99), 3)
    found = parts(plan, (1, 2, 3), (old, one, two, foreign), lambda j: j.run_id == "a")
    assert found == (Part(1, one, sealed=True), Part(2, two), Part(3))
    assert parts(plan, (1, 2), (one, two), lambda _: True) == (Part(1), Part(2))
    assert parts(plan, (3,), (), lambda _: True) == (Part(3),)
