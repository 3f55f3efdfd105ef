"""Whether a run may decide anything: bound alike before and after, on one host with one driver.

Of a run that was closed, its host being gone, the binding before has to do; what rests on it says
so.

Invariant: judged by what the run recorded of itself; audit/checks/basis.py asks the same of every
run behind a cited claim, and more.
"""

from __future__ import annotations

from collections.abc import Sequence

from analysis.claiming.reading import StudyRun

_HOST_FACTS = ("driver", "cuda", "kernel")


def unsound(runs: Sequence[StudyRun]) -> str:
    """What is wrong with the first of these runs that may not decide; "" where all may."""
    for run in runs:
        why = _engine(run) or _models(run) or _host(run)
        if why:
            return f"run {run.run_id} decides nothing: {why}"
    return ""


def _wanted(run: StudyRun) -> set[str]:
    return {"before"} if run.closed else {"before", "after"}


def _engine(run: StudyRun) -> str:
    phases = {engine.phase for engine in run.engines}
    bound = {(e.runtime, e.digest, e.lock_digest) for e in run.engines}
    if not _wanted(run) <= phases:
        return "its engine was not bound both before and after"
    return "its engine changed on the way" if len(bound) > 1 else ""


def _models(run: StudyRun) -> str:
    for model in run.plan.models:
        bound = [one for one in run.models if one.model == model]
        if not _wanted(run) <= {one.phase for one in bound}:
            return f"model {model} was not bound both before and after"
        if any(one.files != bound[0].files for one in bound):
            return f"model {model} changed on the way"
    return ""


def _host(run: StudyRun) -> str:
    for host in run.hosts[1:]:
        for name in _HOST_FACTS:
            if host.facts.get(name) != run.hosts[0].facts.get(name):
                return f"its host's {name} changed on the way"
        if host.host_id != run.host_id:
            return "its host changed on the way"
    return ""
