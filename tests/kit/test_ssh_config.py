"""HOST and ~/.ssh/config become one destination, which both clients are told alike."""

from __future__ import annotations

import io
from pathlib import Path

import paramiko
import pytest

from kit.ssh.config import is_ssh, read_config, resolve
from kit.ssh.rsync import ssh_options
from records.errors import UnknownHostError

CONFIG = """\
Host gpu
  HostName 203.0.113.7
  Port 22022
  User someone
  IdentityFile /keys/rented
  IdentitiesOnly yes
  ProxyJump gate,me@inner:2222
Host gate
  HostName 192.0.2.1
Host odd
  ProxyCommand nc %h %p
Host *.example
  User many
"""


@pytest.fixture
def config() -> paramiko.SSHConfig:
    return paramiko.SSHConfig.from_file(io.StringIO(CONFIG))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        *((text, True) for text in ("gpu", "a@b", "b:22", "u@[::1]:22", "[::1]:22", "u+x@b")),
        *((text, True) for text in ("domain\\u@b:1", "u@example.org@b", "svc$@b")),
        *((text, False) for text in ("b", "a b", "docker:x", "@b", "a@", "a@b;id", "::1")),
        *((text, False) for text in ("-oX@b:1", "a@-oX", "a@@b", "a@b:", "ssh://a@b:22")),
    ],
)
def test_what_is_an_ssh_host(config: paramiko.SSHConfig, text: str, is_one: bool) -> None:
    assert is_ssh(text, config) is is_one


def test_an_alias_gives_everything(config: paramiko.SSHConfig) -> None:
    found = resolve("gpu", config)
    assert (found.address, found.port, found.user) == ("203.0.113.7", 22022, "someone")
    assert found.identity_files == (Path("/keys/rented"),)
    assert found.identities_only
    assert found.known_as == "[203.0.113.7]:22022"
    assert [(j.address, j.port) for j in found.jumps] == [("192.0.2.1", 22), ("inner", 2222)]
    assert found.jumps[1].user == "me"
    assert found.jumps[0].known_as == "192.0.2.1"


def test_what_host_says_itself_comes_first(config: paramiko.SSHConfig) -> None:
    found = resolve("other@gpu:1", config)
    assert (found.user, found.port, found.address) == ("other", 1, "203.0.113.7")
    assert resolve("x.example:22", config).user == "many"
    assert resolve("u@[2001:db8::1]:2200", config).known_as == "[2001:db8::1]:2200"


@pytest.mark.parametrize("text", ["odd", "u@h:0", "u@h:70000"])
def test_what_is_not_supported_is_refused(config: paramiko.SSHConfig, text: str) -> None:
    with pytest.raises(UnknownHostError):
        resolve(text, config)


@pytest.mark.parametrize("lines", ["Host h\n  Port ssh\n", "Host h\n  Port 0\n"])
def test_what_the_configuration_cannot_mean_is_told(lines: str) -> None:
    with pytest.raises(UnknownHostError):
        resolve("u@h", paramiko.SSHConfig.from_file(io.StringIO(lines)))


def test_users_of_a_domain_are_users(config: paramiko.SSHConfig) -> None:
    assert resolve("domain\\u@h:1", config).user == "domain\\u"
    assert resolve("u@example.org@h:1", config).user == "u@example.org"
    text = ssh_options(resolve("domain\\u@h:1", config), Path("/p"))
    assert 'User "domain\\u"' in text


@pytest.fixture
def ssh_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh" / "more").mkdir(parents=True)
    return tmp_path / ".ssh"


def test_included_files_count_where_they_stand(ssh_directory: Path) -> None:
    (ssh_directory / "config").write_text(
        "Include more/*.conf nowhere\nHost gpu\n  Include inner\n  User late\nHost *\n  Port 7\n"
    )
    (ssh_directory / "more" / "a.conf").write_text("Host rented\n  HostName 203.0.113.9\n")
    (ssh_directory / "more" / "b.conf").write_text("Host gpu\n  HostName 203.0.113.8\n")
    (ssh_directory / "inner").write_text("Host other\n  User wrong\n")
    config = read_config()
    assert is_ssh("rented", config)
    gpu = resolve("gpu", config)
    assert (gpu.address, gpu.user, gpu.port) == ("203.0.113.8", "late", 7)
    assert resolve("rented", config).address == "203.0.113.9"


def test_files_that_include_each_other_end(ssh_directory: Path) -> None:
    (ssh_directory / "config").write_text("Include config\n")
    with pytest.raises(UnknownHostError, match="include each other"):
        read_config()


@pytest.mark.parametrize("data", [b"\xff\xfe", b"Host 'a\n"])
def test_a_configuration_that_cannot_be_read_is_told(ssh_directory: Path, data: bytes) -> None:
    (ssh_directory / "config").write_bytes(data)
    with pytest.raises(UnknownHostError, match="config"):
        read_config()


def test_a_jump_through_itself_ends() -> None:
    text = "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n"
    with pytest.raises(UnknownHostError):
        resolve("u@a", paramiko.SSHConfig.from_file(io.StringIO(text)))


def test_the_systems_ssh_is_told_the_same(config: paramiko.SSHConfig) -> None:
    text = ssh_options(resolve("gpu", config), Path("/p/known hosts"))
    told = paramiko.SSHConfig.from_file(io.StringIO(text))
    host, jump = told.lookup("kit-host"), told.lookup("kit-jump-2")
    assert (host["hostname"], host["port"], host["user"]) == ("203.0.113.7", "22022", "someone")
    assert host["hostkeyalias"] == "[203.0.113.7]:22022"
    assert host["proxyjump"] == "kit-jump-1,kit-jump-2"
    assert host["identityfile"] == ["/keys/rented"]
    assert (jump["hostname"], jump["port"]) == ("inner", "2222")
    for one in (host, jump, told.lookup("kit-jump-1")):
        assert one["stricthostkeychecking"] == "yes"
        assert one["userknownhostsfile"] == "/p/known hosts"
        assert one["batchmode"] == "yes"
