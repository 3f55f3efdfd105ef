"""Getting to a host: what stands in the way is told apart, and what is known is pinned."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from ssh_kit import SshKit, name_of
from sshd import Sshd, fingerprint, free_port, keygen, program, running, wait_for

from kit.hosts.host import HostSpec
from kit.ssh.config import read_config, resolve
from kit.ssh.connection import Live
from kit.ssh.host import SshHost
from kit.ssh.known_hosts import Meeting
from records.errors import (
    ConnectionLostError,
    HostKeyError,
    HostUnfitError,
    HostUnreachableError,
    NoSshServerError,
    SshAuthError,
    SshKeyError,
    UnknownHostError,
)

pytestmark = pytest.mark.timeout(120)


def test_first_contact_shows_the_fingerprint_and_asks_to_be_accepted(
    sshd: Sshd, kit: SshKit
) -> None:
    refused = kit.call("status", "--host", name_of(sshd))
    assert refused.returncode == HostKeyError.exit_code
    assert fingerprint(sshd.host_key) in refused.stderr
    assert "--accept-new" in refused.stderr
    assert not (kit.home / "known_hosts").exists()
    accepted = kit.call("status", "--host", name_of(sshd), "--accept-new")
    assert "no run here yet" in accepted.stderr
    known = kit.call("status", "--host", name_of(sshd))
    assert "no run here yet" in known.stderr


def test_a_person_may_answer_instead(kit: SshKit, sshd: Sshd, tmp_path: Path) -> None:
    asked = []

    def answer(question: str) -> bool:
        asked.append(question)
        return True

    meeting = Meeting(tmp_path / "known", accept_new=False, ask=answer, say=print)
    destination = resolve(name_of(sshd), read_config())
    files = (kit.user_home / ".ssh" / "id_ed25519",)
    trusted = SshHost(type(destination)("x", "127.0.0.1", sshd.port, "root", files, True), meeting)
    if getpass.getuser() == "root":
        assert trusted.run(("true",)).status == 0
        assert fingerprint(sshd.host_key) in asked[0]


def test_a_changed_host_key_stops_with_both_fingerprints(sshd: Sshd, kit: SshKit) -> None:
    kit.call("status", "--host", name_of(sshd), "--accept-new")
    old = fingerprint(sshd.host_key)
    before = (kit.home / "known_hosts").read_bytes()
    sshd.stop()
    for file in sshd.place.glob("host_key*"):
        file.unlink()
    sshd.start()
    for accept in ([], ["--accept-new"]):
        done = kit.call("status", "--host", name_of(sshd), *accept)
        assert done.returncode == HostKeyError.exit_code
        assert old in done.stderr
        assert fingerprint(sshd.host_key) in done.stderr
        assert "ssh-keygen -R" in done.stderr
    assert (kit.home / "known_hosts").read_bytes() == before


def test_what_the_remedy_for_a_changed_key_says_works(sshd: Sshd, kit: SshKit) -> None:
    kit.call("status", "--host", name_of(sshd), "--accept-new")
    known = kit.home / "known_hosts"
    subprocess.run(
        [program("ssh-keygen"), "-q", "-R", f"[127.0.0.1]:{sshd.port}", "-f", str(known)],
        check=True,
        capture_output=True,
    )
    assert kit.call("status", "--host", name_of(sshd)).returncode == HostKeyError.exit_code
    assert "no run here yet" in kit.call("status", "--host", name_of(sshd), "--accept-new").stderr


def test_no_sshd_is_not_a_bad_key(kit: SshKit) -> None:
    done = kit.call("status", "--host", f"root@127.0.0.1:{free_port()}")
    assert done.returncode == NoSshServerError.exit_code
    assert "no SSH server listens" in done.stderr


@pytest.mark.parametrize(
    ("said", "words"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "not as an SSH server does"), (b"", "it hung up")],
)
def test_what_is_no_ssh_server_leaves_a_message_and_no_traceback(
    kit: SshKit, said: bytes, words: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as client:
                client.recv(100)  # a greeting left unread would make a reset of the end
                client.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        done = kit.call("status", "--host", f"root@127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert done.returncode == NoSshServerError.exit_code
    assert "Traceback" not in done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("name", ["no-such-host.invalid", "a..b", f"{'a' * 70}.invalid"])
def test_a_name_that_does_not_exist_is_unreachable(kit: SshKit, name: str) -> None:
    done = kit.call("status", "--host", f"root@{name}")
    assert done.returncode == HostUnreachableError.exit_code
    assert "no such name" in done.stderr


def test_a_key_that_the_server_does_not_know_is_named(sshd: Sshd, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    keygen(stranger / ".ssh" / "id_ed25519")
    kit = SshKit(tmp_path / "other", stranger)
    done = kit.call("status", "--host", name_of(sshd), "--accept-new")
    assert done.returncode == SshAuthError.exit_code
    assert "id_ed25519" in done.stderr


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda key: key.unlink(), "none is configured"),
        (lambda key: key.write_text("not a key"), "is no private key"),
    ],
)
def test_a_key_that_cannot_be_used_is_not_the_servers_fault(
    sshd: Sshd, tmp_path: Path, spoil, words: str
) -> None:
    user = tmp_path / "user"
    spoil(keygen(user / ".ssh" / "id_ed25519"))
    done = SshKit(tmp_path / "l", user).call("status", "--host", name_of(sshd), "--accept-new")
    assert done.returncode == SshKeyError.exit_code
    assert words in done.stderr


def test_a_locked_key_works_through_the_agent_alone(
    sshd: Sshd, tmp_path: Path, user_home: Path
) -> None:
    user = tmp_path / "user"
    locked = keygen(user / ".ssh" / "id_ed25519", passphrase="sesame")
    kit = SshKit(tmp_path / "l", user)
    refused = kit.call("status", "--host", name_of(sshd), "--accept-new")
    assert refused.returncode == SshKeyError.exit_code
    assert f"ssh-add {locked}" in refused.stderr
    socket_path = tmp_path / "agent"
    agent = subprocess.Popen([program("ssh-agent"), "-D", "-a", str(socket_path)])
    try:
        wait_for(socket_path.exists)
        kit.extra["SSH_AUTH_SOCK"] = str(socket_path)
        key = user_home / ".ssh" / "id_ed25519"
        subprocess.run(
            [program("ssh-add"), "-q", str(key)], env={**os.environ, **kit.extra}, check=True
        )
        assert "no run here yet" in kit.call("status", "--host", name_of(sshd)).stderr
    finally:
        agent.terminate()
        agent.wait()


def test_an_alias_of_the_ssh_configuration_and_a_jump_lead_there(
    sshd: Sshd, tmp_path: Path, user_home: Path
) -> None:
    user = tmp_path / "user"
    shutil.copytree(user_home / ".ssh", user / ".ssh")
    (user / ".ssh" / "id_ed25519").rename(user / ".ssh" / "rented")
    public = user_home / ".ssh" / "id_ed25519.pub"
    with running(tmp_path / "jump", public) as jump:
        (user / ".ssh" / "config").write_text(
            f"Host gate\n  HostName 127.0.0.1\n  Port {jump.port}\n"
            f"  IdentityFile {user}/.ssh/rented\n"
            f"Host gpu\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {user}/.ssh/rented\n  ProxyJump gate\n"
        )
        kit = SshKit(tmp_path / "l", user)
        done = kit.call(*kit.reproduce("gpu"))
        assert done.returncode == 0, done.stderr
        assert (kit.home / "known_hosts").read_text().count("ssh-ed25519") == 2
        (run,) = kit.fetched()
        assert run.is_sealed


def test_a_name_that_no_configuration_knows_is_no_host(kit: SshKit) -> None:
    done = kit.call("status", "--host", "gpu")
    assert done.returncode == UnknownHostError.exit_code
    assert "user@host[:port]" in done.stderr


def test_words_reach_a_command_as_they_are(host: SshHost) -> None:
    words = ("a b", "it's", '"', "$(id)", "`id`", "*", "~", "", "\\", "a\nb", ";", "é", "--")
    done = host.run(("printf", "%s\\0", *words))
    assert tuple(done.stdout.split("\0")[:-1]) == words
    assert host.run(("cat",), stdin=b"x" * 100_000).stdout == "x" * 100_000
    assert host.run(("no-such-program",)).status == 127
    assert host.run(("sh", "-c", "exit 3")).status == 3


def test_files_arrive_whole_and_only_once(host: SshHost, tmp_path: Path) -> None:
    source, target = tmp_path / "here.bin", tmp_path / "far" / "away" / "there.bin"
    source.write_bytes(os.urandom(100_000))
    host.put(source, target)
    written = target.stat().st_mtime_ns
    host.put(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mtime_ns == written
    assert host.read(target, 99_990) == source.read_bytes()[99_990:]
    assert host.names(tmp_path / "far") == ("away",)
    assert host.names(tmp_path / "nowhere") == ()
    with pytest.raises(FileNotFoundError):
        host.read(tmp_path / "nowhere")


@pytest.mark.parametrize("with_rsync", [True, False])
def test_trees_travel_both_ways(host: SshHost, tmp_path: Path, with_rsync: bool) -> None:
    assert host.has_rsync()
    host._rsync = with_rsync
    tree = tmp_path / "tree"
    (tree / "deep er").mkdir(parents=True)
    (tree / "deep er" / "it's $HOME").write_bytes(b"1")
    (tree / "a").write_bytes(os.urandom(70_000))
    host.put(tree, tmp_path / "there" / "tree")
    (tree / "a").write_bytes(b"changed")
    (tmp_path / "there" / "tree" / "link").symlink_to("a")
    back = tmp_path / "back"
    back.mkdir()
    (back / "stale").write_bytes(b"must go")
    host.fetch(tmp_path / "there" / "tree", back)
    assert sorted(p.name for p in back.rglob("*")) == ["a", "deep er", "it's $HOME", "link"]
    assert (back / "a").stat().st_size == 70_000
    assert (back / "link").is_symlink()


def test_an_old_rsync_on_the_host_does(
    tmp_path: Path, user_home: Path, kit: SshKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ubuntu 20.04 has 3.1.3, which knows no --mkpath."""
    monkeypatch.setenv("HOME", str(kit.user_home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    old = tmp_path / "bin" / "rsync"
    old.parent.mkdir()
    old.write_text(
        '#!/bin/sh\ncase "$*" in *--mkpath*) echo "--mkpath: unknown option" >&2; exit 1;; esac\n'
        f'exec {program("rsync")} "$@"\n'
    )
    old.chmod(0o755)
    path = f"{old.parent}:{os.environ['PATH']}"
    with running(tmp_path / "host", user_home / ".ssh" / "id_ed25519.pub", PATH=path) as sshd:
        meeting = Meeting(kit.home / "known_hosts", accept_new=True, ask=None, say=print)
        host = SshHost(resolve(name_of(sshd), read_config()), meeting)
        assert host.run(("sh", "-c", "command -v rsync")).stdout.strip() == str(old)
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "file").write_text("x")
        host.put(tmp_path / "tree", tmp_path / "far" / "away")
        assert (tmp_path / "far" / "away" / "file").read_text() == "x"


def test_a_transfer_that_is_cut_goes_on(host: SshHost, sshd: Sshd, tmp_path: Path) -> None:
    source, target = tmp_path / "big", tmp_path / "copy"
    source.mkdir()
    for number in range(8):
        (source / str(number)).write_bytes(os.urandom(16 << 20))
    assert host.has_rsync()
    cuts = []

    def cut() -> None:
        for _ in range(3):
            time.sleep(0.4)
            cuts.append(sshd.cut())

    thread = threading.Thread(target=cut)
    thread.start()
    host.fetch(source, target)
    thread.join()
    assert sum(cuts) > 0
    for number in range(8):
        assert (target / str(number)).read_bytes() == (source / str(number)).read_bytes()


def test_a_detached_process_outlives_the_line_and_starts_once(
    host: SshHost, sshd: Sshd, tmp_path: Path
) -> None:
    argv = ("sleep", "3.25")
    note = tmp_path / "x.pid"
    first = host.start_detached(argv, tmp_path, tmp_path / "x.log", note)
    assert sshd.cut() > 0
    second = host.start_detached(argv, tmp_path, tmp_path / "x.log", note)
    assert first.pid == second.pid
    found = host.attach(note, "3.25")
    assert found is not None
    assert found.exit_status() is None
    assert host.attach(note, "another argument") is None
    found.interrupt()
    wait_for(lambda: found.exit_status() is not None)
    assert found.exit_status() == -15


def test_a_status_is_known_afterwards(host: SshHost, tmp_path: Path) -> None:
    argv = ("sh", "-c", "echo hello; exit 7", "mark")
    found = host.start_detached(argv, tmp_path, tmp_path / "x.log", tmp_path / "x.pid")
    wait_for(lambda: found.exit_status() is not None)
    assert found.exit_status() == 7
    assert (tmp_path / "x.log").read_text() == "hello\n"


def test_a_process_that_ends_while_it_is_looked_at_has_ended(
    host: SshHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server then says "failure" and no more: SFTP has no status for ESRCH."""
    process = subprocess.Popen(["sleep", "61"])

    def ends_between_open_and_read(live: Live, path: Path, _offset: int) -> bytes:
        with live.sftp.open(str(path), "rb") as file:
            process.kill()
            process.wait()
            return bytes(file.read())

    assert host.runs(process.pid, "61")
    monkeypatch.setattr("kit.ssh.host._read", ends_between_open_and_read)
    assert not host.runs(process.pid, "61")


def test_a_line_that_does_not_come_back_says_that_the_work_goes_on(
    host: SshHost, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert host.run(("true",)).status == 0
    host.connection._patience_s = 2
    sshd.cut()
    sshd.stop()
    with pytest.raises(ConnectionLostError, match="did not come back"):
        host.run(("true",))
    sshd.start()
    assert host.run(("true",)).status == 0


def test_a_line_that_falls_silent_is_taken_for_lost(
    host: SshHost, sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kit.ssh.connection._QUIET_S", 2.0)
    (tmp_path / "x").write_bytes(b"still there")
    assert host.read(tmp_path / "x") == b"still there"
    silent = sshd.sessions()
    for pid in silent:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert host.read(tmp_path / "x") == b"still there"
        assert set(sshd.sessions()) - set(silent)
    finally:
        for pid in silent:
            os.kill(pid, signal.SIGCONT)


def test_a_server_without_sftp_is_named(sshd: Sshd, kit: SshKit) -> None:
    sshd.stop()
    sshd.start("Subsystem other /bin/false")
    done = kit.call("status", "--host", name_of(sshd), "--accept-new")
    assert done.returncode == NoSshServerError.exit_code
    assert "no working SFTP" in done.stderr


def test_a_shell_that_prints_is_named(host: SshHost, sshd: Sshd, tmp_path: Path) -> None:
    noisy = tmp_path / "python3"
    noisy.write_text('#!/bin/sh\necho Welcome to this machine\nexec python3 "$@"\n')
    noisy.chmod(0o755)
    loud = SshHost(host.destination, host.connection.meeting, spec=HostSpec(python=str(noisy)))
    with pytest.raises(HostUnfitError, match="Welcome to this machine"):
        assert loud.python


def test_a_host_without_python_is_named(sshd: Sshd, tmp_path: Path, kit: SshKit) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text(
        f'[[hosts]]\nname = "bare"\nhost = "{name_of(sshd)}"\npython = "/no/such/python"\n'
    )
    done = kit.call("status", "--host", str(inventory), "--accept-new")
    assert done.returncode == HostUnfitError.exit_code
    assert "no Python 3.10" in done.stderr
