"""One boot: the lifetime of one engine process, from start to proof that nothing is left.

Invariant: every `boot.started` is followed by a `boot.ended`, whatever happens in between short of
the death of the harness itself.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from records import schema
from records.decode import to_object
from records.digest import Digest
from records.errors import EngineBootError, KitError
from records.plan import Arm
from remote import compile_cache, leftover, warmup
from remote.affinity import on_cpus
from remote.attachment import keep_compressed
from remote.context import Context
from remote.engine import process
from remote.engine.adapter import EngineSpec
from remote.engine.clean import CleanReport, prove_clean, require_clean
from remote.engine.ports import free_port, require_port_free
from remote.engine.process import EngineProcess
from remote.host.gpu import GpuMemory, memory_used
from remote.http_get import get
from remote.window import Booted, measure_window

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class BootIdentity:
    """Which boot this is. `planned` "": an unmeasured boot that fills a warm arm's caches."""

    id: str
    planned: str
    attempt: int
    arm: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a boot ended, as `boot.ended` records it."""

    outcome: str
    cause: str = ""
    detail: str = ""


def run_boot(context: Context, boot: BootIdentity) -> str:
    """Carry out one boot and return its outcome. Any KitError that stops the run is raised after.

    EngineLeakError where the stopped engine left something behind: later boots would not be alike.
    """
    arm = context.plan.arm(boot.arm)
    port = context.job.port or free_port(HOST)
    require_port_free(HOST, port)
    cache = compile_cache.cache_directory(context.scratch, arm)
    spec = _spec(context, arm, port, cache)
    argv = context.adapter.command(spec)
    env = context.adapter.environment(spec, os.environ)
    baseline = memory_used()
    context.record(
        schema.BootStarted(
            boot=boot.id,
            planned=boot.planned,
            attempt=boot.attempt,
            arm=arm.id,
            argv=tuple(context.redact(a) for a in argv),
            env={k: context.redact(v) for k, v in sorted(env.items())},
            port=port,
            compile_cache=to_object(compile_cache.observe(cache, arm, context.job.cache)),
            clock=context.clock(),
        )
    )
    log_path = context.scratch / "logs" / f"{boot.id}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    log_path.unlink(missing_ok=True)
    ending = Ending("interrupted", "the harness failed; its own log says how")
    clean: CleanReport | None = None
    engine: EngineProcess | None = None
    try:
        remember = partial(leftover.remember, context.scratch)
        with context.interruption.shield(), on_cpus(context.job.engine_cpus):
            engine = process.start(argv, env, log_path, context.scratch, (HOST, port), remember)
        _live(context, boot, engine, spec)
        ending = Ending("completed")
    except EngineBootError as error:
        cause, _, detail = context.redact(error.message).partition("\n")
        ending = Ending("failed", cause, detail)
        context.say(f"boot {boot.id} failed: {error.message}")
    except KitError as error:
        ending = Ending("interrupted", context.redact(error.message))
        raise
    finally:
        with context.interruption.shield():
            clean = _end(context, boot, engine, ending, (port, baseline))
    if clean is not None:
        require_clean(clean)
    return ending.outcome


def _spec(context: Context, arm: Arm, port: int, cache: Path) -> EngineSpec:
    args = list(arm.args)
    if arm.speculative_config:
        config = json.loads(arm.speculative_config)
        if "model" in config:
            config["model"] = context.job.models[config["model"]].path
        args += ["--speculative-config", json.dumps(config)]
    # A home of its own: what an engine keeps there must not come from, or go to, anybody's.
    home = context.scratch / "home"
    home.mkdir(exist_ok=True)
    caches = context.adapter.cache_environment(str(cache))
    env = {"HOME": str(home), **caches, **context.job.engine.env, **arm.env}
    return EngineSpec(
        launcher=context.job.engine.launcher,
        model_path=context.job.models[arm.model].path,
        served_name=arm.model,
        host=HOST,
        port=port,
        args=tuple(args),
        env=tuple(sorted(env.items())),
    )


def _live(context: Context, boot: BootIdentity, engine: EngineProcess, spec: EngineSpec) -> None:
    """Everything between start and stop."""
    adapter = context.adapter
    listen = (spec.host, spec.port)
    context.say(f"boot {boot.id}: starting the engine")
    timeout_ns = context.plan.warmup.boot_timeout_s * 1_000_000_000
    healthy = process.wait_healthy(engine, listen, adapter.health_path, timeout_ns)
    healthy_ns = time.monotonic_ns()
    context.record(schema.BootHealthy(boot.id, healthy.took_ns))
    booted = Booted(
        id=boot.id,
        engine=engine,
        host=spec.host,
        port=spec.port,
        served_name=spec.served_name,
        prefix_cache=adapter.declares_prefix_cache(spec),
    )
    context.record(warmup.warm(context, booted))
    decisions = adapter.read_log(engine.log_path.read_bytes())
    version = json.loads(get(listen, adapter.version_path))["version"]
    wanted = context.plan.engine.version
    if not context.job.synthetic and version != wanted:
        raise EngineBootError(f"the engine is version {version}, the plan is for {wanted}")
    context.record(
        schema.EngineDecided(boot.id, str(version), context.redact_value(to_object(decisions)))
    )
    for window in context.plan.windows if boot.planned else ():
        context.say(f"boot {boot.id}: window {window.id}")
        answers = measure_window(context, booted, window, healthy_ns)
        if not answers or engine.exit_status() is not None:
            raise process.died(engine, f"in window {window.id}")


def _end(
    context: Context,
    boot: BootIdentity,
    engine: EngineProcess | None,
    ending: Ending,
    before: tuple[int, tuple[GpuMemory, ...]],
) -> CleanReport | None:
    """Stop the engine, prove that nothing is left, keep its log, record the end."""
    port, baseline = before
    stop: dict[str, object] = {}
    logs: dict[str, Digest] = {}
    clean: CleanReport | None = None
    if engine is not None:
        stop = to_object(process.stop(engine))
        clean = prove_clean(engine, (HOST, port), baseline)
        stop["clean"] = to_object(clean)
        name = f"logs/{boot.id}.log.gz"
        logs[name] = keep_compressed(context, name, engine.log_path.read_bytes())
        leftover.forget(context.scratch)
    context.record(
        schema.BootEnded(boot.id, ending.outcome, ending.cause, ending.detail, stop, logs)
    )
    context.say(f"boot {boot.id}: {ending.outcome}")
    return clean
