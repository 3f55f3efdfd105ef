"""A real Docker daemon of the test's own, and an image small enough to make on the spot."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from registry_service import (
    CONFIG,
    INDEX,
    LAYER,
    MANIFEST,
    RegistryService,
    require_program,
)

from records.digest import Digest

_PATIENCE_S = 90
PYTHON = "/usr/bin/python3"


@dataclass
class DockerService:
    """A daemon in a directory of its own; `docker` calls its client."""

    directory: Path
    _process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def host(self) -> str:
        """The value of DOCKER_HOST."""
        return f"unix://{self.directory}/docker.sock"

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "DOCKER_HOST": self.host}

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        program = require_program("dockerd", "docker.io")
        argv = [
            program,
            f"--data-root={self.directory}/data",
            f"--exec-root={self.directory}/exec",
            f"--pidfile={self.directory}/docker.pid",
            f"--host={self.host}",
            "--bridge=none",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-forward=false",
            "--ip-masq=false",
            "--shutdown-timeout=20",
        ]
        with (self.directory / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + _PATIENCE_S
        while self.docker("info", check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                log_text = (self.directory / "dockerd.log").read_text()[-3000:]
                pytest.fail(f"dockerd did not come up:\n{log_text}")
            time.sleep(0.2)

    def stop(self) -> None:
        """In order, by its own pid: it ends its containers and its containerd first."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(_PATIENCE_S)

    def restart(self) -> None:
        self.stop()
        self.start()

    def docker(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", *args], env=self.env, capture_output=True, text=True, check=check
        )

    def containers(self) -> list[str]:
        """Ids of all containers, running or not."""
        return self.docker("ps", "-aq", "--no-trunc").stdout.split()

    def remove_images(self) -> None:
        """Every one: the next run or examination finds none."""
        for image in self.docker("images", "-q").stdout.split():
            self.docker("rmi", "-f", image)

    def remove_containers(self) -> None:
        for container in self.containers():
            self.docker("rm", "-f", container)


@contextmanager
def running_docker() -> Iterator[DockerService]:
    """A daemon below /tmp: its sockets' paths must be short. It needs root, as any dockerd."""
    require_program("docker", "docker.io")
    require_program("docker-init", "tini")
    if os.geteuid() != 0:
        message = "a Docker daemon of one's own needs root"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    directory = Path(tempfile.mkdtemp(prefix="kit-d", dir="/tmp"))
    service = DockerService(directory)
    try:
        service.start()
        yield service
        service.remove_containers()
    finally:
        service.stop()
        _unmount_below(directory)
        shutil.rmtree(directory, ignore_errors=True)


def _unmount_below(directory: Path) -> None:
    for line in Path("/proc/mounts").read_text().splitlines():
        place = line.split()[1]
        if place.startswith(f"{directory}/"):
            subprocess.run(["umount", "-l", place], check=False)


def python_layer() -> bytes:
    """A gzipped layer with this machine's Python, its standard library, and what they link to."""
    version = Path(PYTHON).resolve().name  # python3.11
    library = Path("/usr/lib") / version
    programs = [Path(PYTHON).resolve(), *library.glob("lib-dynload/*.so")]
    listed = subprocess.run(
        ["ldd", *map(str, programs)], capture_output=True, text=True, check=False
    ).stdout
    linked = {Path(name) for name in re.findall(r"(/\S+\.so\S*) \(0x", listed)}
    files = {p for p in library.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("tmp", "kit", "etc", "proc", "sys", "dev", "usr/bin"):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(directory)
        for path in sorted(files | linked):
            _add(tar, path, path)
        _add(tar, Path(PYTHON), Path(PYTHON).resolve())
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: Path, source: Path) -> None:
    info = tarfile.TarInfo(str(name).lstrip("/"))
    data = source.resolve().read_bytes()
    info.size, info.mode = len(data), 0o755
    tar.addfile(info, io.BytesIO(data))


@dataclass(frozen=True)
class PushedImage:
    """An image in a registry, by its digests."""

    index: Digest
    manifest: Digest
    config: Digest


def push_python_image(
    registry: RegistryService, repository: str, tag: str, layer: bytes, *env: str
) -> PushedImage:
    """Put an image of this one layer into the registry, through its API alone, index included."""
    packed = _packed(layer)
    config = {
        "os": "linux",
        "architecture": "amd64",
        "config": {"Env": ["PATH=/usr/bin", *env]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created_by": "test"}],
    }
    described = registry.put_blob(repository, json.dumps(config).encode())
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, **described},
        "layers": [{"mediaType": LAYER, **registry.put_blob(repository, packed)}],
    }
    data = json.dumps(manifest).encode()
    digest = registry.put_manifest(repository, str(Digest.of(data)), data, MANIFEST)
    entry = {
        "mediaType": MANIFEST,
        "digest": str(digest),
        "size": len(data),
        "platform": {"os": "linux", "architecture": "amd64"},
    }
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).encode()
    return PushedImage(
        registry.put_manifest(repository, tag, index, INDEX),
        digest,
        Digest.parse(described["digest"]),
    )


@cache
def _packed(layer: bytes) -> bytes:
    """Once for all images of this layer: it takes half a second."""
    return gzip.compress(layer, compresslevel=1, mtime=0)


def kill(pid: int) -> None:
    """SIGKILL, to one process of our own."""
    os.kill(pid, signal.SIGKILL)
