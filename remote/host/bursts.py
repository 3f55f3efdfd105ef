"""The times of a fixed piece of work on a host's processors: each alone, all at once, two by two.

Invariant: a script that imports nothing of this project and changes nothing: the harness and
`kit doctor` hand the same text to a fresh interpreter, so that it forks before it has threads. It
prints one line of JSON, a `records.processors.Processors`, within about three seconds.

Each processor has a process of its own, since an interpreter runs one thread at a time, pinned to
it; between its orders it waits on a pipe and costs nothing.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path

# A quarter of what is timed around windows (remote/host/pace.py): medians of more, in less time.
ADDENDS = 5_000
_MS = 1_000_000
_LEAD_NS = 2 * _MS  # between an order and its start
_WARM_NS = 3 * _MS  # worked but not counted: clocks and caches come to their pace
_ALONE_NS = 9 * _MS  # twice, before and after all work together
_TOGETHER_NS = 100 * _MS  # several turns of a scheduler that has too few processors to give
_SLOT_NS = 3 * _MS
_LEAST = 8  # pieces of an order, however long they take: no median of one that was interrupted
_TRIES, _FEW = 10, 3  # of a pair, until each median is of three: a busy host may start one late
_ALONE_MOST = 32
_LIMIT_NS = 2_600 * _MS  # no pair is begun later
_CPUS = Path("/sys/devices/system/cpu")

Pieces = list[tuple[int, int]]


class Worker:
    """A process on one processor that works when it is told to; orders and answers are lines."""

    def __init__(self, cpu: int, others: list[Worker]) -> None:
        self.cpu = cpu
        orders, self._to = os.pipe()
        self._from, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            # An end of a pipe that a sibling holds open would keep that one's reader waiting.
            for fd in (self._to, self._from, *(fd for w in others for fd in (w._to, w._from))):
                os.close(fd)
            try:
                _serve(cpu, orders, answers)
            finally:  # whatever happens there: the parent's code is not the child's
                os._exit(0)
        os.close(orders)
        os.close(answers)
        self._answers = os.fdopen(self._from)

    def order(self, begin_ns: int, end_ns: int) -> None:
        """Have it work from one time of CLOCK_MONOTONIC to another, some pieces at least."""
        os.write(self._to, b"%d %d\n" % (begin_ns, end_ns))

    def pieces(self) -> Pieces:
        """Begin and end of each piece that was ordered last."""
        line = self._answers.readline()
        if not line:
            raise OSError(f"the process on processor {self.cpu} ended")
        answer = json.loads(line)
        if isinstance(answer, str):
            raise OSError(answer)
        return [(begin, end) for begin, end in answer]

    def end(self) -> None:
        """Let it end: it has no orders any more."""
        os.close(self._to)
        self._answers.close()
        os.waitpid(self.pid, 0)


def observe(engine: list[int], client: list[int]) -> dict[str, object]:
    """The facts; processors by number, empty for all that this process may use."""
    limit_ns = time.monotonic_ns() + _LIMIT_NS
    usable = sorted(os.sched_getaffinity(0))
    engine_on, client_on = engine or usable, client or usable
    used = sorted({*engine_on, *client_on})
    places = [_place(cpu) for cpu in used]
    crew: list[Worker] = []
    try:
        for cpu in used:
            crew.append(Worker(cpu, crew))
        workers = {worker.cpu: worker for worker in crew}
        chosen = _thinned(engine_on)
        before = [_alone(workers[cpu]) for cpu in chosen]
        together = _together([workers[cpu] for cpu in engine_on])
        after = [_alone(workers[cpu]) for cpu in chosen]
        pairs = []
        for one, other in in_order(engine_on, client_on, places):
            if time.monotonic_ns() > limit_ns:
                break
            pairs.append(_pair(workers[one], workers[other]))
    finally:
        for worker in crew:
            worker.end()
    return {
        "engine": engine,
        "client": client,
        "addends": ADDENDS,
        "places": places,
        "alone": [
            {"cpu": cpu, "times_ns": first + second}
            for cpu, first, second in zip(chosen, before, after, strict=True)
        ],
        "together": [
            {"cpu": cpu, "times_ns": times} for cpu, times in zip(engine_on, together, strict=True)
        ],
        "pairs": pairs,
    }


def in_order(
    engine: list[int], client: list[int], places: list[dict[str, object]]
) -> list[tuple[int, int]]:
    """Each pair once, first those likely to share a core.

    The kernel's siblings, then neighbours by number and those half of all apart, which is how
    hyperthreads are numbered (on x86 by firmware or hypervisor), then the others.
    """
    siblings = {place["cpu"]: str(place["siblings"]) for place in places}
    half = len(places) // 2

    def unlikely(pair: tuple[int, int]) -> tuple[int, int, int]:
        one, other = pair
        if siblings[one] == siblings[other] != "absent":
            return (0, one, other)
        return (1 if abs(one - other) in (1, half) else 2, one, other)

    found: dict[frozenset[int], tuple[int, int]] = {}
    for one in engine:
        for other in client:
            if one != other:
                found.setdefault(frozenset((one, other)), (one, other))
    return sorted(found.values(), key=unlikely)


def apart(mine: Pieces, other: Pieces) -> tuple[list[int], list[int]]:
    """Times of my pieces while the other stood still, and while it worked.

    Pieces that the other's start or end falls into are left out, as is the time in which one of
    the two came to its pace.
    """
    begun, ended = other[0][0], other[-1][1]
    alone = [e - b for b, e in warm(mine) if e <= begun or b >= ended]
    both_warm = max(mine[0][0], begun) + _WARM_NS
    both = [e - b for b, e in mine if b >= both_warm and e <= ended]
    return alone, both


def warm(pieces: Pieces) -> Pieces:
    """Those after the first milliseconds; half of them at least."""
    begun = pieces[0][0] + _WARM_NS
    counted = [piece for piece in pieces if piece[0] >= begun]
    return counted if len(counted) * 2 >= len(pieces) else pieces[len(pieces) // 2 :]


def _alone(worker: Worker) -> list[int]:
    begin = time.monotonic_ns() + _LEAD_NS
    worker.order(begin, begin + _WARM_NS + _ALONE_NS)
    return [e - b for b, e in warm(worker.pieces())]


def _together(workers: list[Worker]) -> list[list[int]]:
    """Times of each while all worked, pieces that reach into that time included: a processor that
    others had for most of it finished few within.
    """
    begin = time.monotonic_ns() + _LEAD_NS + len(workers) * _MS // 10
    for worker in workers:
        worker.order(begin, begin + _WARM_NS + _TOGETHER_NS)
    answers = [worker.pieces() for worker in workers]
    all_begun = max(pieces[0][0] for pieces in answers)
    one_ended = min(pieces[-1][1] for pieces in answers)
    return [
        [e - b for b, e in warm(pieces) if e > all_begun and b < one_ended] for pieces in answers
    ]


def _pair(one: Worker, other: Worker) -> dict[str, object]:
    """Their times alone and together, of all tries."""
    times = _try_pair(one, other)
    tries = 1
    while min(map(len, times.values())) < _FEW and tries < _TRIES:
        again = _try_pair(one, other)
        times = {name: found + again[name] for name, found in times.items()}
        tries += 1
    return {"one": one.cpu, "other": other.cpu, **times}


def _try_pair(one: Worker, other: Worker) -> dict[str, list[int]]:
    """The one works for four slots, the other for three from the third on.

    To its pace, alone, while the other comes to its pace, both; then the other alone.
    """
    begin = time.monotonic_ns() + _LEAD_NS
    one.order(begin, begin + 4 * _SLOT_NS)
    other.order(begin + 2 * _SLOT_NS, begin + 5 * _SLOT_NS)
    second = other.pieces()  # the last to end: nothing wakes this process before
    first = one.pieces()
    one_alone, one_both = apart(first, second)
    other_alone, other_both = apart(second, first)
    return {
        "one_alone_ns": one_alone,
        "one_both_ns": one_both,
        "other_alone_ns": other_alone,
        "other_both_ns": other_both,
    }


def _thinned(cpus: list[int]) -> list[int]:
    """All of them, or 32 spread over them."""
    most = min(len(cpus), _ALONE_MOST)
    return [cpus[i * len(cpus) // most] for i in range(most)]


def _serve(cpu: int, orders: int, answers: int) -> None:
    """The life of a worker: until no more orders can come."""
    gc.disable()
    said: object = None
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        said = f"processor {cpu}: {error.strerror}"
    with os.fdopen(orders) as told, os.fdopen(answers, "w") as out:
        for line in told:
            begin, end = map(int, line.split())
            answer = said if said is not None else _work(begin, end)
            out.write(json.dumps(answer) + "\n")
            out.flush()


def _work(begin: int, end: int) -> Pieces:
    done = []
    time.sleep(max(0, begin - time.monotonic_ns()) / 1e9)
    while True:
        started = time.monotonic_ns()
        total = 0
        for addend in range(ADDENDS):
            total += addend * addend
        ended = time.monotonic_ns()
        done.append((started, ended))
        if ended >= end and len(done) >= _LEAST:
            return done


def _place(cpu: int) -> dict[str, object]:
    there = _CPUS / f"cpu{cpu}"
    nodes = sorted(path.name[4:] for path in there.glob("node[0-9]*"))
    return {
        "cpu": cpu,
        "siblings": _said(there / "topology/thread_siblings_list"),
        "package": _said(there / "topology/physical_package_id"),
        "node": nodes[0] if nodes else "absent",
    }


def _said(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip() or "absent"
    except OSError:
        return "absent"


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")] if text != "any" else []


if __name__ == "__main__":
    try:
        print(json.dumps(observe(_numbers(sys.argv[1]), _numbers(sys.argv[2]))), flush=True)
    except OSError as failure:
        sys.exit(f"processors not timed: {failure}")
