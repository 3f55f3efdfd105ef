"""`kit version`."""

from __future__ import annotations

from importlib.metadata import version

import click

from kit.options import json_option
from kit.output import echo, print_json


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Print the version of this kit.

    \b
    Example:
      kit version
    """
    number = version("spec-fp8-reproduction-kit")
    if as_json:
        print_json({"version": number})
    else:
        echo(version_line())


def version_line() -> str:
    """`kit` and its version."""
    return f"kit {version('spec-fp8-reproduction-kit')}"
