"""What is cited may be claimed: bound runs, usable windows, comparisons of one factor alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.claiming.claim import Value
from analysis.claiming.comparison import Comparison
from analysis.claiming.documents import Citation
from analysis.claiming.reading import StudyRun
from analysis.claiming.resolution import unresolved
from analysis.claims import differing_factors
from analysis.comparing.decisions import unlike
from audit.block_mates import across_blocks, cited_across
from audit.comparability import confounds
from audit.finding import Check, Code, Finding
from audit.git import Git
from audit.paper import paper
from audit.repository import RepositoryView
from audit.side_by_side import unsaid
from records.digest import Digest

UNBOUND = Code(
    "BASIS01",
    "error",
    "a claim rests on a run that was not bound alike before and after",
    "Engine and models are bound by digest before the boots and after them; a number from a run "
    "whose ends differ, or whose end is missing, belongs to no known engine.",
    "take the run out of paper/evidence.toml, or measure again",
)
UNLOCKED = Code(
    "BASIS02",
    "error",
    "a claim rests on an engine that no lock under images/ holds",
    "The lock that a run names by digest must be a file under images/, as it is or as it was in "
    "some commit: otherwise nobody can install what was measured.",
    "restore the lock under images/",
)
DRIFTED = Code(
    "BASIS03",
    "error",
    "a claim rests on a run whose host or driver changed on the way",
    "Host id, driver, CUDA version and kernel are those of the start at every later observation.",
    "take the run out of paper/evidence.toml, or measure again",
)
VOID = Code(
    "BASIS04",
    "error",
    "a claim uses a void window, or one of a boot that did not complete",
    "A void window keeps its records and gives no number; a boot that failed is no replicate.",
    "let the claim read usable windows only",
)
TOO_SMALL = Code(
    "BASIS05",
    "error",
    "a claimed difference, order or count is not above the error of the client's stamps",
    "Each run calibrates its client on its host at the concurrency of the window. A difference of "
    "times that is not above the errors of both its sides may be the client's, and so may a ratio "
    "or spread of rates, an order one of whose arms lies so near to the first, and whether none, "
    "any or all requests meet an objective where one does by less. An error is that of a stamp for "
    "a time, spread over the fewest tokens of a request for one per token; a rate errs by what the "
    "client's clock ran on for after the window's last stamp, goodput also by the requests too "
    "near to the threshold (analysis/claiming/resolution.py).",
    "do not claim it, or measure with a better client",
)
FACTORS = Code(
    "BASIS06",
    "error",
    "a comparison of arms that are not declared to differ in that factor alone",
    "Each arm of a plan declares its factors. Two arms may be compared in a factor only if it is "
    "the one in which their declarations differ.",
    "compare other arms, or add an arm that differs in this factor alone",
)
CONFOUNDED = Code(
    "BASIS07",
    "error",
    "a comparison in one factor is also one of something else that the engine decided",
    "The engine's own log says which attention backend, CUDA-graph mode, model runner and cache "
    "state it used. A comparison of precision whose arms ran different kernels compares kernels.",
    "pin what differs (backend, graph mode, runner) so that one factor is left",
)
UNLIKE = Code(
    "BASIS08",
    "error",
    "the boots behind a claim did not decide alike",
    "Boots of one arm are replicates only if the engine decided the same in each.",
    "see the table of decisions; declare what differs as arms of their own",
)
UNDECLARED = Code(
    "BASIS09",
    "error",
    "a claim mixes arms without saying how",
    "A function that reads several arms either compares them in a declared factor or ranks them.",
    "use Reading.compare or Reading.rank",
)
STRATA = Code(
    "BASIS10",
    "error",
    "a claim pools runs that may not be pooled",
    "Runs are pooled only if format, plan, harness, engine and host agree (records/schema.py); "
    "anything else is another stratum.",
    "name the runs as separate studies in paper/evidence.toml",
)
UNDECIDED = Code(
    "BASIS11",
    "error",
    "a claim rests on a boot that does not say what the engine decided",
    "engine.decided stands between the start of each measured boot and its windows.",
    "take the run out of paper/evidence.toml, or measure again",
)
NOTHING = Code(
    "BASIS12",
    "error",
    "a claim that reads no record",
    "A function of a claim is handed the records and notes what it asks of them. One that asks for "
    "nothing prints a number that somebody typed.",
    "let the function compute its value from the records, or take the claim out",
)
UNSAID = Code(
    "BASIS13",
    "error",
    "acceptance of two arms is set side by side whose texts differ, and nothing says so",
    "From the first other token on two arms write different texts, and a drafter guesses one text "
    "more easily than another: their acceptance lengths then compare texts, too. It is said where "
    "the same finding, page or section cites how many prompts the two answered alike "
    "(audit/side_by_side.py); a table that lists arms is no sentence about them.",
    "cite texts.same or texts.other of the two beside it, or of each with the same third arm, and "
    "say what it means; or set other arms side by side",
)

ACROSS = Code(
    "BASIS14",
    "error",
    "arms are set side by side across blocks",
    "A host is faster in one block of a run than in another. Where a block holds one arm and not "
    "the other, their difference is also that of the blocks, so arms are compared and ranked "
    "within the blocks that hold all of them (records/plan.py). The tokens of answers, which no "
    "speed changes, are compared wherever they were given. Nor does one finding, or one paragraph "
    "elsewhere, cite the speeds of two arms of a study that share no block at all.",
    "use Reading.compare or Reading.rank; compare arms that share a block",
)


@dataclass(frozen=True, slots=True)
class _Cited:
    """A cited value, the runs behind it, and the first place that cites it."""

    value: Value
    runs: tuple[StudyRun, ...]
    at: Citation

    def finding(self, code: Code, got: str, want: str) -> Finding:
        message = f"{self.value.claim.id}: {code.title}"
        return code.at(self.at.file, self.at.line, message, got, want)

    def decisions(self, arm: str = "", window: str = "") -> list[Mapping[str, Any]]:
        """Facts decided by the boots that were measured, of one arm and window or of all."""
        uses = {
            (u.run, u.boot)
            for u in self.value.measured
            if arm in ("", u.arm) and window in ("", u.window)
        }
        return [
            boot.decided.facts
            for run in self.runs
            for boot in run.boots
            if boot.decided is not None and (run.run_id, boot.started.boot) in uses
        ]


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold every cited claim to the rules under which it may be made."""
    view = paper(repository)
    bound: dict[str, list[tuple[Code, str, str]]] = {}
    for value, citation in view.cited_values():
        runs = tuple(view.evaluation.runs[run] for run in value.runs)
        cited = _Cited(value, runs, citation)
        for run in runs:
            if run.run_id not in bound:
                bound[run.run_id] = list(_run(repository, run))
            for code, got, want in bound[run.run_id]:
                yield cited.finding(code, got, want)
        yield from judge(cited.value, cited.runs, cited.at)
    for one in unsaid(view):
        found = _Cited(one.value, (), one.at)
        yield found.finding(UNSAID, one.apart, f"{one.companion} cited in {one.at.file}")
    for at, value, got in cited_across(view):
        yield _Cited(value, (), at).finding(ACROSS, got, "arms that share a block")


