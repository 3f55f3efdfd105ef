"""The image of a plan as one file for Apptainer, built on the login node by digest.

Invariant: a file stands under its name only once it is whole; it is bound by its own digest, beside
that of the image, since building the same image twice does not give the same bytes.
"""

from __future__ import annotations

import time
from pathlib import Path

from kit.docker.choice import DockerChoice
from kit.docker.setup import set_up_models
from kit.engine.setup import REFERENCE, EngineSetup
from kit.home import Home
from kit.run.follow_log import LogTail
from kit.run.launch import Say
from kit.slurm.cluster_host import SlurmHost
from kit.slurm.submission import gpus
from records.digest import Digest
from records.errors import HostUnfitError, ProvisionError
from records.job import EngineOnHost, Sif
from records.plan import Plan

RUNTIME = "apptainer"
# In the place of a run's scratch, which is known only with the run.
SCRATCH_WORD = "@SCRATCH@"
_SERVER = ("-m", "vllm.entrypoints.openai.api_server")
_POLL_S = 1.0
_HASH_S = 900


def set_up(
    home: Home, host: SlurmHost, plan: Plan, choice: DockerChoice, harness: Path, say: Say
) -> EngineSetup:
    """The engine in its image file, and the models. ProvisionError where there is no Apptainer."""
    require_bindable(str(host.home(home).path))
    models = set_up_models(home, host, plan, say)
    sif = bring(home, host, choice, say)
    reference = plan.engine.name == REFERENCE
    seen = [SCRATCH_WORD, *(m.path for m in models.values() if m.files)]
    inside: tuple[str, ...] = (choice.image.python, *_SERVER)
    if reference:
        seen.append(str(harness.parent))
        inside = (choice.image.python, "-I", "-S", str(harness), REFERENCE)
    engine = EngineOnHost(
        runtime=RUNTIME,
        launcher=(*words(host.site.container, seen, nv=gpus(plan) > 0), sif.path, *inside),
        site_directories=(),
        env={} if reference else {"VLLM_HOST_IP": "127.0.0.1"},
        lock=choice.lock_name,
        lock_digest=choice.lock_digest,
        sif=sif,
    )
    return EngineSetup(engine, models)


def require_bindable(path: str) -> None:
    """HostUnfitError where a path means something else to `--bind SRC[:DEST[:OPTS]],…`."""
    if set(path) & set(":,\\"):
        raise HostUnfitError(
            f"{path}: Apptainer takes a colon, comma or backslash in it for the end of the path",
            "a place on the shared storage without one: KIT_HOME=… there",
        )


def words(program: str, seen: list[str], *, nv: bool) -> tuple[str, ...]:
    """The head of a command in the image: no home, where a user's own packages would be found."""
    binds = (f"--bind={path}:{path}" for path in seen)
    return (program, "exec", "--no-home", *(("--nv",) if nv else ()), *binds)


def bring(home: Home, host: SlurmHost, choice: DockerChoice, say: Say) -> Sif:
    """The image file on the shared storage, built there if need be."""
    there, digests = host.home(home), choice.digests
    target = there.path / "images" / f"{digests.manifest.hex[:16]}.sif"
    if target.name not in host.names(target.parent):
        _build(host, choice, target, there.logs, say)
    done = host.run(("sha256sum", "--", str(target)), timeout_s=_HASH_S)
    if done.status != 0:
        raise ProvisionError(f"{target}: {done.stderr.strip()}", "build it again: remove it")
    digest = Digest.parse(f"sha256:{done.stdout.lstrip(chr(92))[:64]}")
    say(f"image file {digest}")
    return Sif(str(target), digest, digests, choice.registry)


def _build(host: SlurmHost, choice: DockerChoice, target: Path, logs: Path, say: Say) -> None:
    program = host.site.container
    if host.run((program, "--version")).status != 0:
        raise ProvisionError(
            f"{host.name}: no {program} on the login node",
            "where nodes have no container either: --runtime wheels, or kit bundle",
        )
    partial, log = target.with_suffix(".partial"), logs / f"{target.stem}.log"
    host.run(("mkdir", "-p", "--", str(target.parent), str(logs)))
    tail = LogTail(host, log)
    say(f"building {target.name} of {choice.reference}; minutes, the first time")
    argv = (program, "pull", "--force", str(partial), f"docker://{choice.reference}")
    note = target.with_suffix(".pid")
    # Another kit may be building the same file: its build is waited for.
    running = host.attach(note, argv[-1]) or host.start_detached(argv, target.parent, log, note)
    while running.exit_status() is None:
        for line in tail.lines():
            say(f"  {line}")
        time.sleep(_POLL_S)
    status = running.exit_status()
    refused = host.run(("mv", "--", str(partial), str(target))).stderr if status == 0 else ""
    if target.name not in host.names(target.parent):
        list(tail.lines())
        last = ((refused or tail.text).strip().splitlines() or [f"status {status}"])[-1]
        raise ProvisionError(f"{program} pull: {last}", f"read {log}")
