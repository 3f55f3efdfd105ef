"""An engine in an Apptainer image file: what it is, and what of the node's environment reaches it.

Invariant: the file is read whole and held against the digest it had when it was built; an image
file is no two times the same bytes, so its digest stands beside that of the image it was built of.

Sources: apptainer(1), exec, inspect; docs/user, "Environment and Metadata": a variable of the host
wins over the image's, except PATH. So only what no image decides is handed in.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from records.digest import Digest
from records.errors import BindingError
from records.job import EngineOnHost
from records.schema import EngineBound
from remote.engine import vllm
from remote.engine.adapter import EngineSpec

RUNTIME = "apptainer"
_TIMEOUT_S = 60
_ORIGIN = "org.label-schema.usage.singularity.deffile.from"
_IMAGES_OWN = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "SSL_CERT_FILE", "LANG", "LC_CTYPE")


def bind(engine: EngineOnHost, phase: str) -> EngineBound:
    """The record of what the engine is at `phase`. BindingError where the file is another."""
    sif = engine.sif
    if sif is None:
        raise BindingError("the job names no image file", "kit reproduce --fleet slurm")
    path = Path(sif.path)
    try:
        with path.open("rb") as file:
            got = Digest.of_file(file)
    except OSError as error:
        raise BindingError(
            f"the image file cannot be read: {error.strerror}", _again(path)
        ) from error
    if got != sif.digest:
        raise BindingError(f"image file: got {got}, want {sif.digest}", _again(path))
    program = engine.launcher[0]
    origin = _origin(_answer(program, "inspect", "--json", str(path)))
    if origin and sif.image.index.hex not in origin and sif.image.manifest.hex not in origin:
        raise BindingError(f"image file: built of {origin}, want {sif.image.index}", _again(path))
    facts = {
        "index_digest": str(sif.image.index),
        "manifest_digest": str(sif.image.manifest),
        "image_id": str(sif.image.image_id),
        "sif_digest": str(got),
        "sif_bytes": path.stat().st_size,
        "built_of": origin or "absent",
        "registry": sif.registry,
        "apptainer": _answer(program, "--version").strip() or "absent",
    }
    return EngineBound(phase, RUNTIME, sif.image.index, engine.lock, engine.lock_digest, facts)


def environment(spec: EngineSpec, inherited: Mapping[str, str]) -> dict[str, str]:
    """As for an engine on the host, without what an image sets for itself."""
    kept = {name: value for name, value in inherited.items() if name not in _IMAGES_OWN}
    return vllm.environment(spec, kept)


def _origin(text: str) -> str:
    """What `apptainer inspect --json` says the file was built of; "" where it does not say."""
    try:
        found: Any = json.loads(text)["data"]["attributes"]["labels"][_ORIGIN]
    except (ValueError, KeyError, TypeError):
        return ""
    return str(found)


def _answer(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BindingError(f"{argv[0]} does not run on this node: {error}", "slurm.toml") from error
    return done.stdout if done.returncode == 0 else ""


def _again(path: Path) -> str:
    return f"remove {path.name} from the kit's images on the login node; it is built again"
