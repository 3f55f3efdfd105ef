"""What the file system below the records promises a journal: its lock and its flush.

Invariant: what is not known is called so, and never taken for a promise.

A journal needs two things (records/FORMAT.md): that `fsync` returns when the line will survive, and
that `flock` keeps a second writer out, on whatever node it runs. Slurm may start a block anew while
a node it lost sight of is still writing; the lock is what keeps these two apart.

nfs(5): `flock` is carried to the server as a byte-range lock unless `nolock` or `local_lock` keeps
it on the node; `fsync` sends COMMIT, which an export of the server's `sync` (the default) honours.
mount.lustre(8): `flock` is honoured between nodes with the mount option of that name, on the node
alone with `localflock`, and refused without either. proc(5): /proc/PID/mountinfo.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from records.errors import FormatError, HostUnfitError

HELD, ON_THE_NODE, REFUSED, UNKNOWN = "held", "on the node alone", "refused", "unknown"
_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "overlay", "tmpfs"})
_BETWEEN_NODES = frozenset({"ceph", "gfs2", "ocfs2"})
_VOLATILE = frozenset({"tmpfs", "ramfs"})


@dataclass(frozen=True, slots=True)
class Mount:
    """The mount that a path stands on. `options`: the mount's and the file system's own."""

    type: str
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class Promise:
    """`type`: the file system's. `lock`: one of the words above. `flush`: "held" or "unknown"."""

    type: str
    lock: str
    flush: str


def parse_mountinfo(text: str, path: PurePosixPath) -> Mount:
    """The mount of `path`; of several on one place the last hides the others."""
    best: tuple[int, Mount] | None = None
    for line in text.splitlines():
        head, dash, tail = line.partition(" - ")
        fields, kind = head.split(), tail.split()
        if not dash or len(fields) < 6 or len(kind) < 3:
            raise FormatError(f"not a line of mountinfo: {line[:120]!r}")
        place = PurePosixPath(_plain(fields[4]))
        if place in (path, *path.parents) and (best is None or len(place.parts) >= best[0]):
            options = frozenset(fields[5].split(",")) | frozenset(kind[2].split(","))
            best = len(place.parts), Mount(kind[0], options)
    if best is None:
        raise FormatError(f"mountinfo has no mount for {path}")
    return best[1]


def promise(mount: Mount) -> Promise:
    """What this mount promises."""
    flush = UNKNOWN if mount.type in _VOLATILE or mount.type.startswith("fuse") else HELD
    return Promise(mount.type, _lock(mount), flush)


def of(path: Path) -> Promise:
    """What the file system below `path` promises here, on this node."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    return promise(parse_mountinfo(text, PurePosixPath(path.resolve())))


def require_lock(found: Promise) -> str:
    """What is to be said of it, "" for nothing. HostUnfitError where two writers could meet."""
    if found.lock in (ON_THE_NODE, REFUSED):
        raise HostUnfitError(
            f"the records' file system ({found.type}) keeps flock {found.lock}: should Slurm start "
            "this block on a second node, two would write one journal",
            "mount it with flock (Lustre) or without nolock and local_lock (NFS), or put the kit's "
            "directory on another: KIT_HOME=…",
        )
    if found.lock == UNKNOWN:
        return (
            f"warning: whether {found.type} keeps flock between nodes is not known here; should a "
            "lost node come back while its block runs elsewhere, the journal's chain will tell"
        )
    return ""


def _lock(mount: Mount) -> str:
    if mount.type in ("nfs", "nfs4"):
        local = {"nolock", "local_lock=all", "local_lock=flock"} & mount.options
        return ON_THE_NODE if local else HELD
    if mount.type == "lustre":
        if "flock" in mount.options:
            return HELD
        return ON_THE_NODE if "localflock" in mount.options else REFUSED
    return HELD if mount.type in _LOCAL | _BETWEEN_NODES else UNKNOWN


def _plain(text: str) -> str:
    """mountinfo writes space, tab, line end and backslash as \\ooo."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
