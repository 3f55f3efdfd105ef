"""`kit trace`: from a claim down to its records, or from a record up to the claims on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import click

from analysis.claiming.evaluation import evaluate_project
from analysis.trace import UNBOUND, ReverseTrace, Trace, cited_places, reverse, trace
from kit.options import home, json_option
from kit.output import echo, print_json, table_lines


@click.command()
@click.argument("name", metavar="CLAIM|RECORD")
@click.option("--reverse", "up", is_flag=True, help="Name a record: say what rests on it.")
@json_option
def command(name: str, up: bool, as_json: bool) -> None:
    """Walk a claim down: function, the value of each boot, windows, journal lines, digests.

    With --reverse, RECORD is a run's id, the digest of its seal, or RUN:LINE for one journal line.
    The chain of each run is verified on the way.

    \b
    Example:
      kit trace smoke-cpu.draft.c8.throughput.mean
      kit trace --reverse 20261130T115921Z-smoke-cpu-5d0eba
      kit trace --reverse 20261130T115921Z-smoke-cpu-5d0eba:57 --json
    """
    here = home()
    evaluation = evaluate_project(here.root, here.data)
    found: Trace | ReverseTrace
    if up:
        found = reverse(name, evaluation, here.root, here.data)
        lines = _upwards(found)
    else:
        found = trace(name, evaluation, here.root, here.data, cited_places(here.root))
        lines = _downwards(found)
    if as_json:
        print_json(dataclasses.asdict(found))
        return
    for line in lines:
        echo(line)


def _downwards(found: Trace) -> Iterator[str]:
    yield f"{found.claim} = {found.printed}"
    yield f"  {found.text}"
    yield f"  cited     {', '.join(found.cited) or 'nowhere'}"
    yield f"  function  {found.function}"
    yield f"            {found.defined}"
    yield f"  study     {found.study} (paper/evidence.toml)"
    for told in found.blocks:
        yield f"  compared  {told}"
    yield from _by_boot(found)
    for window in found.windows:
        yield f"  window    {window.arm}, boot {window.boot}, window {window.window}"
        for place in window.lines:
            yield f"            {place}"
    for place in found.other_lines:
        yield f"  lines     {place}"
    for run in found.runs:
        yield f"  run       {run.run}"
        if run.closed:
            yield f"    state      {run.closed}"
        yield f"    seal       {run.seal}"
        yield f"    plan       {run.plan}"
        yield f"    harness    {run.harness}"
        yield f"    engine     {run.engine} ({run.runtime})"
        same = "the same" if run.engine_after == run.engine else run.engine_after
        if run.closed and run.engine_after == UNBOUND:
            same = "not bound: the host was gone"
        yield f"    after      {same}"
        yield f"    lock       {run.lock_digest} (images/{run.lock})"
        for name, value in run.bound.items():
            yield f"    bound      {value} ({name})"
        for model, digest in sorted(run.models.items()):
            yield f"    model      {digest} ({model})"
        yield f"    host       {run.host}, driver {run.driver}"
        for concurrency, error_ns in sorted(run.calibrated_p99_ns.items()):
            yield f"    client     p99 error {error_ns / 1e6:.4f} ms at concurrency {concurrency}"


def _by_boot(found: Trace) -> Iterator[str]:
    """One line a boot, then those of each arm together."""
    if not found.boots:
        return
    yield f"  by boot   {found.by_boot}"
    rows = [
        (one.host, str(one.block), one.boot, " ".join(one.windows), one.printed)
        for one in found.boots
    ]
    for line in table_lines(("host", "block", "boot", "window", "value"), rows):
        yield f"            {line}"
    for line in (*found.spread, f"the claim, of all of them: {found.printed}"):
        yield f"            {line}"


def _upwards(found: ReverseTrace) -> Iterator[str]:
    yield f"{found.run}{f', line {found.line}' if found.line else ''} ({found.seal})"
    if found.closed:
        yield f"  {found.closed}"
    cited = {id_: at for id_, at in found.claims.items() if at}
    for id_, at in cited.items():
        yield f"  claim     {id_}: {', '.join(at)}"
    yield f"  {len(found.claims)} claims can be made of it; {len(cited)} of them are cited"
    for finding in found.findings:
        yield f"  finding   {finding}"
