"""What a journal may expect of the file system below it, by lines of mountinfo."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from records.errors import FormatError, HostUnfitError
from remote.slurm import shared_disk
from remote.slurm.shared_disk import HELD, ON_THE_NODE, REFUSED, UNKNOWN

ROOT = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
# Options as the kernel prints them: nfs(5), fs/nfs/super.c; lustre's from llite.
NFS4 = "rw,vers=4.2,rsize=1048576,hard,proto=tcp,timeo=600,sec=sys,local_lock=none,addr=10.0.0.1"
NFS3 = "rw,vers=3,hard,nolock,proto=tcp,mountvers=3,local_lock=all,addr=10.0.0.1"


def line(place: str, kind: str, options: str) -> str:
    return f"40 22 0:45 / {place} rw,relatime shared:2 - {kind} server:/export {options}\n"


@pytest.mark.parametrize(
    ("kind", "options", "lock", "flush"),
    [
        ("nfs4", NFS4, HELD, HELD),
        ("nfs", NFS3, ON_THE_NODE, HELD),
        ("nfs", "rw,vers=3,local_lock=flock", ON_THE_NODE, HELD),
        ("nfs", "rw,vers=3,local_lock=posix", HELD, HELD),
        ("lustre", "rw,flock,lazystatfs", HELD, HELD),
        ("lustre", "rw,localflock", ON_THE_NODE, HELD),
        ("lustre", "rw,lazystatfs", REFUSED, HELD),
        ("gpfs", "rw", UNKNOWN, HELD),
        ("beegfs", "rw", UNKNOWN, HELD),
        ("ceph", "rw", HELD, HELD),
        ("fuse.sshfs", "rw", UNKNOWN, UNKNOWN),
        ("tmpfs", "rw", HELD, UNKNOWN),
        ("xfs", "rw", HELD, HELD),
    ],
)
def test_promises(kind: str, options: str, lock: str, flush: str) -> None:
    text = ROOT + line("/home", kind, options)
    found = shared_disk.promise(
        shared_disk.parse_mountinfo(text, PurePosixPath("/home/me/.kit/runs"))
    )
    assert (found.type, found.lock, found.flush) == (kind, lock, flush)
    if lock in (ON_THE_NODE, REFUSED):
        with pytest.raises(HostUnfitError, match=kind):
            shared_disk.require_lock(found)
    else:
        assert ("not known" in shared_disk.require_lock(found)) == (lock == UNKNOWN)


def test_the_nearest_mount_counts_and_the_last_of_several() -> None:
    text = ROOT + line("/home", "nfs4", NFS4) + line("/home/me", "tmpfs", "rw")
    text += line("/home/me", "lustre", "rw,flock") + line("/home/mean", "beegfs", "rw")
    mount = shared_disk.parse_mountinfo(text, PurePosixPath("/home/me/runs"))
    assert mount.type == "lustre"
    assert shared_disk.parse_mountinfo(text, PurePosixPath("/var")).type == "ext4"


def test_a_place_with_a_space() -> None:
    text = ROOT + line("/my\\040disk", "nfs4", NFS4)
    assert shared_disk.parse_mountinfo(text, PurePosixPath("/my disk/runs")).type == "nfs4"


def test_another_form() -> None:
    with pytest.raises(FormatError):
        shared_disk.parse_mountinfo("not mountinfo\n", PurePosixPath("/"))


def test_this_machine_answers(tmp_path: Path) -> None:
    assert shared_disk.of(tmp_path).type
