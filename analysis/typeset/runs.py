"""The runs behind the paper: digests, engine, host, driver, dates, from the records themselves.

Invariant: a host goes by its salted id alone; what a record does not tell is said to be untold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from analysis.claiming.evidence import Study
from analysis.claiming.reading import StudyRun
from analysis.facts import part, parts
from analysis.trace import UNBOUND, RunTrace, run_trace
from analysis.typeset.provenance import RunName
from analysis.typeset.words import code, command, escaped, joined

_UNTOLD = "not in the records"
_S = 1_000_000_000


def run_names(studies: Mapping[str, Study], runs: Mapping[str, StudyRun]) -> dict[str, RunName]:
    """A short name for each run, in the order of paper/evidence.toml: R1, R2 and so on."""
    seals = {run: seal for study in studies.values() for run, seal in study.runs.items()}
    return {
        run: RunName(f"R{place}", seal, closed=run in runs and runs[run].closed is not None)
        for place, (run, seal) in enumerate(seals.items(), 1)
    }


def runs_tex(runs: Mapping[str, StudyRun], names: Mapping[str, RunName], data: Path) -> bytes:
    """An entry of rows for each run that has a name, in order of name."""
    lines = []
    for run_id, name in names.items():
        if run_id not in runs:
            continue
        lines.append(command("kitrunbegin", run_id, name.short, code(run_id)))
        lines += [
            command("kitrunrow", escaped(label), text)
            for label, text in _rows(runs[run_id], run_trace(runs[run_id], data))
        ]
        lines.append(r"\kitrunend")
    return joined(lines)


def newest_record(runs: Mapping[str, StudyRun]) -> int:
    """When the newest of these runs began, in seconds since 1970: the paper's own date."""
    return max((run.started.clock.realtime_ns // _S for run in runs.values()), default=0)


def _rows(run: StudyRun, found: RunTrace) -> Iterator[tuple[str, str]]:
    facts = run.hosts[0].facts if run.hosts else {}
    began = datetime.fromtimestamp(run.started.clock.realtime_ns / _S, UTC)
    yield "began", escaped(f"{began:%Y-%m-%d %H:%M} UTC")
    if found.closed:
        yield "state", escaped(found.closed)
    yield "plan", f"{escaped(run.plan.id)}, {code(found.plan)}"
    yield "seal", code(found.seal)
    yield "harness", code(found.harness)
    yield (
        "engine",
        f"{escaped(f'{run.plan.engine.name} {run.plan.engine.version}')}, {found.runtime}",
    )
    yield "engine, before the boots", code(found.engine)
    same = found.engine_after == found.engine
    if found.closed and found.engine_after == UNBOUND:
        yield "engine, after them", "not bound: the host was gone"
    else:
        yield "engine, after them", "the same" if same else code(found.engine_after)
    yield "engine's lock", f"{code(f'images/{found.lock}')}, {code(found.lock_digest)}"
    for name, bound in found.bound.items():
        yield f"engine, {name}", code(bound)
    for model, digest in sorted(found.models.items()):
        yield f"model {model}", code(digest)
    yield "host", f"salted id {code(found.host or _UNTOLD)}"
    yield "GPU driver", escaped(found.driver)
    gpus = [str(gpu.get("name", _UNTOLD)) for gpu in parts(facts, "gpus")]
    yield "GPUs", escaped(", ".join(gpus) or "none")
    for label, key in (("CUDA", "cuda"), ("kernel", "kernel"), ("system", "os")):
        yield label, escaped(str(facts.get(key, _UNTOLD)))
    model = part(facts, "cpu").get("model", _UNTOLD)
    yield "CPU", escaped(f"{model}, {facts.get('cores_online', _UNTOLD)} cores online")
    counted: dict[str, int] = {}
    for boot in run.boots:
        counted[boot.outcome] = counted.get(boot.outcome, 0) + 1
    yield "boots", escaped(", ".join(f"{n} {name}" for name, n in sorted(counted.items())))
