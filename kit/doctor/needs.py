"""What a plan asks of a host: its own requirements, and what the locks say of image and models."""

from __future__ import annotations

from kit.doctor.topic import DOCKER, WHEELS, Needs
from kit.engine.models import read_model_lock
from kit.home import Home
from kit.image_lock import LOCK_NAME, read_image_lock
from kit.registry.resolve import Platform
from records.image_digests import PLATFORM
from records.plan import Plan


def needs_of(home: Home, plan: Plan, runtime: str = "", image_name: str = "") -> Needs:
    """The needs of a plan in this runtime; in the docker runtime also those of its image.

    A plan whose engine comes from a wheel lock has no other runtime unless one is asked for.
    """
    from_image = plan.engine.lock == LOCK_NAME
    chosen = runtime or ("" if from_image else WHEELS)
    layers, cuda = 0, ""
    if chosen != WHEELS:
        image = read_image_lock(home.root / "images" / LOCK_NAME).image(image_name)
        platform = image.platforms.get(PLATFORM)
        if platform is not None:
            layers, cuda = platform.layers_bytes or 0, platform.requires_cuda or ""
    return Needs(plan.requirements, chosen, layers, cuda, models_bytes(home, plan))


def needs_in_image(home: Home, plan: Plan, platform: Platform) -> Needs:
    """The needs of a plan in the docker runtime, with a resolved image."""
    models = models_bytes(home, plan)
    layers, cuda = platform.layers_bytes, platform.requires_cuda
    return Needs(plan.requirements, DOCKER, layers, cuda, models)


def models_bytes(home: Home, plan: Plan) -> int:
    """The files of the plan's locked models."""
    lock = read_model_lock(home.root / "images" / "models.lock.json")
    return sum(
        file.size_bytes
        for name in plan.models
        if name in lock.models
        for file in lock.models[name].files.values()
    )
