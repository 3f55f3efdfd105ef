"""Records name places; they never say where on a host those were."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kit.planning.plan_file import parse_plan
from records.digest import Digest
from records.job import EngineOnHost, Job, ModelOnHost
from remote.places import Places

DEMO = (Path(__file__).parents[2] / "kit" / "plans" / "demo.toml").read_text()


@pytest.fixture
def job():
    return Job(
        run_id="r",
        plan=parse_plan(DEMO, "demo.toml"),
        engine=EngineOnHost(
            runtime="wheels",
            launcher=("/srv/alice/kit/engine/bin/python", "-m", "server"),
            site_directories=("/srv/alice/kit/engine/lib/python3.11/site-packages", "/opt/site"),
            env={},
            lock="lock",
            lock_digest=Digest.of(b""),
        ),
        models={"smol": ModelOnHost("/srv/alice/kit/models/smol", {})},
        run_directory="/srv/alice/kit/runs/r",
        scratch="/srv/alice/kit/scratch/r",
        host_salt="salt",
    )


def test_every_place_of_a_job_is_named(job):
    hide = Places.of(job).hide
    assert hide("--model /srv/alice/kit/models/smol") == "--model <models>/smol"
    assert hide("/srv/alice/kit/engine/bin/python") == "<engine>/bin/python"
    assert hide("/srv/alice/kit/scratch/r/cache/warm") == "<scratch>/cache/warm"
    assert hide("/srv/alice/kit/runs/r") == "<run>"
    assert hide("/opt/site/torch") == "<site2>/torch"
    site = "/srv/alice/kit/engine/lib/python3.11/site-packages/vllm/x.py"
    assert hide(site) == "<site>/vllm/x.py"


def test_values_are_searched_to_their_leaves_and_keys(job):
    value = {"/opt/site/a": ["/srv/alice/kit/runs/r", 1, None, {"b": "/opt/site"}]}
    assert Places.of(job).hide_in(value) == {"<site2>/a": ["<run>", 1, None, {"b": "<site2>"}]}


def test_a_system_interpreter_does_not_hide_half_the_file_system(job):
    engine = dataclasses.replace(job.engine, launcher=("/usr/bin/python3", "-m", "server"))
    hide = Places.of(dataclasses.replace(job, engine=engine)).hide
    assert hide("/usr/lib/x") == "/usr/lib/x"
