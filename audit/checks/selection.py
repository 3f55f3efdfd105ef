"""What claims rest on, and what they are held against, was not chosen by its results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from analysis.claiming.evidence import EVIDENCE, Study, load_evidence, parse_evidence
from analysis.published import PUBLISHED, Published, load_published, parse_published
from audit.checks.harness import run_started
from audit.finding import Check, Code, Finding
from audit.git import Git
from audit.repository import RepositoryView
from records.checkpoint import RUNS_NAME, parse_runs
from records.errors import ClaimError, FormatError
from records.plan import Plan

DROPPED = Code(
    "SELECT01",
    "error",
    "a run that a study named is named no longer",
    "git holds a paper/evidence.toml in which the study rests on this run, or says why it does "
    "not. A run may be left out of a study for a reason in words that anybody can read; not in "
    "silence, nor by moving it to another study.",
    "name it under [study.<id>.left_out] of paper/evidence.toml, with the reason",
)
UNNAMED = Code(
    "SELECT02",
    "warning",
    "a sealed run of a study's plan that no study speaks of",
    "The run is committed, and of the plan of a study, yet paper/evidence.toml neither uses it nor "
    "says why not. Of several runs the ones that please could have been chosen.",
    "name it in paper/evidence.toml: under runs, or under left_out with the reason",
)
MOVED = Code(
    "SELECT03",
    "error",
    "a published figure, its test or its margin was changed after a run that it judges",
    "Figure, subject, test, margin and what measures it in a plan that was run are fixed before "
    "the data. git holds a commit in which RUNS lists a run of a plan that decides this claim, and "
    "paper/published.toml is not what it was.",
    "restore the entry from git; another rule is another entry, for later runs",
)

# A reason says something; one word, or a sign, says nothing.
_WORD = re.compile(r"[^\W\d_]+")
_LEAST_WORDS = 2


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Compare both files with what git holds of them, and the first with all runs."""
    git = repository.git(repository.root)
    plans = {run.name: s.plan for run in repository.runs if (s := run_started(run)) is not None}
    try:
        studies = load_evidence(repository.root)
    except ClaimError:
        return  # the check of claims says so
    yield from _unreasoned(studies)
    if git is None:
        return  # the check of the history says that it is not known
    yield from _dropped(repository, git, studies)
    if not repository.data.is_relative_to(repository.root):
        return  # records from elsewhere have a history of their own
    yield from _unnamed(repository, git, studies, plans)
    try:
        published = load_published(repository.root)
    except ClaimError:
        return
    yield from _moved(repository, git, published, plans)


def _dropped(
    repository: RepositoryView, git: Git, studies: Mapping[str, Study]
) -> Iterator[Finding]:
    said: set[tuple[str, str]] = set()
    for version in git.versions(repository.root / EVIDENCE):
        try:
            before = parse_evidence(version.decode("utf-8", "replace"))
        except ClaimError:
            continue
        for study in before.values():
            for run in sorted({*study.runs, *study.left_out} - _accounted(study.id, studies)):
                if (study.id, run) in said:
                    continue
                said.add((study.id, run))
                message = f"run {run}, study {study.id}: {DROPPED.title}"
                yield DROPPED.at(EVIDENCE.as_posix(), 0, message)


def _accounted(id_: str, studies: Mapping[str, Study]) -> set[str]:
    """The runs that a study names; of one that is gone those that another leaves out, and why."""
    if (study := studies.get(id_)) is not None:
        return {*study.runs, *study.left_out}
    return {run for study in studies.values() for run in study.left_out}


def _unreasoned(studies: Mapping[str, Study]) -> Iterator[Finding]:
    for study in studies.values():
        for run, why in study.left_out.items():
            if len(_WORD.findall(why)) < _LEAST_WORDS:
                message = f"run {run}, study {study.id}: left out without a reason in words"
                yield DROPPED.at(EVIDENCE.as_posix(), 0, message, repr(why), "a sentence")


def _unnamed(
    repository: RepositoryView, git: Git, studies: Mapping[str, Study], plans: Mapping[str, Plan]
) -> Iterator[Finding]:
    held = _listed(git.at("HEAD", repository.data / RUNS_NAME) or b"")
    accounted = {run for study in studies.values() for run in (*study.runs, *study.left_out)}
    of_plan = {study.plan for study in studies.values()}
    for run in sorted(held & plans.keys() - accounted):
        if plans[run].id in of_plan:
            shown = repository.show(repository.data / run)
            yield UNNAMED.at(shown, 0, "", f"plan {plans[run].id}", f"named in {EVIDENCE}")


def _moved(
    repository: RepositoryView,
    git: Git,
    published: Mapping[str, Published],
    plans: Mapping[str, Plan],
) -> Iterator[Finding]:
    """Each version that stood beside a run it judges, against the file as it is."""
    if not plans:
        return
    said: set[str] = set()
    commits = git.commits(repository.root / PUBLISHED, repository.data / RUNS_NAME)
    for commit in commits:
        runs = _listed(git.at(commit, repository.data / RUNS_NAME) or b"") & plans.keys()
        text = git.at(commit, repository.root / PUBLISHED) if runs else None
        try:
            then = parse_published((text or b"").decode("utf-8", "replace"))
        except ClaimError:
            continue
        for id_, one in then.items():
            deciding = {plans[run].id for run in runs if _decides(one, plans[run])}
            now = published.get(id_)
            if deciding and id_ not in said and _rule(now, deciding) != _rule(one, deciding):
                said.add(id_)
                got = _shown(now, deciding)
                want = f"{_shown(one, deciding)} (commit {commit[:12]})"
                yield MOVED.at(PUBLISHED.as_posix(), 0, f"{id_}: {MOVED.title}", got, want)


def _decides(one: Published, plan: Plan) -> bool:
    """Whether a run of this plan decides the claim: the others are only shown beside it."""
    measured = any(place.plan == plan.id for place in one.measured)
    return measured and str(plan.requirements.compute_capability) == one.of.capability


def _rule(one: Published | None, plans: Set[str]) -> object:
    """All that decides a verdict by runs of these plans; texts and places may be mended."""
    if one is None:
        return None
    margin = one.margin.relative if one.margin else None
    decided = dict(one.decided)
    return (
        one.figure,
        one.unit,
        one.quantity,
        one.test,
        one.of,
        margin,
        one.thresholds_ms,
        decided,
        _measured(one, plans),
    )


def _measured(one: Published, plans: Set[str]) -> set[tuple[str, tuple[str, ...], str]]:
    return {(m.plan, m.arms, m.window) for m in one.measured if m.plan in plans}


def _shown(one: Published | None, plans: Set[str]) -> str:
    if one is None:
        return "no such entry"
    margin = f", margin {one.margin.relative}" if one.margin else ""
    places = [f"{p} {'/'.join(arms)} {w}".strip() for p, arms, w in sorted(_measured(one, plans))]
    return f"{one.printed}, {one.test}{margin}, {one.of}, by {'; '.join(places) or 'no arm'}"


def _listed(runs: bytes) -> set[str]:
    try:
        return {leaf.run_id for leaf in parse_runs(runs.decode("utf-8", "replace"))}
    except FormatError:
        return set()


CHECK = Check(
    "selection",
    "What claims rest on, and what they are held against, was not chosen by its results.",
    (DROPPED, UNNAMED, MOVED),
    check,
)
