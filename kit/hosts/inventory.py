"""A file of hosts: what the address alone does not say of each.

    [[hosts]]
    name = "gpu1"
    host = "root@203.0.113.7:22022"
    directory = "/workspace/kit"          # instead of ~/.spec-fp8-kit
    python = "/usr/bin/python3.12"        # for the harness
    engine_python = "/usr/bin/python3"    # an engine that is installed there already …
    site = ["/usr/lib/python3/dist-packages"]   # … and where its distributions are
    client_cpus = "14,15"
    engine_cpus = "0-13"

Invariant: unknown keys are errors; a name stands once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tomllib

from kit.hosts.host import HostSpec
from records.cpu_list import parse_cpus
from records.decode import from_object
from records.errors import FormatError, UnknownHostError


@dataclass(frozen=True, slots=True)
class Entry:
    """One host of the file."""

    name: str
    host: str
    directory: str = ""
    python: str = ""
    engine_python: str = ""
    site: tuple[str, ...] = ()
    client_cpus: str = ""
    engine_cpus: str = ""

    def __post_init__(self) -> None:
        if bool(self.engine_python) != bool(self.site):
            raise FormatError(f"host {self.name}: engine_python and site go together")

    @property
    def spec(self) -> HostSpec:
        """What a host object is made with."""
        return HostSpec(
            directory=self.directory,
            python=self.python,
            engine_python=self.engine_python,
            site=self.site,
            client_cpus=parse_cpus(self.client_cpus),
            engine_cpus=parse_cpus(self.engine_cpus),
        )


@dataclass(frozen=True, slots=True)
class Inventory:
    """The whole file."""

    hosts: tuple[Entry, ...]


def read_inventory(path: Path) -> dict[str, Entry]:
    """The hosts by name, in the file's order. UnknownHostError: it does not parse."""
    try:
        found = from_object(Inventory, tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UnknownHostError(f"{path}: cannot be read: {error}", "correct it") from error
    except FormatError as error:
        raise UnknownHostError(f"{path}: {error.message}", "correct it") from error
    by_name = {entry.name: entry for entry in found.hosts}
    if len(by_name) != len(found.hosts) or not by_name:
        raise UnknownHostError(f"{path}: want one host or more, each name once", "correct it")
    return by_name
