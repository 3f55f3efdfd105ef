"""Starts the installation of a bundle: python3 bundle_install.py PARTS_DIR --root ROOT

Invariant: the archive beside this file runs only if it is the one that the manifest names. This
file is copied into each bundle and runs there alone, on Python 3.10 or newer.
"""

from __future__ import annotations

import hashlib
import json
import runpy
import sys
from pathlib import Path

_INCOMPLETE, _DAMAGED = 34, 35  # as records/errors.py has them


def main() -> None:
    """Verify harness.pyz and hand over to its command `install`."""
    here = Path(__file__).resolve().parent
    archive = here / "harness.pyz"
    try:
        want = json.loads((here / "manifest.json").read_bytes())["files"]["harness.pyz"]
        got = "sha256:" + hashlib.sha256(archive.read_bytes()).hexdigest()
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}", _INCOMPLETE)
    except (TypeError, KeyError):
        _fail("manifest.json: it names no harness.pyz", _DAMAGED)
    except (ValueError, RecursionError) as error:
        _fail(f"manifest.json: {error}", _DAMAGED)
    if got != want:
        _fail(f"harness.pyz: got {got}, want {want}", _DAMAGED)
    sys.argv = [str(archive), "install", *sys.argv[1:]]
    runpy.run_path(str(archive), run_name="__main__")


def _fail(message: str, code: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    print("  try: carry manifest.json and harness.pyz anew", file=sys.stderr)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
