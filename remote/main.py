"""The harness's entry: what runs on the measured host, as `python -I harness.pyz <verb>`.

Invariant: an error ends as one message with its remedy on stderr and its documented exit code.
"""

from __future__ import annotations

import sys

from records import durable
from records.errors import DiskFullError, KitError

_USAGE = """\
usage: harness.pyz run JOB.json | calibrate [OPTIONS] | reference [OPTIONS] | install …
       harness.pyz host | pack …

run        carry out, or continue, the run that JOB.json describes
contain    the same inside a container: contain CONTAINER.json JOB.json
slurm      the same as a task of a Slurm job: slurm ARRAY.json
bucket     the same, its records brought to a bucket: bucket JOB.json DIRECTORY
calibrate  measure the client on this host (see: calibrate --help)
reference  start the reference server (see: reference --help)
install    make an engine of a carried bundle (see: install --help)
pack       pack records and warm cache to be carried home (see: pack --help)
host       print what an interpreter here has, for kit bundle build (see: host --help)
"""


def main(argv: list[str]) -> int:
    """Carry out one verb; its exit status."""
    verb, rest = (argv[0], argv[1:]) if argv else ("", [])
    try:
        if verb == "run" and len(rest) == 1:
            from remote.run import main as run

            return run(rest[0])
        if verb == "contain" and len(rest) == 2:
            from remote.container.keeper import main as contain

            return contain(rest[0], rest[1])
        if verb == "bucket" and len(rest) == 2:
            from remote.bucket import main as bucket

            return bucket(*rest)
        if verb == "slurm" and len(rest) == 1:
            from remote.slurm.task import main as slurm

            return slurm(rest[0])
        if verb == "calibrate":
            from remote.calibrate import main as calibrate

            return calibrate(rest)
        if verb == "reference":
            from remote.reference.main import main as reference

            return reference(rest)
        if verb in ("install", "host", "pack"):
            from remote.install import main as install

            work = {"host": install.host, "pack": install.pack, "install": install.main}[verb]
            return work(rest)
    except KitError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.remedy:
            print(f"  try: {error.remedy}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        if error.errno not in durable.NO_SPACE:
            raise
        print(f"error: no space left on this host: {error.filename or error}", file=sys.stderr)
        return DiskFullError.exit_code
    sys.stderr.write(_USAGE)
    return 2
