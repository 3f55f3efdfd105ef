"""A real sshd on loopback as a host: own keys, own port, own configuration, own user's home.

Several of them are several hosts: each has its own kit directory, told to its sessions by SetEnv.
What is missing to run one fails the test: a service test that did not run must not look green.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATIENCE_S = 60


def program(name: str) -> str:
    """Where a program is, also in the directories that only root's PATH has."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        pytest.fail(f"{name} is not installed: apt-get install openssh-server openssh-client rsync")
    return found


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def keygen(path: Path, passphrase: str = "") -> Path:
    """A fresh ed25519 key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", passphrase, "-f", str(path)],
        check=True,
    )
    return path


def fingerprint(key: Path) -> str:
    """As the system's own ssh-keygen has it."""
    done = subprocess.run(
        [program("ssh-keygen"), "-lf", f"{key}.pub"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()[1]


@dataclass
class Sshd:
    """One sshd and the kit's directory on its host."""

    place: Path
    port: int
    authorized: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """The kit's directory on this host."""
        return self.place / "kit-home"

    @property
    def host_key(self) -> Path:
        return self.place / "host_key"

    def start(self, *extra: str) -> None:
        """Listen; wait until it does."""
        if not self.host_key.exists():
            keygen(self.host_key)
        set_env = {"KIT_HOME": str(self.home), **self.environment}
        variables = " ".join(f'"{name}={value}"' for name, value in set_env.items())
        config = self.place / "sshd_config"
        lines = [
            f"ListenAddress 127.0.0.1:{self.port}",
            f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {self.authorized}",
            f"PidFile {self.place / 'sshd.pid'}",
            f"SetEnv {variables}",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            "StrictModes no",
            "UsePAM no",
            "UseDNS no",
            "MaxStartups 100:30:200",
            *(extra or ("Subsystem sftp internal-sftp",)),
        ]
        config.write_text("\n".join(lines) + "\n")
        if os.getuid() == 0:  # where root's sshd keeps the process without rights
            Path("/run/sshd").mkdir(exist_ok=True)
        log = self.place / "sshd.log"
        self.process = subprocess.Popen(
            [program("sshd"), "-D", "-f", str(config), "-E", str(log)],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_for(self._listens, f"sshd did not start: {log}")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """End the listener; sessions go on."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def sessions(self) -> list[int]:
        """The processes that sshd forked for connections, not what these started."""
        if self.process is None:
            return []
        tree = [self.process.pid]
        found = []
        for pid in tree:
            for child in children(pid):
                if _is_sshd(child):
                    tree.append(child)
                    found.append(child)
        return found

    def cut(self) -> int:
        """Kill every connection under way, as a dropped line does; how many processes."""
        sessions = self.sessions()
        for pid in sessions:
            _kill(pid)
        return len(sessions)


def children(pid: int) -> list[int]:
    """The children of a process."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid: int) -> list[int]:
    """A process's children, and theirs."""
    return [one for child in children(pid) for one in (child, *descendants(child))]


def _is_sshd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith("sshd")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_for(
    condition: Callable[[], bool], message: str = "waited in vain", seconds: float = PATIENCE_S
) -> None:
    """Until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(message)
        time.sleep(0.02)


@contextmanager
def running(place: Path, authorized: Path, **environment: str) -> Iterator[Sshd]:
    """An sshd for the block."""
    place.mkdir(parents=True, exist_ok=True)
    sshd = Sshd(place, free_port(), authorized, environment)
    sshd.start()
    try:
        yield sshd
    finally:
        sshd.cut()
        sshd.stop()
