"""Parse what Slurm says of a job: `scontrol show job -o` and `sacct --parsable2`.

Invariant: text in, value out; no name of a node, user, account, partition or file is in what
`figures` returns. Forms: scontrol(1), sacct(1), slurm.conf(5); times as in sbatch(1), --time.
"""

from __future__ import annotations

import re

from records.errors import FormatError

# Of scontrol's fields, those that are figures. Names and places stay out of a record.
_FIGURES = (
    "JobState",
    "Reason",
    "Requeue",
    "Restarts",
    "RunTime",
    "TimeLimit",
    "NumNodes",
    "NumCPUs",
    "NumTasks",
    "CPUs/Task",
    "MinCPUsNode",
    "MinMemoryNode",
    "MinTmpDiskNode",
    "TRES",
    "ReqTRES",
    "AllocTRES",
    "TresPerNode",
    "OverSubscribe",
    "Features",
)
SACCT_FIELDS = (
    "State",
    "ElapsedRaw",
    "TotalCPU",
    "MaxRSS",
    "MaxDiskRead",
    "MaxDiskWrite",
    "ConsumedEnergyRaw",
    "AllocTRES",
    "ReqTRES",
    "TimelimitRaw",
)
_FIELD = re.compile(r"(?:^|(?<= ))([A-Z][A-Za-z/:]*)=")
_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")


def parse_show_job(line: str) -> dict[str, str]:
    """One line of `scontrol show job -o` as a mapping; values may hold spaces and `=`."""
    marks = list(_FIELD.finditer(line))
    ends = [*(mark.start() for mark in marks), len(line)][1:]
    found = {mark[1]: line[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
    if "JobId" not in found:
        raise FormatError(f"scontrol show job says {line[:80]!r}, which names no JobId")
    return found


def figures(job: dict[str, str]) -> dict[str, str]:
    """The figures among a job's fields."""
    return {name: job[name] for name in _FIGURES if name in job}


def parse_sacct(text: str) -> list[dict[str, str]]:
    """Lines of `sacct --parsable2 --noheader --format=JobID,<SACCT_FIELDS>`, a step each.

    The job's own number is dropped from a step's name: ".batch", or "" for the job itself. What a
    site's own wrapper says beside it begins with no number, and is passed over.
    """
    steps = []
    for line in text.splitlines():
        if not line[:1].isdecimal():
            continue
        name, *values = line.split("|")
        if len(values) != len(SACCT_FIELDS):
            raise FormatError(f"sacct says {line[:80]!r}, not {len(SACCT_FIELDS) + 1} fields")
        _, dot, step = name.partition(".")
        steps.append({"step": f"{dot}{step}", **dict(zip(SACCT_FIELDS, values, strict=True))})
    return steps


def seconds(text: str) -> int | None:
    """`[days-][hours:]minutes:seconds` in seconds; None for UNLIMITED and its like."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest
