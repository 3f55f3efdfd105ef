"""Every kind of load and source of prompts, from a plan's file to sealed records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from called_kit import CalledKit

from records import schema
from records.digest import Digest
from records.measurement import Request
from records.run_directory import RunDirectory
from remote.client.schedule import due_times

ROOT = Path(__file__).parents[2]
DEMO = (ROOT / "kit" / "plans" / "demo.toml").read_text()
PROMPT_FILES = {
    "ids.jsonl": "".join(f'{{"prompt":[{",".join(["7"] * n)}]}}\n' for n in (21, 22, 23)),
    "question.jsonl": '{"question_id":1,"category":"a","turns":["Why is the sky blue?","And?"]}\n'
    '{"question_id":2,"category":"b","turns":["Name three rivers."]}\n',
    "share/gpt.json": json.dumps(
        [{"id": "x", "conversations": [{"from": "human", "value": "Tell me of bees."}]}]
    ),
}
WINDOWS = """
[[windows]]
id = "constant"
load = { kind = "constant", concurrency = 4, rate_millihertz = 40_000, requests = 8 }

[[windows]]
id = "poisson"
load = { kind = "poisson", concurrency = 4, rate_millihertz = 40_000, duration_ms = 300 }

[[windows]]
id = "burst"
load = { kind = "burst", concurrency = 3, rate_millihertz = 10_000, requests = 6 }

[[windows]]
id = "chat"
endpoint = "chat"
load = { kind = "closed", concurrency = 2, requests = 4 }

[[windows]]
id = "jsonl"
load = { kind = "closed", concurrency = 2, requests = 6 }
prompts = { source = "jsonl", path = "own/ids.jsonl", count = 3, seed = 1, unique = false }

[[windows]]
id = "spec-bench"
endpoint = "chat"
load = { kind = "closed", concurrency = 1, requests = 4 }
prompts = { source = "spec-bench", path = "own/question.jsonl", count = 2, unique = true }

[[windows]]
id = "sharegpt"
load = { kind = "closed", concurrency = 1, requests = 2 }
prompts = { source = "sharegpt", path = "own/share/gpt.json", count = 1, unique = true }

[[windows]]
id = "random"
load = { kind = "closed", concurrency = 2, requests = 4 }
prompts = { source = "random", count = 2, input_tokens = 33, token_low = 5, token_high = 900 }
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """One run of a plan that stands, with its prompts, elsewhere than the working directory."""
    top = tmp_path_factory.mktemp("kinds")
    for name, text in PROMPT_FILES.items():
        path = top / "plans" / "own" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    head = DEMO[: DEMO.index("[[windows]]")]
    for old, new in (
        ('id = "demo"', 'id = "kinds"'),
        ("blocks = 2", "blocks = 1"),
        ("output_tokens = 50", "output_tokens = 8"),
        ("max_tokens = 80", "max_tokens = 6"),
        ("min_tokens = 80", "min_tokens = 6"),
    ):
        assert old in head
        head = head.replace(old, new)
    one_arm = head[: head.index('[[arms]]\nid = "large-chunks"')]
    plan = top / "plans" / "kinds.toml"
    plan.write_text(one_arm + head[head.index("[window_defaults]") :] + WINDOWS)
    kit = CalledKit(top)
    done = kit.call("reproduce", "--plan", str(plan), "--json")
    assert done.returncode == 0, done.stderr
    return kit.fetched_run()


def requests(run: RunDirectory, window: str) -> list[Request]:
    events = (line.event for line in run.read())
    batches = (e for e in events if isinstance(e, schema.WindowRequests) and e.window == window)
    return [request for batch in batches for request in batch.requests]


def started(run: RunDirectory) -> schema.RunStarted:
    return next(e.event for e in run.read() if isinstance(e.event, schema.RunStarted))


def test_every_window_completes_and_is_not_void(run: RunDirectory) -> None:
    ended = [e.event for e in run.read() if isinstance(e.event, schema.WindowEnded)]
    assert len(ended) == WINDOWS.count("[[windows]]")
    for window in ended:
        report = window.report
        assert report.planned == report.completed + report.failed + report.cancelled
        assert (report.failed, len(requests(run, window.window))) == (0, report.planned)
        assert [r for r in window.void if not r.startswith(("client", "calib", "host"))] == []


@pytest.mark.parametrize("kind", ["constant", "poisson", "burst"])
def test_an_open_loop_follows_the_schedule_of_its_seed(run: RunDirectory, kind: str) -> None:
    plan = started(run).plan
    window = next(w for w in plan.windows if w.id == kind)
    due = list(due_times(window.load, window.prompts.seed))
    assert [r.scheduled_ns for r in requests(run, kind)] == due
    assert len(due) > 1


@pytest.mark.parametrize(("window", "tokens"), [("jsonl", {21, 22, 23}), ("random", {33})])
def test_the_prompts_arrive_as_the_files_have_them(
    run: RunDirectory, window: str, tokens: set[int]
) -> None:
    assert {r.prompt_tokens for r in requests(run, window)} == tokens


def test_prompt_files_are_bound_by_digest_in_the_records(run: RunDirectory) -> None:
    bound = {w.prompts.path: w.prompts.digest for w in started(run).plan.windows if w.prompts.path}
    assert bound == {f"own/{name}": Digest.of(t.encode()) for name, t in PROMPT_FILES.items()}
