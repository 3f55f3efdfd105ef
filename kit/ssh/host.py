"""A host over SSH.

Invariant: nothing runs on the host between two looks of the kit but what it started there for the
run: a look reads files over one open SFTP session and starts no process, so that watching a
measurement does not disturb it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kit.home import Home
from kit.hosts.ask import ask_all, ask_facts
from kit.hosts.facts import HostFacts
from kit.hosts.host import Done, HostSpec, Running
from kit.ssh import rsync, sftp_copy
from kit.ssh.config import Destination
from kit.ssh.connection import PATIENCE_S, Live, SshConnection
from kit.ssh.known_hosts import Meeting
from records.digest import Digest
from records.errors import ConnectionLostError, DiskFullError, HostUnfitError, KitError

PATIENCE_NAME = "KIT_SSH_PATIENCE_S"
_OWN_DIRECTORY = ".spec-fp8-kit"
_DETACH = Path(__file__).resolve().parent / "detach_on_host.py"
_PYTHONS = ("python3", *(f"python3.{minor}" for minor in (11, 12, 13, 10, 14)))
_HELLO = (
    "import json,os,sys;print('kit-hello '+json.dumps([sys.version_info[:2]>=(3,10),"
    "sys.executable,os.environ.get('KIT_HOME',''),os.path.expanduser('~')]))"
)
# The program first, then what it is to hand on: both by standard input, neither as an argument.
_READ_PROGRAM = "import sys;exec(compile(sys.stdin.buffer.read({}),'detach_on_host','exec'))"
_PLAIN = HostSpec()
_STATUS_WAIT_S = 3.0
_TRANSFERS = 5


@dataclass(frozen=True, slots=True)
class _Hello:
    """What the host says of itself: its interpreter and the kit's directory there."""

    python: str
    directory: Path


