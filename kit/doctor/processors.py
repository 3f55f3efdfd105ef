"""What a host's processors are worth together, and whether engine and client slow each other down.

Invariant: the text that is run there is the one that a run uses (remote/host/bursts.py); it leaves
nothing behind, and is not run beside a measurement, which it would disturb.

A virtual machine's processors may be threads of fewer cores, which it often does not tell: three
rented machines whose kernel spoke of one thread a core worked at two speeds within an hour, and
boots of one configuration spread by a tenth with them (records/data, table "pace").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from kit.doctor.topic import FAIL, PASS, WARN, Verdict
from kit.hosts.host import TIMED_OUT, Done, Host
from records.cpu_list import shown_cpus
from records.decode import from_object
from records.errors import FormatError
from records.processors import Pair, Processors

CHECK = "processors"
# Cores that are shared by two threads each do 0.5 to 0.8 of the work of as many processors.
_WORTH_LEAST = 0.8
_TIMEOUT_S = 30
_HELD, _REFUSED = "held by ", "processors not timed: "
# The sources come by standard input, as in kit/hosts/ask.py.
_READ = (
    "import json,sys;p=json.load(sys.stdin);d={};exec(p['lock'],d);"
    "h=d['holder'](d['lock_path'](d['os'].environ));"
    f"print({_HELD!r}+h) if h else exec(p['work'],{{'__name__':'__main__'}})"
)


def time_processors(host: Host, root: Path) -> Verdict:
    """Time them there, in three seconds at most. `root`: the project."""
    sources = {
        "lock": (root / "records/host_lock.py").read_text(encoding="utf-8"),
        "work": (root / "remote/host/bursts.py").read_text(encoding="utf-8"),
    }
    listed = [",".join(map(str, cpus)) or "any" for cpus in _chosen(host)]
    done = host.run(
        (host.python, "-I", "-S", "-c", _READ, *listed),
        stdin=json.dumps(sources).encode(),
        timeout_s=_TIMEOUT_S,
    )
    return read(done)


def read(done: Done) -> Verdict:
    """What the program's end means."""
    if done.status != 0:
        return _not_timed(done)
    last = (done.stdout.splitlines() or [""])[-1]
    if last.startswith(_HELD):
        return Verdict(CHECK, PASS, f"not timed: {last.removeprefix(_HELD)} is under way here")
    try:
        return judge(from_object(Processors, json.loads(last)))
    except (ValueError, FormatError):
        return _unreadable(last)


def judge(found: Processors) -> Verdict:
    """What the times mean, and which processors to choose."""
    worth, at_once = found.worth, len(found.together)
    if worth is None:
        return Verdict(CHECK, PASS, "not told: something else keeps them busy")
    told = f"{at_once} at once do the work of {worth:.1f}"
    shared = found.shared_pairs
    if not shared and worth >= _WORTH_LEAST * at_once:
        pairs = len(found.told_pairs)
        beside = f"none of {pairs} pairs slows the other down" if pairs else "no pair told more"
        return Verdict(CHECK, PASS, f"{told}, {beside}")
    if not shared:
        cause = (
            f"the engine's {at_once} processors share cores or power, among themselves or with "
            "neighbours, or others take turns on them: throughput follows what those do"
        )
        remedy = "end what else runs (top), or rent whole cores; claim no small spread from here"
        return Verdict(CHECK, WARN, told, cause, remedy)
    slowest = shared[0]
    found_text = f"{told}; {_named(shared)} slow each other {slowest.slowdown:.1f} times"
    if found.engine and found.client:
        cause = "what the client does there slows the engine down: the client is in the measurement"
        return Verdict(CHECK, WARN, found_text, cause, _moved(found))
    cause = (
        "these share a core, whatever the kernel says of them: where the client is put beside the "
        "engine, it is in the measurement"
    )
    return Verdict(CHECK, WARN, found_text, cause, _split(found))


def _chosen(host: Host) -> tuple[Sequence[int], Sequence[int]]:
    return host.spec.engine_cpus, host.spec.client_cpus


def _named(pairs: Sequence[Pair]) -> str:
    shown = ", ".join(f"{pair.one} and {pair.other}" for pair in pairs[:3])
    return f"{shown} and {len(pairs) - 3} more" if len(pairs) > 3 else shown


def _moved(found: Processors) -> str:
    """Of those that were chosen: without the engine's that the client slows down."""
    beside = {cpu for pair in found.shared_pairs for cpu in (pair.one, pair.other)}
    left = set(found.engine) - beside
    if not left:
        return "take engine_cpus and client_cpus out of the inventory, then: kit doctor"
    return f'leave idle what shares a core with the client: engine_cpus = "{shown_cpus(left)}"'


def _split(found: Processors) -> str:
    """Of all: a whole core for the client, all the others for the engine."""
    used = {burst.cpu for burst in found.together}
    used |= {cpu for pair in found.told_pairs for cpu in (pair.one, pair.other)}
    client = max(_cores(used, found.shared_pairs), key=lambda core: (len(core) <= 2, max(core)))
    engine = used - client
    if not engine:
        return "they are all one core: rent a host with more of them"
    return (
        "give the client a core of its own, in an inventory (HOST=hosts.toml): "
        f'client_cpus = "{shown_cpus(client)}", engine_cpus = "{shown_cpus(engine)}"; '
        "or --client-cpus and --engine-cpus of kit job"
    )


def _cores(cpus: Iterable[int], shared: Iterable[Pair]) -> list[set[int]]:
    """Which of them go together, over any number of pairs."""
    core = {cpu: {cpu} for cpu in cpus}
    for pair in shared:
        joined = core[pair.one] | core[pair.other]
        for cpu in joined:
            core[cpu] = joined
    return [one for cpu, one in core.items() if cpu == min(one)]


def _not_timed(done: Done) -> Verdict:
    said = " ".join((done.stderr or done.stdout).split())[-200:]
    if done.status == TIMED_OUT:
        cause = f"not done in {_TIMEOUT_S} s: something else keeps the processors busy"
        return Verdict(CHECK, WARN, "not timed", cause, "end what runs there (top), then again")
    if _REFUSED in said:
        cause = f"a run would stop there: {said.partition(_REFUSED)[2]}"
        remedy = "name processors that the host has (nproc --all) in engine_cpus, client_cpus"
        return Verdict(CHECK, FAIL, "not there", cause, remedy)
    cause = f"the host's Python did not time them: {said or f'status {done.status}'}"
    return Verdict(CHECK, WARN, "not timed", cause, "name another Python in the inventory: python")


def _unreadable(text: str) -> Verdict:
    cause = f"the answer is no list of times: {text[:80]!r}"
    return Verdict(CHECK, WARN, "not told", cause, "look for what prints in between on that host")
