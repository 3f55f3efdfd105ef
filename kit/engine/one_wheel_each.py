"""Write a hash lock with exactly one wheel for each distribution, from `pip install --report`.

Invariant: the lock names one file per distribution, so that two hosts which install from it hold
the same bytes and have the same binding digest.
Usage: python -m kit.engine.one_wheel_each REPORT > LOCK
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

HEADER = """\
# vLLM 0.29.0, CPU build, for CPython 3.11 on x86-64 Linux with glibc 2.31 or later.
# One wheel for each distribution. Made as images/README.md tells; do not edit by hand.
# torch +cpu comes from PyTorch's CPU index, all else from PyPI.
"""


def lock_of(report: dict[str, Any]) -> str:
    """The text of the CPU lock, with its head."""
    return HEADER + entries_of(report)


def entries_of(report: dict[str, Any]) -> str:
    """The entries of a lock: `name==version --hash=sha256:…`, sorted by normalised name."""
    lines = []
    for item in report["install"]:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()  # PEP 503
        digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={item['metadata']['version']} \\\n    --hash=sha256:{digest}\n")
    return "".join(sorted(lines))


if __name__ == "__main__":
    sys.stdout.write(lock_of(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