class SshHost:
    """One host. Nothing is connected until it is needed."""

    def __init__(
        self, destination: Destination, meeting: Meeting, name: str = "", spec: HostSpec = _PLAIN
    ) -> None:
        patience_s = float(os.environ.get(PATIENCE_NAME) or PATIENCE_S)
        self.connection = SshConnection(destination, meeting, patience_s)
        self.spec = spec
        self._name = name or destination.typed
        self._pythons = (spec.python,) if spec.python else _PYTHONS
        self._greeting: _Hello | None = None
        self._rsync: bool | None = None

    @property
    def destination(self) -> Destination:
        """Where it is, for other clients that connect by themselves."""
        return self.connection.destination

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def python(self) -> str:
        """The first interpreter found that is new enough. HostUnfitError where there is none."""
        return self._hello().python

    @property
    def place(self) -> str:
        """Address and port: rented machines often differ in nothing else."""
        return self.destination.known_as

    @property
    def private_names(self) -> tuple[str, ...]:
        """Its address, and those of the machines on the way.

        A name of one word is left out: taken out of an engine's log it could be any word there. The
        harness itself knows what the host and its user are called.
        """
        hops = (*self.destination.jumps, self.destination)
        found = {hop.address for hop in hops if set(hop.address) & set(".:")}
        return tuple(sorted(found - {"127.0.0.1", "::1"}))

    def host_key(self) -> str:
        """Algorithm and fingerprint, as known_hosts and providers have them."""
        key = self.connection.again(lambda live: live.transport.get_remote_server_key())
        return f"{key.algorithm_name} {key.fingerprint}"

    def home(self, here: Home) -> Home:  # noqa: ARG002
        """KIT_HOME as the host's own environment sets it, or a directory in its user's home."""
        there = self._hello().directory
        return Home(there, there, there / "data", there / "out")

    def mirror(self, here: Home) -> Home:
        """Below the kit's own directory, one for each user, address and port."""
        text = f"{self.destination.user}@{self.place}"
        readable = re.sub(r"[^A-Za-z0-9]+", "-", self.name).strip("-")[:30]
        digits = hashlib.sha256(text.encode()).hexdigest()[:8]
        return replace(here, path=here.path / "hosts" / f"{readable}-{digits}")

    def probe(self, directory: Path) -> HostFacts:
        """Run every probe there."""
        existing = next(p for p in (directory, *directory.parents) if self._exists(p))
        return ask_facts(self, existing)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: int = 60) -> Done:
        """Through the login shell, every word quoted."""
        return self.connection.run(argv, stdin, timeout_s)

    def start_detached(
        self, argv: Sequence[str], cwd: Path, log: Path, note: Path, *, stdin: bytes = b""
    ) -> Running:
        """By kit/ssh/detach_on_host.py, which starts nothing that runs already."""
        part = argv[-1]
        words = (str(cwd), str(log), str(note), part, *argv)
        program = _DETACH.read_bytes()
        read = _READ_PROGRAM.format(len(program))
        done = self.run((self.python, "-I", "-S", "-c", read, *words), stdin=program + stdin)
        if done.status != 0 or not done.stdout.strip().isdecimal():
            if "No space left on device" in done.stderr:
                raise DiskFullError(f"{self.name}: its disk is full", "free space there")
            raise KitError(f"{self.name}: cannot start a process: {done.stderr.strip()[-400:]}")
        return _Remote(self, int(done.stdout), part, note)

    def attach(self, note: Path, argv_part: str) -> Running | None:
        """Told by /proc there."""
        try:
            pid = int(self.read(note))
        except (FileNotFoundError, ValueError):
            return None
        return _Remote(self, pid, argv_part, note) if self.runs(pid, argv_part) else None

    def runs(self, pid: int, argv_part: str) -> bool:
        """Whether this process runs with this argument."""
        try:
            return argv_part.encode() in self.read(Path(f"/proc/{pid}/cmdline")).split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        except OSError as error:
            if error.errno is not None:
                raise
            return False  # it ended between open and read: SFTP says "failure" for ESRCH

    def put(self, source: Path, target: Path) -> None:
        """A file by SFTP unless the same bytes are there; a tree by rsync, or by SFTP without."""
        if source.is_dir() and self.has_rsync():
            made = self.run(("mkdir", "-p", "--", str(target)))
            if made.status != 0:
                raise self._not_written(target, OSError(made.stderr.strip()))
            self._by_rsync(lambda options: rsync.put(options, source, target))
            return
        if source.is_file() and self._has(source, target):
            return
        try:
            self.connection.again(lambda live: sftp_copy.put(live.sftp, source, target))
        except OSError as error:
            raise self._not_written(target, error) from error

    def read(self, path: Path, offset: int = 0) -> bytes:
        """Over SFTP."""
        return self.connection.again(lambda live: _read(live, path, offset))

    def names(self, directory: Path) -> tuple[str, ...]:
        """Over SFTP."""
        try:
            found = self.connection.again(lambda live: live.sftp.listdir(str(directory)))
        except FileNotFoundError:
            return ()
        sftp_copy.require_names(directory, found)
        return tuple(sorted(found))

    def used_mib(self, directories: Sequence[Path]) -> int:
        """By du."""
        present = [str(d) for d in directories if self._exists(d)]
        if not present:
            return 0
        done = self.run(("du", "-skc", *present), timeout_s=300)
        last = done.stdout.strip().splitlines()[-1:]
        return int(last[0].split()[0]) >> 10 if done.status == 0 and last else 0

    def fetch(self, source: Path, target: Path) -> None:
        """By rsync, or by SFTP where one side has none."""
        if self.has_rsync():
            self._by_rsync(lambda options: rsync.fetch(options, source, target))
        else:
            self.connection.again(lambda live: sftp_copy.fetch(live.sftp, source, target))

    def monotonic_ns(self) -> int:
        """/proc/uptime, which counts from the same start."""
        seconds, _, _ = self.read(Path("/proc/uptime")).partition(b" ")
        whole, _, hundredths = seconds.partition(b".")
        return int(whole) * 10**9 + int(hundredths) * 10**7

    def has_rsync(self) -> bool:
        """Whether both sides have it; says so once where one has not."""
        if self._rsync is None:
            there = self.run(("rsync", "--version")).status == 0
            self._rsync = rsync.is_here() and there
            if not self._rsync:
                where = "this machine" if there else self.name
                self.connection.meeting.say(f"no rsync on {where}: copying by SFTP, files whole")
        return self._rsync

    def _hello(self) -> _Hello:
        if self._greeting is None:
            self._greeting = self._ask()
        return self._greeting

    def _ask(self) -> _Hello:
        for python in self._pythons:
            done = self.run((python, "-I", "-S", "-c", _HELLO))
            noise, hello, answer = done.stdout.partition("kit-hello ")
            if done.status != 0 or not hello:
                continue
            if noise:
                raise HostUnfitError(
                    f"{self.name}: its shell prints before each command: {noise.strip()[:80]!r}; "
                    "that would be taken for the command's answer",
                    "let its start-up files (~/.bashrc) print in interactive shells only",
                )
            fits, program, directory, user_home = json.loads(answer)
            if fits:
                chosen = self.spec.directory or directory or f"{user_home}/{_OWN_DIRECTORY}"
                return _Hello(program, Path(chosen))
        raise HostUnfitError(
            f"{self.name}: no Python 3.10 or newer among {', '.join(self._pythons)}",
            "install one there: apt-get install python3",
        )

    def _exists(self, path: Path) -> bool:
        try:
            self.connection.again(lambda live: live.sftp.stat(str(path)))
        except (FileNotFoundError, PermissionError):
            return False
        return True

    def _has(self, source: Path, target: Path) -> bool:
        done = self.run(("sha256sum", "--", str(target)), timeout_s=300)
        with source.open("rb") as file:
            return done.status == 0 and done.stdout.lstrip("\\")[:64] == Digest.of_file(file).hex

    def _by_rsync(self, copy: Callable[[Path], None]) -> None:
        for left in reversed(range(_TRANSFERS)):
            # The kit's own connection first: it waits for the host, and has met its key.
            self.connection.again(lambda live: live.transport.send_ignore())
            with tempfile.TemporaryDirectory(prefix="kit-ssh-") as directory:
                options = Path(directory) / "options"
                known = self.connection.meeting.file.absolute()
                options.write_text(rsync.ssh_options(self.destination, known), encoding="utf-8")
                try:
                    copy(options)
                except ConnectionLostError as error:
                    if left == 0:
                        raise
                    self.connection.meeting.say(f"{self.name}: {error.message}; going on")
                else:
                    return

    def _not_written(self, target: Path, error: OSError) -> KitError:
        """Why: SFTP itself says no more than "failure" of most that can be in the way."""
        place = next(p for p in target.parents if self._exists(p))
        asked = {
            "is a directory": (("test", "-d", str(place)), 30),
            "may be written": (("test", "-w", str(place)), 30),
            "blocks": (("df", "-Pk", str(place)), 30),
            "inodes": (("df", "-Pi", str(place)), 30),
        }
        found = ask_all(self, asked)
        free = [found[name].stdout.split()[-3:-2] for name in ("blocks", "inodes")]
        if ["0"] in free:
            return DiskFullError(f"{self.name}: {target}: its disk is full", "free space there")
        for what in ("is a directory", "may be written"):
            if found[what].status != 0:
                return HostUnfitError(
                    f"{self.name}: {place}: not so: it {what}; {target.name} belongs there",
                    "put the kit elsewhere there: KIT_HOME=… in the host's environment, or "
                    "directory in an inventory",
                )
        return KitError(f"{self.name}: {target} cannot be written: {error}", "check its directory")


@dataclass(frozen=True, slots=True)
class _Remote:
    host: SshHost
    pid: int
    argv_part: str
    note: Path

    def exit_status(self) -> int | None:
        if self.host.runs(self.pid, self.argv_part):
            return None
        deadline = time.monotonic() + _STATUS_WAIT_S
        while True:
            try:
                text = self.host.read(self.note.with_name(f"{self.note.name}.status")).strip()
            except FileNotFoundError:
                return 0
            if text:
                return int(text)
            # The process is gone and its parent has not written yet, or went down with the host.
            if time.monotonic() > deadline:
                return 0
            time.sleep(0.1)

    def interrupt(self) -> None:
        if self.exit_status() is None:
            self.host.run(("kill", f"-{signal.SIGTERM.value}", str(self.pid)))


def _read(live: Live, path: Path, offset: int) -> bytes:
    with live.sftp.open(str(path), "rb") as file:
        if offset:
            file.seek(offset)
        return bytes(file.read())
