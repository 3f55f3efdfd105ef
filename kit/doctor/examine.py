"""Ask every probe once, let every topic read the answers, choose a runtime.

Invariant: all verdicts are told at once, and an answer that cannot be read is a verdict too, as is
one that does not come: the examination itself never stops half-way, and its questions take
`QUESTIONS_S` at most. Trying a GPU in a container has its own times (kit/doctor/gpu_container.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from kit.doctor.clock import CLOCK, CLOCK_PROBE
from kit.doctor.disk import DISK
from kit.doctor.docker_engine import DOCKER_ENGINE, IMAGE, INFO, image_root, information
from kit.doctor.driver import DRIVER
from kit.doctor.gpu import GPU
from kit.doctor.gpu_container import try_gpu
from kit.doctor.jit import JIT
from kit.doctor.machine import MACHINE
from kit.doctor.place import PLACE
from kit.doctor.rights import RIGHTS
from kit.doctor.topic import DOCKER, FAIL, PASS, WARN, WHEELS, Needs, Seen, Topic, Verdict
from kit.doctor.updates import UPDATES
from kit.hosts.ask import Bounded, ask_all
from kit.hosts.facts import HostFacts
from kit.hosts.host import NOT_FOUND, Done, Host
from kit.planning.preflight import problems
from records.errors import FormatError, HostUnfitError
from records.plan import Plan

TOPICS = (MACHINE, PLACE, DRIVER, GPU, DOCKER_ENGINE, DISK, JIT, RIGHTS, UPDATES, CLOCK)
# nvidia-smi is asked five times, and without its persistence daemon takes some seconds a GPU.
QUESTIONS_S = 240.0
_NOT_ASKED = Done(NOT_FOUND, "", "no Docker daemon that says where it keeps its data, or no image")


def look(whole: Host, home: Path, image: str = "", limit_s: float = QUESTIONS_S) -> Seen:
    """Run the probes on the host. `home`: the directory there whose disk is meant."""
    host = Bounded(whole, limit_s)
    probes = {probe.name: probe for topic in TOPICS for probe in topic.probes}
    # First the daemon, which says which disk is asked for, and what of `home` is there already.
    places = {str(path): (("test", "-e", str(path)), 30) for path in (home, *home.parents)}
    daemon = (probes[INFO].argv, probes[INFO].timeout_s)
    first = ask_all(host, {**places, INFO: daemon}, host.left_s)
    home = next((Path(path) for path in places if first[path].status == 0), Path("/"))
    outputs = {INFO: first[INFO]}
    root = ""
    try:
        info = information(Seen(outputs))
        root = image_root(info) if info else ""
    except FormatError:
        root = ""  # the verdict on the daemon says what it answered
    # Alone: how long the question takes is how well the answer is known.
    asked_ns = time.time_ns()
    outputs[CLOCK_PROBE] = host.run(probes[CLOCK_PROBE].argv)
    answered_ns = time.time_ns()
    filled = {"{root}": root, "{home}": str(home), "{image}": image if root else ""}
    rest = {}
    for name, probe in probes.items():
        if any(part in probe.argv and not value for part, value in filled.items()):
            outputs[name] = _NOT_ASKED
        elif name not in outputs:
            rest[name] = ([filled.get(part, part) for part in probe.argv], probe.timeout_s)
    return Seen({**outputs, **ask_all(host, rest, host.left_s)}, (asked_ns, answered_ns))


def fit(facts: HostFacts, plan: Plan, programs: frozenset[str]) -> tuple[Verdict, ...]:
    """Memory, processor features, Python, compilers: what preflight asks before each run.

    GPU and disk have topics of their own, which tell more.
    """
    asked = replace(plan.requirements, disk_mib=0, gpu_memory_mib=0, compute_capability=Decimal(0))
    found = tuple(problems(facts, asked, programs))
    if not found:
        return (Verdict("software", PASS, f"all there, {facts.memory_available_mib} MiB memory"),)
    return tuple(Verdict("software", FAIL, "lacking", one.cause, one.remedy) for one in found)


def examine(host: Host, home: Path, needs: Needs) -> tuple[Verdict, ...]:
    """Every topic's verdicts; where a daemon might hand out GPUs, after trying it."""
    seen = look(host, home, needs.image)
    verdicts = judge(seen, needs)
    asked = needs.gpu and needs.runtime != WHEELS
    if not asked or not any(v.check == INFO and v.status == PASS for v in verdicts):
        return verdicts
    tried = try_gpu(host, needs.image, needs.python, is_there=bool(seen.text(IMAGE)))
    # What happened counts more than what the daemon lists.
    return (*(v for v in verdicts if v.check != tried.check), tried)


def judge(seen: Seen, needs: Needs) -> tuple[Verdict, ...]:
    """Every topic's verdicts, and one on the commands that did not answer."""
    verdicts = [verdict for topic in TOPICS for verdict in _topic(topic, seen, needs)]
    silent = dict.fromkeys(seen.complaint(name) for name in seen.outputs if seen.is_silent(name))
    if silent:
        cause = (
            "what these commands would have told is not known; a process may hang there for ever"
        )
        remedy = "log in and try them; if they hang there, too: reboot the host, or rent another"
        verdicts.append(Verdict("answers", WARN, "; ".join(silent), cause, remedy))
    return tuple(verdicts)


def _topic(topic: Topic, seen: Seen, needs: Needs) -> Iterator[Verdict]:
    try:
        yield from topic.check(seen, needs)
    except FormatError as error:
        silent = [probe.name for probe in topic.probes if seen.is_silent(probe.name)]
        if silent:
            said = seen.complaint(silent[0])
            cause = "without an answer nobody knows whether the host is fit"
            yield Verdict(silent[0], FAIL, said, cause, "reboot the host, or rent another")
            return
        yield Verdict(
            "unreadable",
            FAIL,
            error.message,
            "a command of this host answers in a form that is not known",
            "report it with the output; nothing is guessed from it",
        )


def require_sound(host: Host, home: Path, plan: Plan, needs: Needs) -> None:
    """HostUnfitError with every verdict that says fail."""
    failed = [v for v in examine(host, home, needs) if v.status == FAIL]
    if failed:
        raise unfit(host.name, plan, failed)


def unfit(name: str, plan: Plan, failed: Sequence[Verdict]) -> HostUnfitError:
    """The error that names every cause, and the remedies in their order."""
    causes = "".join(f"\n  - {v.check}: {v.cause} ({v.found})" for v in failed)
    remedies = "; ".join(dict.fromkeys(v.remedy for v in failed))
    return HostUnfitError(f"{name} cannot carry out plan {plan.id}:{causes}", remedies)


def choose_runtime(verdicts: tuple[Verdict, ...], needs: Needs) -> str:
    """The runtime asked for; otherwise docker where it is sound and no container stands around."""
    if needs.runtime:
        return needs.runtime
    by_check = {verdict.check: verdict.status for verdict in verdicts}
    asked = ("docker", "container", *(("gpu-containers",) if needs.gpu else ()))
    return DOCKER if all(by_check.get(check) == PASS for check in asked) else WHEELS
