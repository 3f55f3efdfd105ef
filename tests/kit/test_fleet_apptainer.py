"""An image file on shared storage that two kits want at once, built by a stand-in for Apptainer."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sshd import wait_for

from kit.docker.choice import DockerChoice
from kit.home import Home
from kit.hosts.local import LocalHost
from kit.image_lock import LockedImage
from kit.registry.resolve import Platform
from kit.slurm.apptainer import bring
from kit.slurm.cluster_host import SlurmHost
from kit.slurm.site import SlurmSite
from records.digest import Digest
from records.errors import ProvisionError
from records.job import Sif

# No two builds give the same bytes, as with Apptainer.
APPTAINER = """\
#!/bin/sh
case "$1" in
pull)
    echo pulled >> {log}
    [ -e {log}.refuse ] && echo 'FATAL: no space left on device' && exit 255
    sleep 0.7
    echo "$$" > "$3";;
esac
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was built, a line each."""
    log = tmp_path / "pulls"
    (tmp_path / "apptainer").write_text(APPTAINER.format(log=log))
    (tmp_path / "apptainer").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return log


def brought(place: Path) -> Sif:
    """By a kit of its own, with the one home that they share."""
    image = LockedImage("docker.io", "a/b", "v1", Digest.of(b"index"), False, {}, "python3")
    platform = Platform(Digest.of(b"manifest"), Digest.of(b"id"), 1, 1, "")
    choice = DockerChoice(image, platform, "docker.io", "images.lock.json", Digest.of(b"lock"))
    host = SlurmHost(LocalHost(), SlurmSite(container="apptainer"), "slurm/local")
    return bring(Home(place, place / "kit", place, place), host, choice, lambda _line: None)


def test_two_kits_have_the_one_file(tmp_path: Path, log: Path) -> None:
    with ThreadPoolExecutor(2) as kits:
        first = kits.submit(brought, tmp_path)
        wait_for(log.exists, "no build")
        second = kits.submit(brought, tmp_path)
        assert first.result() == second.result() == brought(tmp_path)
    assert log.read_text() == "pulled\n"


def test_a_build_that_fails_is_told_in_its_last_line(tmp_path: Path, log: Path) -> None:
    log.with_name("pulls.refuse").touch()
    with pytest.raises(ProvisionError, match="no space left on device"):
        brought(tmp_path)
    log.with_name("pulls.refuse").unlink()
    assert brought(tmp_path).digest
