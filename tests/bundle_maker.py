"""A project in a directory of its own, with a lock of tiny wheels, a tiny model and a plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.bundle.build import Built, build
from kit.bundle.host_list import HostList
from kit.home import Home
from kit.planning.plan_file import load_plan
from records.bundle import STARTER, Target
from records.digest import Digest
from records.plan import Plan

ROOT = Path(__file__).parents[1]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
MODEL_FILE = b'{"model_type": "tiny"}'
SALT = "0123456789abcdef0123456789abcdef"
PART_BYTES = 4000

TinyWheel = Callable[..., Path]


@dataclass(frozen=True, slots=True)
class Project:
    """A home whose root holds images/ of its own and the sources of this project."""

    home: Home
    plan: Plan

    def build(self, out: Path, host: HostList | None = None, part_bytes: int = PART_BYTES) -> Built:
        """The bundle of the plan."""
        return build(
            self.home, [self.plan], host or host_with(), part_bytes, out, lambda _line: None
        )


def silent(_line: str) -> None:
    """Say nothing."""


def host_with(**have: str) -> HostList:
    """A host like this one that has these distributions."""
    return HostList(Target(HERE, "x86_64", "2.36"), have)


def make_project(directory: Path, wheels: Mapping[str, Path], installer: Path | None) -> Project:
    """`wheels` by name, each of version 1.0."""
    root = directory / "project"
    images = root / "images"
    images.mkdir(parents=True)
    for package in ("records", "remote"):
        (root / package).symlink_to(ROOT / package)
    (images / "wheels-test.lock").write_text("".join(entry(n, w) for n, w in wheels.items()))
    if installer is not None:
        (images / "wheels-installer.lock").write_text(entry("uv", installer))
    home = Home(root, directory / "home", directory / "data", directory / "out")
    (home.models / "tiny").mkdir(parents=True)
    (home.models / "tiny" / "config.json").write_bytes(MODEL_FILE)
    (home.path / "salt").write_text(SALT)
    nothing = str(Digest.of(b""))
    source = {"wheel": "w", "version": "1", "wheel_digest": nothing, "member": "m"}
    model = {
        "license": "Apache-2.0",
        "source": {**source, "member_digest": nothing},
        "transformation": "gguf-to-bf16",
        "files": {
            "config.json": {
                "digest": str(Digest.of(MODEL_FILE)),
                "size_bytes": len(MODEL_FILE),
            }
        },
    }
    (images / "models.lock.json").write_text(json.dumps({"format": 1, "models": {"tiny": model}}))
    text = (ROOT / "kit" / "plans" / "sm90-pilot.toml").read_text()
    text = text.replace("wheels-sm90-offline.lock", "wheels-test.lock")
    plan = directory / "plan.toml"
    plan.write_text(text.replace("smollm2-135m", "tiny"))
    return Project(home, load_plan(plan))


def entry(name: str, wheel: Path) -> str:
    """A wheel's lines in a lock."""
    return f"{name}==1.0 \\\n    --hash=sha256:{Digest.of(wheel.read_bytes()).hex}\n"


def start_install(
    directory: Path, root: Path, *options: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """bundle_install.py as on a host: isolated, in an environment that points no installer out."""
    argv = [python, "-I", str(directory / STARTER), str(directory), "--root", str(root), *options]
    env = {"PATH": os.defpath, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "HOME": str(root.parent)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"  # as many images set it; the installation must not mind
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
