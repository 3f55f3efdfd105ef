"""What a plan asks of a host: its own requirements, and what the locks say of image and models."""

from __future__ import annotations

from kit.doctor.topic import WHEELS, Needs
from kit.home import Home
from kit.image_lock import LOCK_NAME, read_image_lock
from kit.models import read_model_lock
from records.plan import Plan

PLATFORM = "linux/amd64"


def needs_of(home: Home, plan: Plan, runtime: str = "", image_name: str = "") -> Needs:
    """The needs of a plan in this runtime; in the docker runtime also those of its image.

    A plan whose engine comes from a wheel lock has no other runtime unless one is asked for.
    """
    from_image = plan.engine.lock == LOCK_NAME
    chosen = runtime or ("" if from_image else WHEELS)
    models_lock = read_model_lock(home.root / "images" / "models.lock.json")
    files = [
        file.size_bytes
        for name in plan.models
        if name in models_lock.models
        for file in models_lock.models[name].files.values()
    ]
    layers, cuda = 0, ""
    if chosen != WHEELS:
        image = read_image_lock(home.root / "images" / LOCK_NAME).image(image_name)
        platform = image.platforms.get(PLATFORM)
        if platform is not None:
            layers, cuda = platform.layers_bytes or 0, platform.requires_cuda or ""
    return Needs(plan.requirements, chosen, layers, cuda, sum(files))
