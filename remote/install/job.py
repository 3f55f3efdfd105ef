"""The job of a bundle, completed with what only the host knows: its places and the run's name.

Invariant: a template that was completed twice gives the same job, run id included, unless a new run
is asked for: what was begun is continued.
"""

from __future__ import annotations

import datetime
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from records import bundle, canonical
from records.cache_listing import CacheBinding
from records.decode import from_object, to_object
from records.errors import FormatError
from records.job import Job


@dataclass(frozen=True, slots=True)
class Here:
    """What the host decides. Empty processors or blocks, and 0: as the template, or as begun, says.

    `cache`: the warm cache that a run starts from.
    """

    root: Path
    python: str
    host_sites: tuple[str, ...]
    client_cpus: tuple[int, ...]
    engine_cpus: tuple[int, ...]
    blocks: tuple[int, ...]
    ends_unix_s: int = 0
    cache: CacheBinding | None = None


def jobs_below(root: Path) -> dict[str, Job]:
    """The job of each plan that was installed below `root`, by the name of its file.

    Left out: one that another version of the harness wrote, which this one would not carry out.
    """
    names = [bundle.JOB, *(p.name for p in sorted(root.glob(bundle.job_file("*", first=False))))]
    found = {name: _begun(root / name) for name in names}
    return {name: job for name, job in found.items() if job is not None}


def continued_job(template: Path, here: Here) -> Job | None:
    """The job of this template that stands below the root, with a new end where one is given.

    None where none does, or where the template or what the host decides now differs.
    """
    target = here.root / template.name
    begun = _begun(target)
    if begun is None:
        return None
    same = _completed(canonical.decode(template.read_bytes()), here, begun.run_id)
    if begun != replace(same, ends_unix_s=begun.ends_unix_s):
        return None
    kept = replace(begun, ends_unix_s=here.ends_unix_s or begun.ends_unix_s)
    _write(target, kept)
    return kept


def new_job(template: Path, here: Here) -> Job:
    """Complete `template` below the root, under its own name, as a new run.

    FormatError where it is no template.
    """
    value = canonical.decode(template.read_bytes())
    plan_id = from_object(Job, value).plan.id
    now = datetime.datetime.now(datetime.timezone.utc)
    job = _completed(value, here, f"{now:%Y%m%dT%H%M%SZ}-{plan_id}-{secrets.token_hex(3)}")
    _write(here.root / template.name, job)
    return job


def rebind(target: Path, job: Job, cache: CacheBinding | None) -> Job:
    """The same run on another cache, written to `target`; for one that has booted nothing yet."""
    changed = replace(job, cache=cache)
    _write(target, changed)
    return changed


def _write(target: Path, job: Job) -> None:
    fresh = target.with_suffix(".partial")
    fresh.write_bytes(canonical.encode(to_object(job)))
    fresh.replace(target)


def _begun(target: Path) -> Job | None:
    try:
        return from_object(Job, canonical.decode(target.read_bytes()))
    except FileNotFoundError:
        return None
    except FormatError:  # of another version of the harness, which would not carry it out
        return None


def _completed(value: Any, here: Here, run_id: str) -> Job:
    words = {bundle.ROOT_WORD: str(here.root), bundle.PYTHON_WORD: here.python}
    words[bundle.RUN_WORD] = run_id
    job = from_object(Job, _filled(value, words))
    sites = job.engine.site_directories
    if sites:  # the reference server has none
        engine = replace(job.engine, site_directories=(*sites, *here.host_sites))
        job = replace(job, engine=engine)
    return replace(
        job,
        client_cpus=here.client_cpus or job.client_cpus,
        engine_cpus=here.engine_cpus or job.engine_cpus,
        blocks=here.blocks or job.blocks,
        ends_unix_s=here.ends_unix_s or job.ends_unix_s,
        cache=here.cache or job.cache,
    )


def _filled(value: Any, words: dict[str, str]) -> Any:
    """A plain JSON value with the words of a template replaced in every string."""
    if isinstance(value, str):
        for word, meaning in words.items():
            value = value.replace(word, meaning)
        return value
    if isinstance(value, dict):
        return {key: _filled(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    return value
