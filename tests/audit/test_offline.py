"""The audit runs with the network off, no engine, no Docker: interpreter and kernel see to it.

A sitecustomize installs an audit hook (sys.addaudithook) that ends the process at the first socket,
at any import of an engine, and at any program but git and ssh-keygen. Where this user may make
network namespaces, the same command also runs in one that has no network at all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit.tamper.healthy import Repository, build

PROGRAMS = ("git", "ssh-keygen")
HOOK = f"""
import os, sys

def deny(event, arguments):
    bad = event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
    if event == "import":
        bad = arguments[0].partition(".")[0] in ("vllm", "torch", "docker", "paramiko")
    if event == "subprocess.Popen":
        bad = os.path.basename(str(arguments[0])) not in {PROGRAMS!r}
    if event in ("os.system", "os.posix_spawn"):
        bad = True
    if bad:
        os.write(2, f"DENIED {{event}} {{arguments!r}}".encode())
        os._exit(99)

sys.addaudithook(deny)
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A healthy, signed repository."""
    return build(tmp_path_factory.mktemp("offline"))


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment with the hook and a PATH of two programs."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HOOK)
    (tmp_path / "bin").mkdir()
    for program in PROGRAMS:
        found = shutil.which(program)
        assert found is not None, f"{program} is not installed"
        (tmp_path / "bin" / program).symlink_to(found)
    return {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path),
        "KIT_HOME": str(tmp_path / "no-kit"),
        "PYTHONPATH": str(tmp_path / "hook"),
    }


def _audit(
    repository: Repository, bare: dict[str, str], *before: str
) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "kit.main", "audit", "--json"]
    return subprocess.run(
        [*command, "--data", str(repository.data)],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_socket_no_engine_no_docker(repository: Repository, bare: dict[str, str]) -> None:
    """The records of another project, whose locks and paper are not this one's, to the end."""
    done = _audit(repository, bare)
    assert done.returncode != 99, done.stderr
    assert json.loads(done.stdout)["sealed"] == 3


def test_a_healthy_project_is_found_healthy(repository: Repository, bare: dict[str, str]) -> None:
    code = (
        "import sys; from pathlib import Path; from audit.runner import audit\n"
        "print(audit(Path(sys.argv[1]), Path(sys.argv[2])).findings)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(repository.root), str(repository.data)],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "()\n"), done.stderr


def test_the_hook_would_notice(bare: dict[str, str]) -> None:
    code = "import socket; socket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", code], env=bare, capture_output=True, check=False)
    assert done.returncode == 99
    assert b"DENIED socket" in done.stderr


def test_in_a_namespace_without_a_network(repository: Repository, bare: dict[str, str]) -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare (util-linux)")
    options = ["-n"] if os.geteuid() == 0 else ["-r", "-n"]
    tried = subprocess.run([unshare, *options, "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("this user may not make network namespaces")
    inside, outside = _audit(repository, bare, unshare, *options), _audit(repository, bare)
    assert inside.returncode == outside.returncode
    assert json.loads(inside.stdout) == json.loads(outside.stdout)
