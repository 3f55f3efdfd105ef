"""Which key of a host was accepted, and when: shown, kept, and held against the next one."""

from __future__ import annotations

import datetime
import json
import shlex
import subprocess
from pathlib import Path

import pytest
from called_kit import tiny_plan
from ssh_kit import SshKit, name_of
from sshd import Sshd, fingerprint, keygen, program, running

from records.errors import HostKeyError

pytestmark = pytest.mark.timeout(120)


def known(kit: SshKit) -> list[dict[str, str]]:
    done = kit.call("hosts", "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def exchange_key(sshd: Sshd) -> None:
    """The address now belongs to another machine."""
    sshd.stop()
    for file in sshd.place.glob("host_key*"):
        file.unlink()
    sshd.start()


def test_nobody_was_met_yet(kit: SshKit) -> None:
    assert known(kit) == []
    assert "no host was met yet" in kit.call("hosts").stderr


def test_the_accepted_key_is_listed_with_its_fingerprint_and_time(sshd: Sshd, kit: SshKit) -> None:
    before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    kit.call("status", "--host", name_of(sshd), "--accept-new")
    after = datetime.datetime.now(datetime.timezone.utc)
    (pin,) = known(kit)
    assert pin["host"] == f"[127.0.0.1]:{sshd.port}"
    assert pin["algorithm"] == "ED25519"
    assert pin["fingerprint"] == fingerprint(sshd.host_key)
    assert pin["fingerprint"].startswith("SHA256:")
    assert before <= datetime.datetime.fromisoformat(pin["accepted"]) <= after
    table = kit.call("hosts")
    assert pin["fingerprint"] in table.stdout
    assert pin["accepted"] in table.stdout
    assert "ssh-keygen -R" in table.stderr
    kit.call("status", "--host", name_of(sshd))
    assert known(kit) == [pin], "a second contact changes nothing"


def test_doctor_shows_it_for_people_and_machines(sshd: Sshd, kit: SshKit) -> None:
    words = ("doctor", name_of(sshd), "--plan", str(kit.plan))
    done = kit.call(*words, "--accept-new")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("host-key")]
    (pin,) = known(kit)
    assert pin["fingerprint"] in line
    assert f"accepted {pin['accepted']}" in line
    told = json.loads(kit.call(*words, "--json").stdout)
    assert told["host_keys"] == [pin]
    here = json.loads(kit.call("doctor", "--plan", str(kit.plan), "--json").stdout)
    assert here["host_keys"] == []


def test_the_way_there_is_shown_too(
    sshd: Sshd, kit: SshKit, tmp_path: Path, user_home: Path
) -> None:
    user = tmp_path / "user"
    key = user_home / ".ssh" / "id_ed25519"
    with running(tmp_path / "jump", key.with_suffix(".pub")) as jump:
        (user / ".ssh").mkdir(parents=True)
        (user / ".ssh" / "config").write_text(
            f"Host *\n  IdentityFile {key}\n"
            f"Host gate\n  HostName 127.0.0.1\n  Port {jump.port}\n"
            f"Host gpu\n  HostName 127.0.0.1\n  Port {sshd.port}\n  ProxyJump gate\n"
        )
        laptop = SshKit(tmp_path / "l", user)
        done = laptop.call("doctor", "gpu", "--plan", str(laptop.plan), "--accept-new", "--json")
        assert done.returncode == 0, done.stderr
        keys = json.loads(done.stdout)["host_keys"]
        assert [key["fingerprint"] for key in keys] == [
            fingerprint(jump.host_key),
            fingerprint(sshd.host_key),
        ]


@pytest.mark.parametrize("verb", ["doctor", "status", "reproduce"])
def test_a_changed_key_is_refused_with_both_fingerprints_and_what_to_type(
    sshd: Sshd, kit: SshKit, verb: str
) -> None:
    words = {
        "doctor": ("doctor", name_of(sshd), "--plan", str(kit.plan)),
        "status": ("status", "--host", name_of(sshd)),
        "reproduce": ("reproduce", "--plan", str(kit.plan), "--host", name_of(sshd)),
    }[verb]
    kit.call("status", "--host", name_of(sshd), "--accept-new")
    (pin,) = known(kit)
    exchange_key(sshd)
    for accept in ((), ("--accept-new",)):
        done = kit.call(*words, *accept)
        assert done.returncode == HostKeyError.exit_code
        assert f"got ED25519 {fingerprint(sshd.host_key)}" in done.stderr
        assert f"want ED25519 {pin['fingerprint']}, accepted {pin['accepted']}" in done.stderr
        assert "nothing was sent" in done.stderr
    assert known(kit) == [pin]
    # The remedy, typed as it stands there.
    typed = done.stderr.partition("another machine: ")[2].partition(";")[0]
    subprocess.run([program("ssh-keygen"), *shlex.split(typed)[1:]], check=True)
    again = kit.call("status", "--host", name_of(sshd), "--accept-new")
    assert "host key pinned" in again.stderr
    (fresh,) = known(kit)
    assert fresh["fingerprint"] == fingerprint(sshd.host_key)