def judge(value: Value, runs: tuple[StudyRun, ...], at: Citation) -> Iterator[Finding]:
    """The rules that concern one claim: windows, arms, comparisons, pooling."""
    cited = _Cited(value, runs, at)
    if not value.lines:
        yield cited.finding(NOTHING, f"{value.printed}, from no line", "lines of a journal")
    yield from _windows(cited)
    yield from _pooled(cited)
    arms = cited.value.arms
    named = {arm for c in value.comparisons for arm in (c.first, c.second)} | set(value.ranked)
    if len(arms) > 1 and set(arms) - named:
        yield cited.finding(UNDECLARED, ", ".join(arms), "one arm, a comparison or a ranking")
    for comparison in value.comparisons:
        yield from _comparison(cited, comparison)
    for got in across_blocks(value, runs):
        yield cited.finding(ACROSS, got, "blocks that hold every arm")
    yield from _resolved(cited)


def _run(repository: RepositoryView, run: StudyRun) -> Iterator[tuple[Code, str, str]]:
    """What is wrong with a run as a basis of claims: code, got, want."""
    for name, phases in _bindings(run).items():
        # Of a run that was closed CLOSE01 says that nothing was bound after.
        for phase in ("before",) if run.closed else ("before", "after"):
            if phase not in phases:
                yield UNBOUND, f"{run.run_id}: {name} has no binding {phase}", "before and after"
        if len({binding for found in phases.values() for binding in found}) > 1:
            yield UNBOUND, f"{run.run_id}: {name} changed", "one binding throughout"
    for lock, digest in sorted({(e.lock, e.lock_digest) for e in run.engines}):
        if digest not in _lock_digests(repository.root / "images" / lock):
            yield UNLOCKED, f"{run.run_id}: {digest} ({lock})", f"images/{lock}"
    first = run.hosts[0] if run.hosts else None
    for host in run.hosts[1:]:
        for name in ("driver", "cuda", "kernel"):
            want, got = (h.facts.get(name, "absent") for h in (first or host, host))
            if want != got:
                yield DRIFTED, f"{run.run_id}: {name} {got} at {host.phase}", f"{want}"
        if host.host_id != run.host_id:
            yield DRIFTED, f"{run.run_id}: host {host.host_id} at {host.phase}", run.host_id


