"""Make the docker runtime of a run ready on a host: image, places, container request, inner job.

Invariant: the job that stands beside the others names places on the host; the harness in the
container gets one of its own, with the same plan, that names places in the container.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from kit.docker.choice import DockerChoice
from kit.docker.pull import Say, ensure_image, socket_path
from kit.docker.request import (
    EXCHANGE,
    HARNESS,
    JOB,
    ROOT,
    SCRATCH,
    ContainerSpec,
    container_name,
    create_request,
)
from kit.doctor.gpu_container import require_gpu
from kit.engine import provision
from kit.engine.models import read_model_lock
from kit.engine.setup import hub_token_for
from kit.home import Home
from kit.hosts.host import Host
from records import canonical
from records.container_job import ContainerJob
from records.decode import to_object
from records.errors import HostUnfitError, ProvisionError
from records.job import EngineOnHost, Job, ModelOnHost
from records.plan import Plan
from records.seal import SEAL_NAME

DOCKER = "docker"
REFERENCE = "reference"
_SERVER = ("-m", "vllm.entrypoints.openai.api_server")
# The container has no network and no name for its user: what looks for an address or a name gets
# them here. vllm/envs.py (VLLM_HOST_IP); gloo and NCCL bind to the interface that they are told.
_ENGINE_ENV = {
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_SOCKET_IFNAME": "lo",
    "USER": "engine",
    "VLLM_HOST_IP": "127.0.0.1",
}


def set_up_engine(plan: Plan, choice: DockerChoice) -> EngineOnHost:
    """The engine as the job tells it: the image's own interpreter, and the lock of the image."""
    reference = plan.engine.name == REFERENCE
    python = choice.image.python
    return EngineOnHost(
        runtime=DOCKER,
        launcher=(python, "-I", "-S", HARNESS, REFERENCE) if reference else (python, *_SERVER),
        site_directories=(),
        env={} if reference else dict(_ENGINE_ENV),
        lock=choice.lock_name,
        lock_digest=choice.lock_digest,
        attestation=EXCHANGE,
    )


def set_up_models(home: Home, host: Host, plan: Plan, say: Say) -> dict[str, ModelOnHost]:
    """The plan's models where they stand on the host: carried there, or downloaded by the host.

    ProvisionError where one is neither here nor there, and no hub's.
    """
    if plan.engine.name == REFERENCE:
        return {name: ModelOnHost(name, {}) for name in plan.models}
    lock = read_model_lock(home.root / "images" / "models.lock.json")
    there, models = host.home(home), {}
    lacking = [name for name in plan.models if not host.names(there.models / name)]
    from_hub = [
        name for name in lacking if lock.model(name).hub and not (home.models / name).is_dir()
    ]
    if from_hub:
        provision.models_on_host(home, host, plan, from_hub, say, hub_token_for(home, host, plan))
    for name in plan.models:
        target = there.models / name
        if not host.names(target) and (home.models / name).is_dir():
            host.put(home.models / name, target)
        if not host.names(target):
            raise ProvisionError(
                f"model {name} is not on {host.name} and not here: {home.models / name}",
                "kit models materialise NAME, here; it is then brought there",
            )
        files = {file: locked.digest for file, locked in lock.model(name).files.items()}
        models[name] = ModelOnHost(str(target), files)
    return models


def bring_container(
    home: Home, host: Host, job: Job, harness: Path, choice: DockerChoice, say: Say
) -> None:
    """Image, directories, inner job and container request on the host, ready for the keeper."""
    if ensure_image(home, host, choice, say) and _needs_gpu(job.plan):
        # One that was there before has been tried by the examination.
        require_gpu(host, str(choice.reference), choice.image.python)
    there = host.home(home)
    place = there.container(job.run_id)
    exchange = place / "exchange"
    wanted = (exchange, Path(job.run_directory), Path(job.scratch), Path(job.prompts_directory))
    done = host.run(("mkdir", "-p", *(str(path) for path in wanted)))
    if done.status != 0:
        raise HostUnfitError(f"{host.name}: {done.stderr.strip()}", "kit doctor HOST")
    inner = inside(job)
    spec = ContainerSpec(
        run_id=job.run_id,
        image=choice.reference,
        python=choice.image.python,
        user=f"{_number(host, '-u')}:{_number(host, '-g')}",
        gpus=_needs_gpu(job.plan),
        readable={
            HARNESS: str(harness),
            JOB: str(place / "job.json"),
            **{inner.models[n].path: m.path for n, m in job.models.items() if m.files},
            **_machine_id(host),
        },
        writable={
            EXCHANGE: str(exchange),
            SCRATCH: job.scratch,
            inner.run_directory: job.run_directory,
        },
    )
    container = ContainerJob(
        socket=socket_path(_environment(host)),
        name=container_name(job.run_id),
        request=create_request(spec),
        image=choice.digests,
        exchange=str(exchange),
        seal=str(Path(job.run_directory) / SEAL_NAME),
        registry=choice.registry,
    )
    with tempfile.TemporaryDirectory() as directory:
        for name, value in (("job.json", inner), ("container.json", container)):
            file = Path(directory) / name
            file.write_bytes(canonical.encode(to_object(value)))
            host.put(file, place / name)


def inside(job: Job) -> Job:
    """The job as the harness in the container reads it."""
    models = {
        name: replace(model, path=f"{ROOT}/models/{name}" if model.files else model.path)
        for name, model in job.models.items()
    }
    run_directory = f"{ROOT}/runs/{job.run_id}"
    return replace(job, models=models, run_directory=run_directory, scratch=SCRATCH)


def _needs_gpu(plan: Plan) -> bool:
    need = plan.requirements
    return need.compute_capability > 0 or need.gpu_memory_mib > 0


def _machine_id(host: Host) -> dict[str, str]:
    """The host's machine-id, which tells it apart from others; the image has its own or none."""
    path = "/etc/machine-id"
    return {path: path} if host.run(("test", "-s", path)).status == 0 else {}


def _number(host: Host, flag: str) -> int:
    text = host.run(("id", flag)).stdout.strip()
    if not text.isdecimal():
        raise HostUnfitError(f"{host.name}: id {flag} says {text[:40]!r}", "kit doctor HOST")
    return int(text)


def _environment(host: Host) -> dict[str, str]:
    address = host.run(("printenv", "DOCKER_HOST")).stdout.strip()
    return {"DOCKER_HOST": address} if address else {}
