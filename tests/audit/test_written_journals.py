"""Journals that something other than the harness wrote: each gives its codes, and no other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sealed_run import Shape

from audit.runner import audit
from records import chain


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


@pytest.mark.parametrize("seal", [False, True])
def test_a_line_beyond_any_length_is_a_finding(project, seal):
    path = project.add_run("run-3", Shape(seal=seal)) / "events.jsonl"
    with path.open("r+b") as file:
        lines = sum(1 for _ in file)
        file.truncate(file.tell() + (1 << 25))
    found = [one for one in audit(project.root, project.data).findings if one.code == "CHAIN01"]
    assert [(one.where.line, "too long" in one.message) for one in found] == [(lines + 1, True)]


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
