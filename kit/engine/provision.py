"""Have a host over SSH install engine and models itself, and wait for it.

Invariant: the installation is a detached process of its own: a connection that drops neither stops
nor doubles it, and the same call attaches to one under way.
"""

from __future__ import annotations

import json
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.engine.provision_on_host import MAIN, SOURCES
from kit.engine.uv_process import uv_binary
from kit.home import Home
from kit.hosts.facts import HostFacts
from kit.hosts.host import Host, Running
from kit.run.follow_log import LogTail, harness_error
from records.digest import Digest
from records.plan import Plan

_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Ready:
    """An engine on a host: its Python, its site-packages, the lock it was installed from."""

    python: str
    site: str
    lock_digest: Digest


def can_bring_uv(host: Host, facts: HostFacts) -> bool:
    """Whether the uv of this machine runs there."""
    return host.name != "local" and (facts.system, facts.machine) == (
        platform.system(),
        platform.machine(),
    )


def on_host(
    home: Home, host: Host, plan: Plan, say: Callable[[str], None], token: str = ""
) -> Ready:
    """The plan's engine and models on the host. The errors of `wheels` and `models`.

    `token`: of a hub that one of the models is gated at; it goes by standard input.
    """
    say(f"{host.name}: engine and models are made ready there")
    found = _provide(home, host, plan, plan.models, say, token, engine=True)
    return Ready(found["python"], found["site"], Digest.parse(found["lock_digest"]))


def models_on_host(
    home: Home,
    host: Host,
    plan: Plan,
    models: Sequence[str],
    say: Callable[[str], None],
    token: str,
) -> None:
    """These of the plan's models on the host, downloaded from their hub; without an engine."""
    say(f"{host.name}: downloads {', '.join(models)}")
    _provide(home, host, plan, models, say, token, engine=False)


def _provide(
    home: Home,
    host: Host,
    plan: Plan,
    models: Sequence[str],
    say: Callable[[str], None],
    token: str,
    *,
    engine: bool,
) -> dict[str, str]:
    there = host.home(home)
    place = there.path / "provision"
    code = bring_code(home, host, plan, place)
    request = {
        "engine": str(there.engine) if engine else "",
        "models": str(there.models),
        "lock": plan.engine.lock,
        "wanted": list(models),
        **({"token_follows": True} if token else {}),
    }
    text = json.dumps(request, sort_keys=True)
    name = f"{code.name}-{Digest.of(text.encode()).hex[:8]}"
    asked, answer = place / f"{name}.request.json", place / f"{name}.answer.json"
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "request.json"
        file.write_text(text, encoding="utf-8")
        host.put(file, asked)
    path = _path_with_uv(host, place) if engine else host.run(("printenv", "PATH")).stdout.strip()
    log, note = there.logs / f"provision-{name}.log", place / f"{name}.pid"
    tail = LogTail(host, log)
    argv = ["env", f"PATH={path}", host.python, "-I", str(code), str(asked), str(answer)]
    running = host.start_detached(argv, place, log, note, stdin=token.encode())
    status = _wait(running, tail, say)
    if status != 0:
        raise harness_error(status, tail.text, f"{host.name}: provisioning", str(log))
    try:
        found: dict[str, str] = json.loads(host.read(answer))
    except FileNotFoundError:
        raise harness_error(0, tail.text, f"{host.name}: provisioning", str(log)) from None
    return found


def _wait(running: Running, tail: LogTail, say: Callable[[str], None]) -> int:
    while True:
        status = running.exit_status()
        for line in tail.lines():
            say(f"  {line}")
        if status is not None:
            return status
        time.sleep(_POLL_S)


def bring_code(home: Home, host: Host, plan: Plan, place: Path) -> Path:
    """The provisioning code and the locks, in a directory named by what is in it."""
    names = (*SOURCES, f"images/{plan.engine.lock}", "images/models.lock.json")
    files = {name: (home.root / name).read_bytes() for name in names}
    files["__main__.py"] = MAIN.encode()
    digests = [Digest.of(name.encode() + b"\0" + files[name]).hex for name in files]
    target = place / Digest.of("".join(digests).encode()).hex[:16]
    with tempfile.TemporaryDirectory() as directory:
        for name, data in files.items():
            path = Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        host.put(Path(directory), target)
    return target


def _path_with_uv(host: Host, place: Path) -> str:
    """The host's PATH, with a uv on it: its own, or a copy of the one here."""
    path = host.run(("printenv", "PATH")).stdout.strip()
    if host.run(("uv", "--version")).status == 0:
        return path
    tools = place / "bin"
    host.put(uv_binary().resolve(), tools / "uv")
    return f"{tools}:{path}"
