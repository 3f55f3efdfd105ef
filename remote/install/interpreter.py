"""What an interpreter on this host is and has: the facts a bundle is made against.

Invariant: asked of that interpreter in a process of its own, isolated, so that neither this
process nor the working directory is in the answer.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from records.bundle import Target
from records.errors import HostUnfitError

_ASK = """\
import importlib.metadata, json, os, platform, re, sys
have = {}
for found in importlib.metadata.distributions():
    name = found.metadata["Name"]
    if name:  # the first one on the path is the one that is imported
        have.setdefault(re.sub(r"[-_.]+", "-", name).lower(), found.version)
libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
print(json.dumps(["%d.%d" % sys.version_info[:2], platform.machine(), libc.split()[-1], have]))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`have`: version by normalised name (PEP 503) of each distribution that it can import."""

    python: str
    target: Target
    have: dict[str, str]

    def listing(self) -> str:
        """The host list that `kit bundle build --host-freeze` reads."""
        target = self.target
        head = f"# python {target.python}\n# machine {target.machine}\n# glibc {target.glibc}\n"
        return head + "".join(f"{name}=={self.have[name]}\n" for name in sorted(self.have))


def ask(python: str) -> Interpreter:
    """The facts of this interpreter. HostUnfitError where it does not run."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise HostUnfitError(f"{python} does not run: {error}", "name another: --python") from error
    version, machine, glibc, have = json.loads(done.stdout)
    return Interpreter(python, Target(version, machine, glibc), have)


def require_fit(here: Interpreter, want: Target) -> None:
    """HostUnfitError where the wheels were chosen for another interpreter, machine or glibc."""
    got = here.target
    faults = []
    if got.python != want.python:
        faults.append(f"{here.python} is Python {got.python}, the wheels are for {want.python}")
    if got.machine != want.machine:
        faults.append(f"this is {got.machine}, the wheels are for {want.machine}")
    if _numbers(got.glibc) < _numbers(want.glibc):
        faults.append(f"glibc is {got.glibc}, the wheels need {want.glibc}")
    if faults:
        raise HostUnfitError(
            "; ".join(faults),
            "name the interpreter with --python, or make the bundle for this host, from what this "
            "prints here: python3 -I -S harness.pyz host",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
