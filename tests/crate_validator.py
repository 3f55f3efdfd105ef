"""The validator of the RO-Crate community as a process, with no network: its cache filled before.

The JSON-LD context of RO-Crate 1.2 is a fixture (CC0-1.0; tests/fixtures/ro-crate/README.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures" / "ro-crate"
CONTEXT_URL = "https://w3id.org/ro/crate/1.2/context"
# Run apart: these libraries warn on import, and here warnings are errors.
_FILL = """
import io, sys
import requests, requests_cache, urllib3
cache, url, file = sys.argv[1:]
body = open(file, "rb").read()
answer = requests.Response()
answer.status_code, answer.url, answer._content = 200, url, body
answer.headers["Content-Type"] = "application/ld+json"
answer.request = requests.Request("GET", url).prepare()
answer.raw = urllib3.HTTPResponse(io.BytesIO(body), headers=dict(answer.headers))
requests_cache.CachedSession(cache, backend="sqlite", expire_after=-1).cache.save_response(answer)
"""


def fill_cache(directory: Path) -> Path:
    """A cache that holds the context; its path."""
    cache = directory / "http"
    context = FIXTURES / "context-1.2.jsonld"
    argv = [sys.executable, "-c", _FILL, str(cache), CONTEXT_URL, str(context)]
    subprocess.run(argv, check=True, capture_output=True)
    return cache


def issues(crate: Path, profile: str, cache: Path) -> list[tuple[str, str]]:
    """(severity, message) of what the validator finds, recommendations included.

    The profile of process runs builds on RO-Crate 1.1: what it adds is checked alone.
    """
    report = cache.parent / "report.json"
    alone = ["--disable-profile-inheritance"] if profile.startswith("process") else []
    argv = [
        sys.executable, "-c", "from rocrate_validator.cli import cli; cli()",
        "validate", str(crate), "-p", profile, *alone,
        "--offline", "--cache-path", str(cache), "-l", "recommended", "--no-paging",
        "-f", "json", "-o", str(report),
    ]  # fmt: skip
    report.unlink(missing_ok=True)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert report.exists(), done.stdout + done.stderr
    found = json.loads(report.read_text())
    return [(issue["severity"], issue["message"]) for issue in found["issues"]]
