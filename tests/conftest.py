"""What all tests share: Ctrl-C as a terminal has it, and a tiny wheel made on the spot."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import signal
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

TinyWheel = Callable[..., Path]


def pytest_configure(config: pytest.Config) -> None:
    """Workers of pytest-xdist ignore SIGINT, and so would all that they start: no Ctrl-C."""
    if hasattr(config, "workerinput"):
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def tiny_wheel(tmp_path: Path) -> TinyWheel:
    """tiny_wheel(name, files): name-1.0 with `files`, a console script and a library as data."""

    def make(name: str, files: Mapping[str, bytes], data: bool = True) -> Path:
        info = f"{name}-1.0.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        content = {
            **files,
            f"{info}/METADATA": metadata.encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n".encode(),
        }
        if data:
            content[f"{name}-1.0.data/data/lib/lib{name}.so"] = b"\x7fELF" + name.encode()
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerows((path, _hash(data), len(data)) for path, data in content.items())
        rows.writerow((f"{info}/RECORD", "", ""))
        content[f"{info}/RECORD"] = text.getvalue().encode()
        directory = tmp_path / "wheels"
        directory.mkdir(exist_ok=True)
        wheel = directory / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, data in content.items():
                archive.writestr(path, data)
        return wheel

    return make


def _hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"
