"""A real registry (Debian's docker-registry) on loopback, and images put into it byte by byte."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from records.digest import Digest

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
USER, PASSWORD = "reader", "a-secret-of-this-test"
_PATIENCE_S = 20


def require_program(name: str, package: str) -> str:
    """The program's path. In CI its absence is a failure, elsewhere the test is skipped."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/bin")
    if found:
        return found
    message = f"{name} is not here: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def free_port() -> int:
    """A port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class RegistryService:
    """A running registry; `auth` is the Authorization header of its only user, "" without."""

    port: int
    directory: Path
    auth: str

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.name}"

    def put_blob(self, repository: str, data: bytes) -> dict[str, Any]:
        """Upload; the descriptor without its media type."""
        digest = Digest.of(data)
        with httpx.Client(headers=self._headers()) as http:
            begun = http.post(f"{self.url}/v2/{repository}/blobs/uploads/")
            assert begun.status_code == 202, begun.text
            where = httpx.URL(begun.headers["Location"]).copy_add_param("digest", str(digest))
            done = http.put(where, content=data)
            assert done.status_code == 201, done.text
        return {"digest": str(digest), "size": len(data)}

    def put_manifest(self, repository: str, reference: str, data: bytes, media: str) -> Digest:
        """Upload under a tag or a digest."""
        url = f"{self.url}/v2/{repository}/manifests/{reference}"
        done = httpx.put(url, content=data, headers={**self._headers(), "Content-Type": media})
        assert done.status_code == 201, done.text
        return Digest.of(data)

    def stored_blob(self, digest: Digest) -> Path:
        """Where the registry keeps these bytes."""
        below = self.directory / "docker" / "registry" / "v2" / "blobs" / "sha256"
        return below / digest.hex[:2] / digest.hex / "data"

    def _headers(self) -> dict[str, str]:
        return {"Authorization": self.auth} if self.auth else {}


@contextmanager
def running_registry(directory: Path, *, htpasswd: bool = False) -> Iterator[RegistryService]:
    """A registry on a free port of loopback, ended by its own pid."""
    program = require_program("docker-registry", "docker-registry")
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    config: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "data")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    auth = ""
    if htpasswd:
        hasher = require_program("htpasswd", "apache2-utils")
        line = subprocess.run(
            [hasher, "-nbB", USER, PASSWORD], capture_output=True, check=True
        ).stdout
        (directory / "htpasswd").write_bytes(line)
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(directory / "htpasswd")}}
        auth = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    file = directory / "config.yml"
    file.write_text(json.dumps(config))  # JSON is YAML
    with (directory / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", str(file)],
            stdout=log,
            stderr=log,
            env={"OTEL_TRACES_EXPORTER": "none"},
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/v2/", process)
        yield RegistryService(port, directory / "data", auth)
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the registry ended with status {process.returncode}"
        try:
            if httpx.get(url).status_code in (200, 401):
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail("the registry did not answer")


@dataclass(frozen=True)
class PutImage:
    """An image that was put into a registry."""

    index: Digest
    manifests: Mapping[str, Digest]
    configs: Mapping[str, Digest]
    layers_bytes: int


def put_image(
    registry: RegistryService,
    repository: str,
    tag: str,
    env: tuple[str, ...] = ("NVIDIA_REQUIRE_CUDA=cuda>=12.9",),
    platforms: tuple[str, ...] = ("linux/amd64", "linux/arm64"),
    layers: tuple[bytes, ...] = (b"layer one", b"layer two, longer"),
) -> PutImage:
    """Put an image of these layers, one manifest a platform, and an attestation beside them."""
    entries, manifests, configs = [], {}, {}
    for platform in platforms:
        os_name, _, architecture = platform.partition("/")
        config = {
            "os": os_name,
            "architecture": architecture,
            "config": {"Env": ["PATH=/usr/bin", *env]},
            "rootfs": {"type": "layers", "diff_ids": [str(Digest.of(x)) for x in layers]},
        }
        described = registry.put_blob(repository, json.dumps(config).encode())
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, **described},
            "layers": [
                {"mediaType": LAYER, **registry.put_blob(repository, layer)} for layer in layers
            ],
        }
        data = json.dumps(manifest).encode()
        digest = registry.put_manifest(repository, str(Digest.of(data)), data, MANIFEST)
        manifests[platform] = digest
        configs[platform] = Digest.parse(described["digest"])
        entries.append(
            {
                "mediaType": MANIFEST,
                "digest": str(digest),
                "size": len(data),
                "platform": {"os": os_name, "architecture": architecture},
            }
        )
    attested = {**entries[0], "platform": {"os": "unknown", "architecture": "unknown"}}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [*entries, attested]}
    data = json.dumps(index).encode()
    digest = registry.put_manifest(repository, tag, data, INDEX)
    return PutImage(digest, manifests, configs, sum(len(x) for x in layers))
