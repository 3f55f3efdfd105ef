"""Whose turn it is to submit a plan's blocks to a cluster, among kits on different machines.

Invariant: the turn is a directory on the storage that the login nodes share, renamed into place
with its holder's name in it: rename(2) puts no directory over one that holds something, on NFS and
Lustre, too. Every step may be carried out twice, as where a line drops (Host.run). It stands among
the jobs, so that whoever takes it sees anew what jobs there are: a directory that a client of NFS
itself changed is not answered from its cache (nfs(5), attribute caching).
"""

from __future__ import annotations

import datetime
import json
import os
import secrets
import shlex
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from kit.hosts.host import Host
from records.errors import KitError, RunBusyError, SchedulerError

# An engine's first installation takes minutes, on a slow line or disk half an hour.
_PATIENCE_S = 3600.0
_PERIOD_S = 2.0
_TRIES = 5
_WORDS = 4  # of a process's identity


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has the turn. `token`: of this one turn; `process`: its boot, namespace and start."""

    who: str
    since: str
    token: str
    process: str

    @classmethod
    def own(cls) -> Holder:
        """This process, from now on."""
        now = datetime.datetime.now(datetime.timezone.utc)
        return cls(
            f"process {os.getpid()} on {socket.gethostname()}",
            f"{now:%Y-%m-%dT%H:%M:%SZ}",
            secrets.token_hex(8),
            _identity(os.getpid()),
        )

    @property
    def is_gone(self) -> bool:
        """Whether it was a process of this machine that has ended; False where nobody can know."""
        theirs, ours = self.process.split(" "), _identity(os.getpid()).split(" ")
        if len(theirs) != _WORDS or theirs[:2] != ours[:2] or not theirs[2].isdecimal():
            return False
        return _identity(int(theirs[2])) != self.process


@contextmanager
def turn(
    host: Host,
    place: Path,
    say: Callable[[str], None],
    *,
    patience_s: float = _PATIENCE_S,
    period_s: float = _PERIOD_S,
) -> Iterator[None]:
    """Hold `place`, a name in a directory of the host's, for the block; wait for it if need be.

    RunBusyError once patience has ended, with what takes a forgotten one away. SchedulerError where
    the storage takes no directory.
    """
    own = Holder.own()
    _take(host, place, own, say, time.monotonic() + patience_s, period_s)
    try:
        yield
    finally:
        try:
            _remove(host, place, own.token)
        except KitError as error:
            say(f"warning: {error.message}; the turn is still held: {_removal(host, place)}")


def _take(
    host: Host,
    place: Path,
    own: Holder,
    say: Callable[[str], None],
    deadline: float,
    period_s: float,
) -> None:
    fresh = place.with_name(f"{place.name}.{own.token}")
    with tempfile.TemporaryDirectory(prefix="kit-turn-") as directory:
        (Path(directory) / own.token).write_text(json.dumps(asdict(own)), encoding="utf-8")
        host.put(Path(directory), fresh)
    told = ""
    try:
        while (token := _renamed(host, fresh, place, own.token)) != own.token:
            holder = _read(host, place, token)
            if holder.is_gone:
                say(f"{holder.who} had begun to submit this plan, and has ended: going on")
                _remove(host, place, token)
                continue
            _require_patience(host, place, holder, deadline)
            if token != told:
                told = token
                say(
                    f"{holder.who} submits this plan just now, since {holder.since}: waiting, to "
                    f"attach to its blocks; if it has ended, {_removal(host, place)}"
                )
            time.sleep(period_s)
    except BaseException:
        host.run(("rm", "-rf", "--", str(fresh)))
        _remove(host, place, own.token)
        raise


def _renamed(host: Host, fresh: Path, place: Path, token: str) -> str:
    """The token of whoever has the turn after another attempt to take it."""
    said = ""
    for _ in range(_TRIES):  # between the attempt and the look the other may have given it back
        said = host.run(("mv", "-T", "--", str(fresh), str(place))).stderr.strip()
        tokens = host.names(place)
        if tokens:
            return token if token in tokens else tokens[0]
    raise SchedulerError(
        f"{host.name}: nobody can take turns at {place}: {said}",
        f"its directory must be writable, and no file in the way: ls -ld {shlex.quote(str(place))}",
    )


def _require_patience(host: Host, place: Path, holder: Holder, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RunBusyError(
            f"{holder.who} submits this plan to {host.name} since {holder.since}, and holds up all "
            "others",
            f"if it has ended, {_removal(host, place)}; then the same command",
        )


def _remove(host: Host, place: Path, token: str) -> None:
    """Give back the turn of this token; that of another stays, since rmdir(2) leaves it alone."""
    host.run(("rm", "-f", "--", str(place / token)))
    host.run(("rmdir", "--", str(place)))


def _removal(host: Host, place: Path) -> str:
    return f"on {host.name}: {shlex.join(('rm', '-r', str(place)))}"


def _read(host: Host, place: Path, token: str) -> Holder:
    """Who holds it, as far as can be read."""
    unknown = Holder("another kit", "a time unknown", token, "")
    try:
        told = json.loads(host.read(place / token))
    except (FileNotFoundError, ValueError):
        return unknown
    words = told if isinstance(told, dict) else {}
    texts = [str(words.get(field.name, "")) for field in fields(Holder)]
    # What is shown comes from a file that others write: nothing that a terminal would obey.
    return Holder(*texts) if all(texts) and "".join(texts).isprintable() else unknown


def _identity(pid: int) -> str:
    """Boot id, process namespace, number and start of a process; "" where there is none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = Path("/proc/self/ns/pid").readlink()
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # proc(5): the 22nd word is the start; the second may hold spaces, in brackets.
    return f"{boot} {space} {pid} {stat.rpartition(')')[2].split()[19]}"
