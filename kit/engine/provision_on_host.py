"""Install engine and models on a host that is not this machine; run there by its own Python.

Invariant: the answer is written only after every lock was met. Runs from a copied directory, as
`python3 -I DIRECTORY REQUEST ANSWER`, `main` being called by its __main__.py; needs the standard
library of Python 3.10, uv, and nothing of the kit but what is copied with it. A hub's token comes
by standard input, is kept in memory, and reaches no process that is started here.
"""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

from kit.engine.models import materialise, read_model_lock
from kit.engine.wheels import install_engine, site_packages
from records.errors import DiskFullError, KitError

# What travels: this file's imports, and the script that the engine's Python runs.
SOURCES = (
    "kit/__init__.py",
    "kit/engine/__init__.py",
    "kit/engine/provision_on_host.py",
    "kit/engine/models.py",
    "kit/engine/hub_download.py",
    "kit/engine/wheels.py",
    "kit/heartbeat.py",
    "kit/engine/uv_process.py",
    "kit/engine/materialise_gguf.py",
    "records/__init__.py",
    "records/decode.py",
    "records/digest.py",
    "records/errors.py",
    "records/limits.py",
)
MAIN = """\
import sys

from kit.engine.provision_on_host import main

sys.exit(main(sys.argv[1:]))
"""


def main(argv: list[str]) -> int:
    """Do what the request says; its exit status, the cause printed as the harness prints one."""
    request_path, answer = Path(argv[0]), Path(argv[1])
    request = json.loads(request_path.read_text(encoding="utf-8"))
    token = sys.stdin.read().strip() if request.get("token_follows") else ""
    try:
        text = json.dumps(_provision(request, Path(__file__).resolve().parents[2], token))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _say(f"error: no space left on this host: {error.filename or error}")
        return DiskFullError.exit_code
    except KitError as error:
        _say(f"error: {error.message}")
        if error.remedy:
            _say(f"  try: {error.remedy}")
        return error.exit_code
    partial = answer.with_name(f"{answer.name}.partial")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(answer)
    return 0


def _provision(request: dict[str, object], here: Path, token: str) -> dict[str, str]:
    engine, models = str(request["engine"]), Path(str(request["models"]))
    answer, python = {}, Path()
    if engine:
        installed = install_engine(here / "images" / str(request["lock"]), Path(engine), _say)
        _say(f"engine {'was installed already' if installed.reused else 'installed'}: {engine}")
        python = installed.python
        answer = {
            "python": str(python),
            "site": str(site_packages(Path(engine))),
            "lock_digest": str(installed.lock_digest),
        }
    wanted = request["wanted"]
    lock = read_model_lock(here / "images" / "models.lock.json")
    for name in wanted if isinstance(wanted, list) else []:
        materialise(str(name), lock, python, models, _say, token)
        _say(f"model {name}: every file is the locked one")
    return answer


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
