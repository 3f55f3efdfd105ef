"""--runtime, --image, --image-lock and --mirror: in what the engine is to run.

Invariant: a plan whose engine comes from the image lock runs in the image, any other from its
wheels, unless the command line says otherwise. The variables hand the choice on to child processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kit.docker.choice import DockerChoice, choose
from kit.doctor.topic import DOCKER, WHEELS
from kit.engine.setup import require_locked
from kit.home import Home
from kit.image_lock import LOCK_NAME
from records.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])
_META = "kit.runtime"


def runtime_options(function: F) -> F:
    """The four options, which `docker_choice` looks for."""
    runtime = click.option(
        "--runtime",
        type=click.Choice((DOCKER, WHEELS)),
        envvar="KIT_RUNTIME",
        expose_value=False,
        callback=_note,
        help="Default: docker where the plan names the image lock.",
    )
    image = click.option(
        "--image", envvar="KIT_IMAGE", default="", expose_value=False, callback=_note,
        metavar="NAME", help="Which image of the lock; default: its only one.",
    )  # fmt: skip
    lock = click.option(
        "--image-lock", envvar="KIT_IMAGE_LOCK", type=click.Path(path_type=Path),
        expose_value=False, callback=_note, metavar="FILE",
        help=f"Another lock than images/{LOCK_NAME}.",
    )  # fmt: skip
    mirror = click.option(
        "--mirror", envvar="KIT_MIRROR", default="", expose_value=False, callback=_note,
        metavar="REGISTRY", help="Pull the same digest from there.",
    )  # fmt: skip
    return runtime(image(lock(mirror(function))))


def _note(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta[f"{_META}.{param.name}"] = value


def docker_choice(home: Home, plan: Plan) -> DockerChoice | None:
    """The image to run in; None for wheels. UnlockedModelError, UnresolvedImageError."""
    meta = click.get_current_context().meta
    for name in ("runtime", "image", "image_lock", "mirror"):
        if meta.get(f"{_META}.{name}"):  # with several hosts each has a process of its own
            os.environ[f"KIT_{name.upper()}"] = str(meta[f"{_META}.{name}"])
    runtime = meta.get(f"{_META}.runtime") or (DOCKER if plan.engine.lock == LOCK_NAME else WHEELS)
    if runtime == WHEELS:
        return None
    require_locked(home, plan)  # an image that is there would not help a plan without its models
    name, mirror = str(meta.get(f"{_META}.image", "")), str(meta.get(f"{_META}.mirror", ""))
    return choose(home.root / "images", name, mirror, meta.get(f"{_META}.image_lock"))