def _bindings(run: StudyRun) -> dict[str, dict[str, list[str]]]:
    """What was bound -> phase -> as what."""
    found: dict[str, dict[str, list[str]]] = {
        name: {} for name in ("engine", *(f"model {model}" for model in run.plan.models))
    }
    for engine in run.engines:
        text = f"{engine.runtime} {engine.digest} {engine.lock_digest}"
        found["engine"].setdefault(engine.phase, []).append(text)
    for model in run.models:
        files = " ".join(f"{name} {digest}" for name, digest in sorted(model.files.items()))
        found.setdefault(f"model {model.model}", {}).setdefault(model.phase, []).append(files)
    return found


def _lock_digests(path: Path) -> Iterator[Digest]:
    """The digests of a lock as it is, then as it was in each commit."""
    if path.is_file():
        yield Digest.of(path.read_bytes())
    git = Git.find(path.parent)
    if git is not None:
        yield from (Digest.of(data) for data in git.versions(path))


def _windows(cited: _Cited) -> Iterator[Finding]:
    boots = {(run.run_id, b.started.boot): b for run in cited.runs for b in run.boots}
    for use in cited.value.measured:
        boot = boots.get((use.run, use.boot))
        place = f"{use.run}, boot {use.boot}, window {use.window}"
        if boot is None or boot.outcome != "completed":
            got = boot.outcome if boot else "no planned boot"
            yield cited.finding(VOID, f"{place}: {got}", "completed")
            continue
        for reason in dict(boot.windows).get(use.window, ("no such window",)):
            yield cited.finding(VOID, f"{place}: {reason}", "a window that nothing voids")
        if boot.decided is None:
            yield cited.finding(UNDECIDED, place, "engine.decided")
    for arm in cited.value.arms:
        facts = cited.decisions(arm)
        for name, found in unlike(facts):
            yield cited.finding(UNLIKE, f"arm {arm}: {name} {found}", "one answer")


def _pooled(cited: _Cited) -> Iterator[Finding]:
    strata = {
        (
            run.started.format,
            run.started.synthetic,
            run.started.plan_digest,
            run.started.harness_digest,
            run.engines[0].digest if run.engines else None,
            run.host_id,
        )
        for run in cited.runs
    }
    if len(strata) > 1:
        runs = ", ".join(run.run_id for run in cited.runs)
        yield cited.finding(STRATA, f"{runs}: {len(strata)} strata", "one")


def _comparison(cited: _Cited, comparison: Comparison) -> Iterator[Finding]:
    first, second, factor = comparison.first, comparison.second, comparison.factor
    for run in cited.runs:
        factors = differing_factors(run.plan.arm(first), run.plan.arm(second))
        if factors != (factor,):
            got = f"{first} and {second} differ in {', '.join(factors) or 'nothing'}"
            yield cited.finding(FACTORS, got, f"{factor} alone")
    pair = [cited.decisions(arm, comparison.window) for arm in (first, second)]
    for name, one, two in confounds(factor, *pair):
        got = f"{name}: {one} in {first}, {two} in {second}"
        yield cited.finding(CONFOUNDED, got, f"arms that differ in {factor} alone")


def _resolved(cited: _Cited) -> Iterator[Finding]:
    """What is claimed of times, rates and orders, against the error of the client's stamps."""
    for found in unresolved(cited.value, cited.runs):
        yield cited.finding(TOO_SMALL, found.got, found.want)


CHECK = Check(
    "basis",
    "What is cited may be claimed: bound runs, usable windows, comparisons of one factor alone.",
    (
        UNBOUND,
        UNLOCKED,
        DRIFTED,
        VOID,
        TOO_SMALL,
        FACTORS,
        CONFOUNDED,
        UNLIKE,
        UNDECLARED,
        STRATA,
        UNDECIDED,
        NOTHING,
        UNSAID,
        ACROSS,
    ),
    check,
)
