"""Do the wheels that travel and the distributions of the host make one whole?

Invariant: each requirement that a travelling wheel declares for the host's interpreter (core
metadata, Requires-Dist; markers as in PEP 508) is met by another travelling wheel, met by the host
at a version that fits, or left out by name in the reviewed list of overrides.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from email.parser import BytesParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from kit.bundle.host_list import HostList
from kit.bundle.wheel_lock import LockedWheel
from records.bundle import Pin, Target
from records.errors import ProvisionError

_SHOWN = 8


def relied_on(
    wheels: Mapping[LockedWheel, Path], host: HostList, left_out: frozenset[str], lock: str
) -> tuple[Pin, ...]:
    """The host's distributions that the wheels rely on.

    ProvisionError names the requirements that nobody meets.
    """
    travelling = {wheel.name: wheel for wheel in wheels}
    declared = {wheel.name: _declared(path) for wheel, path in wheels.items()}
    todo = [(name, "") for name in sorted(travelling)]
    seen = set(todo)
    used: set[Pin] = set()
    faults: list[str] = []
    while todo:
        name, extra = todo.pop()
        for requirement in declared[name]:
            if requirement.marker and not requirement.marker.evaluate(
                _environment(host.target, extra)
            ):
                continue
            wanted = canonicalize_name(requirement.name)
            if wanted in left_out:
                continue
            brought = travelling.get(wanted)
            version = brought.version if brought else host.have.get(wanted)
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                has = f"the bundle brings {version}" if brought else f"the host has {version}"
                faults.append(f"{name} needs {wanted}{requirement.specifier}, "
                              f"{'nobody has it' if version is None else has}")  # fmt: skip
            elif brought is None:
                used.add(Pin(wanted, version))
            else:
                fresh = {(wanted, one) for one in requirement.extras} - seen
                seen |= fresh
                todo.extend(sorted(fresh))
    if faults:
        told = sorted(set(faults))
        more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        raise ProvisionError(
            f"images/{lock} does not fit this host: {'; '.join(told[:_SHOWN])}{more}",
            'lock for this host under a new name (images/README.md, "Hosts without a network"), '
            "or name what the engine runs without in the lock's .override",
        )
    return tuple(sorted(used, key=lambda pin: pin.name))


def _declared(path: Path) -> tuple[Requirement, ...]:
    """Requires-Dist of a wheel."""
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        top = [n for n in names if n.count("/") == 1]
        if len(top) != 1:
            raise ProvisionError(f"{path.name} has {len(top)} METADATA, want one", "report it")
        header = BytesParser().parsebytes(archive.read(top[0]), headersonly=True)
    try:
        return tuple(Requirement(text) for text in header.get_all("Requires-Dist", []))
    except InvalidRequirement as error:
        raise ProvisionError(f"{path.name}: {error}", "report it to its maintainers") from error


def _environment(target: Target, extra: str) -> dict[str, str]:
    """The markers' variables on the host, as far as its list tells them."""
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{target.python}.0",
        "os_name": "posix",
        "platform_machine": target.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": f"{target.python}.0",
        "python_version": target.python,
        "sys_platform": "linux",
        "extra": extra,
    }
