"""A real Slurm on loopback: munged, slurmctld and several slurmd as this test's own processes.

Each slurmd is a node of its own name on this machine, with a port and a spool directory of its own.
What is missing to run one fails the test: a service test that did not run must not look green.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sshd import descendants, free_port, wait_for

NODES = ("node1", "node2", "node3")


def program(name: str) -> str:
    """Where one of Slurm's programs is."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        pytest.fail(f"{name} is not installed: apt-get install slurmctld slurmd slurm-client munge")
    return found


@dataclass
class Slurm:
    """One cluster: its directory, and the processes that are it."""

    place: Path
    nodes: tuple[str, ...] = NODES
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def env(self) -> dict[str, str]:
        """What its commands need to find it."""
        return {"SLURM_CONF": str(self.place / "slurm.conf")}

    def start(self) -> None:
        """Every daemon; wait until all nodes are idle."""
        self.ports = {name: free_port() for name in ("slurmctld", *self.nodes)}
        self._munge()
        self._configure()
        (self.place / "state").mkdir()
        self._spawn("slurmctld", "-D", "-c")
        for node in self.nodes:
            self.start_node(node)
        wait_for(lambda: self.states() == ["idle"] * len(self.nodes), "Slurm's nodes: not all idle")

    def start_node(self, node: str) -> None:
        """One slurmd."""
        (self.place / node).mkdir(exist_ok=True)
        self._spawn("slurmd", "-D", "-N", node, name=node)

    def kill_node(self, node: str) -> None:
        """All of a node's processes at once, as a power cut does."""
        victims = [*self._steps(node), self.processes[node].pid]
        process = self.processes.pop(node)
        for pid in [*victims, *(p for victim in victims for p in descendants(victim))]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()

    def call(self, *argv: str) -> str:
        """What one of Slurm's commands prints."""
        done = subprocess.run(
            [program(argv[0]), *argv[1:]],
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def states(self) -> list[str]:
        """The nodes' states."""
        return self.call("sinfo", "-h", "-N", "-p", "main", "-o", "%T").split()

    def nodes_by_task(self) -> dict[str, str]:
        """Which node each running task of an array has."""
        lines = self.call("squeue", "-h", "-r", "-t", "running", "-o", "%F_%K %N").splitlines()
        return dict(line.split() for line in lines)

    def stop(self) -> None:
        """End everything that was started, nodes first; also where the controller died before."""
        try:
            for node in [n for n in self.nodes if n in self.processes]:
                self.kill_node(node)
        finally:
            for process in reversed(self.processes.values()):
                process.terminate()
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            self.processes.clear()

    def _steps(self, node: str) -> list[int]:
        """The slurmstepd processes of a node's jobs; they have left slurmd's tree."""
        jobs = self.call("squeue", "-h", "-r", "-w", node, "-o", "%A").split()
        titles = {f"slurmstepd: [{job}.batch]" for job in jobs}
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                title = (path / "cmdline").read_bytes().rstrip(b"\0").decode()
                environ = (path / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if title in titles and f"SLURM_CONF={self.place / 'slurm.conf'}".encode() in environ:
                found.append(int(path.name))
        return found

    def _spawn(self, what: str, *args: str, name: str = "") -> None:
        log = (self.place / f"{name or what}.out").open("wb")
        with log:
            self.processes[name or what] = subprocess.Popen(
                [program(what), *args],
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _munge(self) -> None:
        place = self.place / "munge"
        place.mkdir(mode=0o755)
        key = place / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        log = (self.place / "munged.out").open("wb")
        with log:
            self.processes["munged"] = subprocess.Popen(
                [
                    program("munged"), "--foreground", "--force",
                    f"--socket={place / 'socket'}",
                    f"--key-file={key}",
                    f"--pid-file={place / 'pid'}",
                    f"--seed-file={place / 'seed'}",
                    f"--log-file={place / 'log'}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        wait_for((place / "socket").exists, f"munged did not start: {place}")

    def _configure(self) -> None:
        host = socket.gethostname().partition(".")[0]
        user = getpass.getuser()
        place = self.place
        lines = [
            "ClusterName=loopback",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={self.ports['slurmctld']}",
            f"SlurmUser={user}",
            f"SlurmdUser={user}",
            "AuthType=auth/munge",
            f"AuthInfo=socket={place / 'munge' / 'socket'},cred_expire=5",
            f"StateSaveLocation={place / 'state'}",
            f"SlurmdSpoolDir={place}/%n",
            f"SlurmctldPidFile={place}/slurmctld.pid",
            f"SlurmdPidFile={place}/%n.pid",
            f"SlurmctldLogFile={place}/slurmctld.log",
            f"SlurmdLogFile={place}/%n.log",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "MpiDefault=none",
            "SwitchType=switch/none",
            "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0",
            "PreemptType=preempt/partition_prio",
            "PreemptMode=REQUEUE",
            "MailProg=/bin/true",
            "KillWait=10",
            "MinJobAge=300",
            "MaxArraySize=4",  # no task has a higher number than 3
            "SlurmdTimeout=5",
            "ReturnToService=2",
            "SlurmdParameters=config_overrides",
            "SlurmctldDebug=info",
        ]
        lines += [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 "
            f"Port={self.ports[node]} CPUs=1 RealMemory=500 State=UNKNOWN"
            for node in self.nodes
        ]
        every = ",".join(self.nodes)
        lines += [
            f"PartitionName=main Nodes={every} Default=YES MaxTime=INFINITE PriorityTier=1",
            f"PartitionName=urgent Nodes={every} MaxTime=INFINITE PriorityTier=9",
        ]
        (place / "slurm.conf").write_text("\n".join(lines) + "\n")


@contextmanager
def running(place: Path) -> Iterator[Slurm]:
    """A cluster for the block."""
    place.mkdir(parents=True, exist_ok=True)
    slurm = Slurm(place)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
