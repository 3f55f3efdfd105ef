"""What a plan asks of a host: its own requirements, and what the locks say of image and models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kit.docker.choice import DockerChoice
from kit.doctor.cuda_requirement import cuda_of_wheels
from kit.doctor.topic import DOCKER, WHEELS, Needs
from kit.engine.models import read_model_lock
from kit.home import Home
from kit.hosts.host import Host
from kit.image_lock import LOCK_NAME, read_image_lock
from records.image_digests import PLATFORM
from records.plan import Plan


def needs_of(
    home: Home,
    plan: Plan,
    runtime: str = "",
    image_name: str = "",
    lock: Path | None = None,
    mirror: str = "",
) -> Needs:
    """The needs of a plan in this runtime; in the docker runtime also those of its image.

    `lock`: another than images/; `mirror`: the registry that it comes from. A plan whose engine
    comes from a wheel lock has no other runtime unless one is asked for.
    """
    from_image = plan.engine.lock == LOCK_NAME
    chosen = runtime or ("" if from_image else WHEELS)
    models = models_bytes(home, plan)
    if chosen == WHEELS:
        wheels = home.root / "images" / plan.engine.lock
        is_there = plan.engine.lock.startswith("wheels") and wheels.is_file()
        cuda = cuda_of_wheels(wheels.read_text(encoding="utf-8")) if is_there else ""
        return Needs(plan.requirements, chosen, requires_cuda=cuda, models_bytes=models)
    image = read_image_lock(lock or home.root / "images" / LOCK_NAME).image(image_name)
    platform = image.platforms.get(PLATFORM)
    layers, cuda = 0, ""
    if platform is not None:
        layers, cuda = platform.layers_bytes or 0, platform.requires_cuda or ""
    reference = replace(image.reference, registry=mirror or image.registry)
    python = image.python
    return Needs(plan.requirements, chosen, layers, cuda, models, str(reference), python)


def needs_in_image(home: Home, plan: Plan, choice: DockerChoice) -> Needs:
    """The needs of a plan in the docker runtime, with a resolved image."""
    layers, cuda = choice.platform.layers_bytes, choice.platform.requires_cuda
    reference, python = str(choice.reference), choice.image.python
    models = models_bytes(home, plan)
    return Needs(plan.requirements, DOCKER, layers, cuda, models, reference, python)


def on_host(needs: Needs, host: Host, there: Home) -> Needs:
    """The needs, less what of engine and models the host has already."""
    of_plan = (there.models,) if needs.runtime == DOCKER else (there.engine, there.models)
    return replace(needs, present_bytes=host.used_mib(of_plan) << 20)


def models_bytes(home: Home, plan: Plan) -> int:
    """The files of the plan's locked models."""
    lock = read_model_lock(home.root / "images" / "models.lock.json")
    return sum(
        file.size_bytes
        for name in plan.models
        if name in lock.models
        for file in lock.models[name].files.values()
    )
