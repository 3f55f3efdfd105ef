"""What SkyPilot is to be told beside the plan, in a file of the user's: sky.toml.

    bucket = "my-kit-records"      # records come home by it; made if it is not there
    store = "s3"                   # or "gcs"
    site = ["/usr/local/lib/python3.12/dist-packages"]   # in the image: the engine's packages

Invariant: unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import tomllib

from kit.home import Home
from records.decode import from_object
from records.errors import FormatError, PlanError

FILE_NAME = "KIT_SKY"
STORES = ("s3", "gcs")


@dataclass(frozen=True, slots=True)
class SkySite:
    """`accelerators`: as SkyPilot names them, chosen by the plan if empty. `root`: the kit's place
    on the machine. `spot`: machines that may be taken back, at a lower price.
    """

    bucket: str
    store: str = "s3"
    accelerators: str = ""
    spot: bool = True
    root: str = "/kit"
    site: tuple[str, ...] = ()
    poll_s: int = 30

    def __post_init__(self) -> None:
        if self.store not in STORES:
            raise FormatError(f"store {self.store!r} is not among {', '.join(STORES)}")
        if self.poll_s < 1 or not PurePosixPath(self.root).is_absolute():
            raise FormatError("poll_s is 1 or more, root an absolute path")


def read_site(home: Home, environ: Mapping[str, str]) -> SkySite:
    """The file that KIT_SKY names, or sky.toml in the working directory of the kit."""
    path = Path(environ.get(FILE_NAME) or home.path / "sky.toml")
    try:
        return from_object(SkySite, tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        remedy = 'write it: bucket = "…" (kit/sky/site.py shows one)'
        raise PlanError(f"{path}: cannot be read: {error}", remedy) from error
    except FormatError as error:
        raise PlanError(f"{path}: {error.message}", "correct it") from error
