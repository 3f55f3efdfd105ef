"""What a site's Slurm wants to be told, in a file of the user's: slurm.toml.

    account = "my-project"                 # sbatch --account; qos likewise
    options = ["--exclude=node7"]          # any further option of sbatch
    scratch = ["$SLURM_TMPDIR", "/local"]  # node-local; the first that is there
    container = "apptainer"                # for plans whose engine is an image
    [constraint]                           # features of nodes, by compute capability
    "8.9" = "l4|l40s"
    "9.0" = "h100"

Invariant: unknown keys are errors; without the file every key has the default below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

import tomllib

from kit.home import Home
from records.decode import from_object
from records.errors import FormatError, PlanError

FILE_NAME = "KIT_SLURM"
# By its name, and its tasks by their numbers, on the login node's own cluster a job is found again.
_KEPT = ("--job-name", "--array", "--clusters")
_KEPT_SHORT = ("-J", "-a", "-M")
_CONTAINERS = ("", "apptainer", "singularity")  # the same program under its former name


@dataclass(frozen=True, slots=True)
class SlurmSite:
    """One site. `gres`: its name for GPUs. `python`: for the harness, the login node's if empty.

    `notice_s`: how long before the limit the harness is told, to mark its boot and stop the engine.
    `time_factor`: the limit is the plan's estimate times this, and a quarter of an hour. `poll_s`:
    how often the controller is asked.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    gres: str = "gpu"
    python: str = ""
    scratch: tuple[str, ...] = ("$SLURM_TMPDIR", "$TMPDIR", "/tmp")  # noqa: S108 - of a node
    notice_s: int = 120
    time_factor: int = 2
    poll_s: int = 10
    container: str = ""
    options: tuple[str, ...] = ()
    constraint: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.container not in _CONTAINERS:
            raise FormatError(f"container {self.container!r} is not among {_CONTAINERS[1:]}")
        if not self.scratch:
            raise FormatError("scratch names no directory")
        for name in ("notice_s", "time_factor", "poll_s"):
            if getattr(self, name) < 1:
                raise FormatError(f"{name} is less than 1")
        for key in self.constraint:
            _capability(key)
        for option in self.options:
            name = option.partition("=")[0]
            # getopt_long(3) takes any beginning of a name that no other begins with.
            if name.startswith("--"):
                is_kept = any(kept.startswith(name) for kept in _KEPT)
            else:
                is_kept = name.startswith(_KEPT_SHORT)
            if is_kept:
                raise FormatError(
                    f"options: {option!r}: name, array and cluster are the kit's to say"
                )

    def features(self, least: Decimal) -> str:
        """The constraint for GPUs of this compute capability or a higher one; "" for none."""
        fitting = [f for key, f in self.constraint.items() if _capability(key) >= least]
        if self.constraint and least and not fitting:
            raise PlanError(
                f"no feature of this site gives compute capability {least}",
                "name one in slurm.toml, below [constraint]",
            )
        return "|".join(fitting) if least else ""


def read_site(home: Home, environ: Mapping[str, str]) -> SlurmSite:
    """The file that KIT_SLURM names, or slurm.toml in the working directory of the kit, or none."""
    named = environ.get(FILE_NAME, "")
    path = Path(named) if named else home.path / "slurm.toml"
    if not named and not path.exists():
        return SlurmSite()
    try:
        return from_object(SlurmSite, tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: cannot be read: {error}", "correct it") from error
    except FormatError as error:
        raise PlanError(f"{path}: {error.message}", "correct it") from error


def _capability(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise FormatError(f"constraint: {text!r} is no compute capability") from None
