"""The metadata of an RO-Crate over sealed runs: what was run by what, and which files came of it.

Invariant: every entity is made of the records alone, so the same runs give the same bytes. What
nobody recorded is left out: who carried a run out is known only where the caller says so.

RO-Crate 1.2 (https://w3id.org/ro/crate/1.2) with the terms of the Process Run Crate profile 0.5
(https://w3id.org/ro/wfrun/process/0.5): a CreateAction for each run (the harness makes the records)
and one for each boot (the engine; logs and counters come of it).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from analysis.reading import Boot, Run
from analysis.tables import SYNTHETIC
from records import canonical
from records.decode import to_object
from records.digest import Digest
from records.journal import EVENTS_NAME
from records.schema import Clock
from records.seal import SEAL_NAME, File, Seal

METADATA_NAME = "ro-crate-metadata.json"
CRATE = "https://w3id.org/ro/crate/1.2"
PROCESS = "https://w3id.org/ro/wfrun/process/0.5"
_CC_BY = "https://spdx.org/licenses/CC-BY-4.0"
_ENGINE_HOME = "https://github.com/vllm-project/vllm"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES = {
    ".jsonl": "application/jsonl",
    ".json": "application/json",
    ".gz": "application/gzip",
}
Entity = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CratedRun:
    """A run with its seal; `journal`, `seal_file`: length and digest of the two files beside it."""

    run: Run
    seal: Seal
    journal: File
    seal_file: File

    @property
    def files(self) -> dict[str, File]:
        """Every file of the run by its path in the run."""
        return {EVENTS_NAME: self.journal, SEAL_NAME: self.seal_file, **self.seal.files}


@dataclass(frozen=True, slots=True)
class Agent:
    """Who carried the runs out. `url`: a ROR or ORCID identifier, or a home page; "" for none."""

    name: str
    url: str = ""

    @property
    def entity_id(self) -> str:
        """What the agent is called in the crate."""
        return self.url or f"#{quote(self.name, safe='')}"

    @property
    def is_person(self) -> bool:
        """ORCID identifies people; all others are taken for organisations."""
        return self.url.startswith("https://orcid.org/")


def plan_bytes(run: Run) -> bytes:
    """The plan as its digest is taken: canonical JSON, no line end."""
    return canonical.encode(to_object(run.started.plan))


def plan_path(run: Run) -> str:
    """Where the plan stands in the crate: named by its digest."""
    return f"plans/{run.started.plan.id}-{run.started.plan_digest.hex[:12]}.json"


def metadata(crated: Sequence[CratedRun], agent: Agent | None = None) -> bytes:
    """ro-crate-metadata.json. `agent`: who carried the runs out; None: unsaid."""
    graph = [*_root(crated, agent), *_entities(crated, agent)]
    once = {entity["@id"]: _compact(entity) for entity in graph}
    value = {"@context": f"{CRATE}/context", "@graph": list(once.values())}
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _compact(entity: Entity) -> Entity:
    """Lists of one as that one, as RO-Crate 1.2 recommends."""
    return {
        key: value[0] if isinstance(value, list) and len(value) == 1 else value
        for key, value in entity.items()
    }


def _root(crated: Sequence[CratedRun], agent: Agent | None) -> Iterator[Entity]:
    runs = [one.run for one in crated]
    synthetic = any(run.started.synthetic for run in runs)
    names = ", ".join(run.run_id for run in runs)
    said = f"{SYNTHETIC} " if synthetic else ""
    yield {
        "@id": METADATA_NAME,
        "@type": "CreativeWork",
        "name": "RO-Crate metadata",
        "description": "What the files of this crate are and what made them",
        "encodingFormat": "application/ld+json",
        "conformsTo": _to(CRATE),
        "about": _to("./"),
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{'SYNTHETIC: ' if synthetic else ''}records of {names}",
        "description": f"{said}Hash-chained records of benchmark runs, sealed, with engine logs "
        "and counters; FORMAT.md of spec-fp8-reproduction-kit tells their form.",
        "datePublished": max(_date(one.run) for one in crated),
        "license": _to(_CC_BY),
        "conformsTo": _to(PROCESS),
        "keywords": ["speculative decoding", "benchmark", *(["synthetic"] if synthetic else [])],
        "hasPart": [*[_to(f"{r.run_id}/") for r in runs], *_refs(plan_path(r) for r in runs)],
        "mentions": [_to(action["@id"]) for one in crated for action in _actions(one, agent)],
        **({"publisher": _to(agent.entity_id), "author": _to(agent.entity_id)} if agent else {}),
    }
    yield {
        "@id": PROCESS,
        "@type": ["CreativeWork", "Profile"],
        "name": "Process Run Crate",
        "description": "An RO-Crate profile for the execution of tools",
        "version": "0.5",
    }
    yield {
        "@id": _CC_BY,
        "@type": "CreativeWork",
        "name": "Creative Commons Attribution 4.0 International",
        "description": "Free to share and adapt with credit",
    }
    if agent:
        yield {
            "@id": agent.entity_id,
            "@type": "Person" if agent.is_person else "Organization",
            "name": agent.name,
            "description": "Carried the runs out",
            **({"url": agent.url} if agent.url else {}),
        }


def _entities(crated: Sequence[CratedRun], agent: Agent | None) -> Iterator[Entity]:
    for one in crated:
        run = one.run
        yield from _tools(run)
        yield _plan(run)
        yield {
            "@id": f"{run.run_id}/",
            "@type": "Dataset",
            "name": run.run_id,
            "description": f"{SYNTHETIC if run.started.synthetic else 'A sealed run.'} Plan "
            f"{run.started.plan.id}; seal sha256:{one.seal_file.digest.hex}"
            + (f"; {run.closing}" if run.closed else ""),
            "identifier": _ni(one.seal_file.digest),
            "hasPart": [_to(_file_id(run, name)) for name in sorted(one.files)],
        }
        for name, file in sorted(one.files.items()):
            yield _file(run, name, file)
        yield from _models(run)
        yield from _actions(one, agent)


def _tools(run: Run) -> Iterator[Entity]:
    started = run.started
    yield {
        "@id": _ni(started.harness_digest),
        "@type": "SoftwareApplication",
        "name": "measurement harness of spec-fp8-reproduction-kit",
        "description": f"One archive, {started.harness_digest}, run by Python {started.python}",
        "url": _ni(started.harness_digest),
        "version": str(started.harness_digest),
    }
    plan = started.plan
    if started.synthetic:
        yield {
            "@id": "#reference-server",
            "@type": "SoftwareApplication",
            "name": "reference server (SYNTHETIC, no engine)",
            "description": SYNTHETIC,
            "url": _ni(started.harness_digest),
            "version": str(started.harness_digest),
        }
    for engine in {engine.digest: engine for engine in run.engines}.values():
        yield {
            "@id": _ni(engine.digest),
            "@type": "SoftwareApplication",
            "name": plan.engine.name,
            "description": f"Runtime {engine.runtime}, bound as {engine.digest}, lock "
            f"{engine.lock} ({engine.lock_digest})",
            "url": _ENGINE_HOME,
            "version": plan.engine.version,
        }


def _engine_id(run: Run) -> str:
    if run.started.synthetic:
        return "#reference-server"
    return _ni(run.engines[0].digest) if run.engines else _ni(run.started.harness_digest)


def _plan(run: Run) -> Entity:
    return {
        "@id": quote(plan_path(run)),
        "@type": "File",
        "name": f"plan {run.started.plan.id}",
        "description": f"{run.started.plan.title}; what was to be measured, as canonical JSON",
        "encodingFormat": "application/json",
        "contentSize": str(len(plan_bytes(run))),
        "sha256": run.started.plan_digest.hex,
    }


def _file(run: Run, name: str, file: File) -> Entity:
    return {
        "@id": _file_id(run, name),
        "@type": "File",
        "name": name,
        "description": f"{_what(name)} of run {run.run_id}",
        "encodingFormat": _TYPES.get(name[name.rfind(".") :], "application/octet-stream"),
        "contentSize": str(file.bytes),
        "sha256": file.digest.hex,
    }


def _what(name: str) -> str:
    known = {EVENTS_NAME: "Journal, one event a line,", SEAL_NAME: "Seal"}
    return known.get(name, "Engine log" if name.startswith("logs/") else "Counters page")


def _models(run: Run) -> Iterator[Entity]:
    for model in run.models:
        if model.phase == "before":
            files = ", ".join(f"{name} {digest}" for name, digest in sorted(model.files.items()))
            yield {
                "@id": f"#model-{quote(model.model)}",
                "@type": "CreativeWork",
                "name": model.model,
                "description": f"A model, not part of this crate: {files}",
            }


def _actions(one: CratedRun, agent: Agent | None) -> list[Entity]:
    run, ended = one.run, one.run.ended
    by = {"agent": _to(agent.entity_id)} if agent else {}
    models = [_to(f"#model-{quote(m.model)}") for m in run.models if m.phase == "before"]
    of_run = {
        "@id": f"#run-{quote(run.run_id)}",
        "@type": "CreateAction",
        "name": f"Run {run.run_id}",
        "description": f"Plan {run.started.plan.id}: {len(run.boots)} boots begun"
        + (f", {ended.completed} completed, {ended.failed} failed" if ended else "")
        + (f"; {run.closing}" if run.closed else ""),
        "startTime": _time(run.started.clock.realtime_ns),
        **({"endTime": _time(ended.clock.realtime_ns)} if ended else {}),
        "instrument": _to(_ni(run.started.harness_digest)),
        "object": _to(quote(plan_path(run))),
        "result": [_to(_file_id(run, name)) for name in sorted(one.files)],
        **by,
    }
    return [of_run, *[_boot(one, boot, models, by) for boot in run.boots]]


def _boot(one: CratedRun, boot: Boot, models: list[Entity], by: Entity) -> Entity:
    run, started, ended = one.run, boot.started, boot.ended
    logs = set(ended.logs if ended else {})
    logs |= {name for w in boot.windows if w.ended for name in w.ended.metrics}
    made = [_to(_file_id(run, name)) for name in sorted(logs & one.files.keys())]
    failed = boot.outcome != "completed"
    # An interrupted boot may have ended before the host was started anew: two monotonic clocks.
    known = ended is not None and boot.outcome != "interrupted"
    return {
        "@id": f"#boot-{quote(run.run_id)}-{quote(started.boot)}",
        "@type": "CreateAction" if made else "ActivateAction",
        "name": f"Boot {started.boot} of run {run.run_id}",
        "description": f"Arm {started.arm}: {' '.join(started.argv)}",
        "startTime": _time(started.clock.realtime_ns),
        **({"endTime": _time(_wall(started.clock, boot.ended_ns))} if known else {}),
        "instrument": _to(_engine_id(run)),
        "object": models,
        **({"result": made} if made else {}),
        "actionStatus": f"http://schema.org/{'Failed' if failed else 'Completed'}ActionStatus",
        **({"error": boot.cause} if failed and (ended or boot.gone) and boot.cause else {}),
        **by,
    }


def _wall(clock: Clock, monotonic_ns: int) -> int:
    return clock.realtime_ns + monotonic_ns - clock.monotonic_ns


def _time(realtime_ns: int) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    moment = _EPOCH + timedelta(microseconds=realtime_ns // 1000)
    return moment.isoformat(timespec="milliseconds")


def _date(run: Run) -> str:
    return _time((run.ended or run.started).clock.realtime_ns)[:10]


def _file_id(run: Run, name: str) -> str:
    return quote(f"{run.run_id}/{name}")


def _ni(digest: Digest) -> str:
    """A URI that names a thing by its digest (RFC 6920)."""
    packed = base64.urlsafe_b64encode(bytes.fromhex(digest.hex)).rstrip(b"=")
    return f"ni:///sha-256;{packed.decode()}"


def _to(id_: str) -> Entity:
    return {"@id": id_}


def _refs(paths: Iterator[str]) -> list[Entity]:
    return [_to(quote(path)) for path in dict.fromkeys(paths)]