def test_records_of_a_run_begun_under_another_key_come_with_a_warning(
    sshd: Sshd, kit: SshKit
) -> None:
    kit.plan.write_text(tiny_plan(tokens=10))
    where = ("--host", name_of(sshd), "--accept-new")
    begun = kit.call("run", "--plan", str(kit.plan), *where)
    assert begun.returncode == 0, begun.stderr
    (notes,) = kit.home.glob("hosts/*/jobs/*.keys")
    when, _, noted = notes.read_text().strip().partition(" ")
    assert noted.startswith("sha256:")
    assert fingerprint(sshd.host_key) not in notes.read_text()
    exchange_key(sshd)
    (pin,) = known(kit)
    forget = (program("ssh-keygen"), "-R", pin["host"], "-f", str(kit.home / "known_hosts"))
    subprocess.run(forget, check=True, capture_output=True)
    fetched = kit.call("fetch-records", *where)
    assert fetched.returncode == 0, fetched.stderr
    assert f"another host key than when run {notes.stem} was started there" in fetched.stderr
    assert when in fetched.stderr
    assert "another host key" not in kit.call("fetch-records", *where).stderr, "it is home"


def test_the_remedy_can_be_typed_where_the_kit_stands_in_a_directory_with_a_blank(
    sshd: Sshd, tmp_path: Path, user_home: Path
) -> None:
    kit = SshKit(tmp_path / "my laptop's", user_home)
    kit.call("status", "--host", name_of(sshd), "--accept-new")
    exchange_key(sshd)
    done = kit.call("status", "--host", name_of(sshd))
    typed = done.stderr.partition("another machine: ")[2].partition(";")[0]
    assert shlex.split(typed)[-1] == str(kit.home / "known_hosts")


def test_two_machines_behind_one_address_are_two_hosts(
    sshd: Sshd, kit: SshKit, tmp_path: Path, user_home: Path
) -> None:
    """As rented ones are: one address, a port each (Vast's documentation)."""
    with running(tmp_path / "second", user_home / ".ssh" / "id_ed25519.pub") as second:
        for one in (sshd, second):
            kit.call("status", "--host", name_of(one), "--accept-new")
        found = {pin["host"]: pin["fingerprint"] for pin in known(kit)}
        assert found == {
            f"[127.0.0.1]:{one.port}": fingerprint(one.host_key) for one in (sshd, second)
        }


def test_a_key_pinned_by_an_older_kit_is_still_known(sshd: Sshd, kit: SshKit) -> None:
    """Its line has no comment; nothing is said of when."""
    kit.call("status", "--host", name_of(sshd), "--accept-new")
    file = kit.home / "known_hosts"
    file.write_text(" ".join(file.read_text().split()[:3]) + "\n")
    assert "no run here yet" in kit.call("status", "--host", name_of(sshd)).stderr
    (pin,) = known(kit)
    assert (pin["fingerprint"], pin["accepted"]) == (fingerprint(sshd.host_key), "")
    assert "not noted" in kit.call("hosts").stdout


@pytest.mark.parametrize("spoil", ["[127.0.0.1]:{port} ssh-ed25519", "%%%", "a ssh-ed25519 %%%"])
def test_a_damaged_list_of_keys_is_no_first_contact(sshd: Sshd, kit: SshKit, spoil: str) -> None:
    """A line that cannot be read may be the very one that would have refused this key."""
    file = kit.home / "known_hosts"
    file.parent.mkdir(parents=True)
    file.write_text(spoil.format(port=sshd.port) + "\n")
    done = kit.call("status", "--host", name_of(sshd), "--accept-new")
    assert done.returncode == HostKeyError.exit_code, done.stderr
    assert f"{file}, line 1" in done.stderr
    assert kit.call("hosts").returncode == HostKeyError.exit_code


def test_the_systems_own_ssh_reads_the_list(sshd: Sshd, kit: SshKit, tmp_path: Path) -> None:
    kit.call("status", "--host", name_of(sshd), "--accept-new")
    found = subprocess.run(
        [program("ssh-keygen"), "-lF", f"[127.0.0.1]:{sshd.port}", "-f",
         str(kit.home / "known_hosts")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert fingerprint(sshd.host_key) in found.stdout
    other = keygen(tmp_path / "other")
    assert fingerprint(other) not in found.stdout
