"""HOST and ~/.ssh/config become one destination, which both clients are told alike."""

from __future__ import annotations

import io
from pathlib import Path

import paramiko
import pytest

from kit.rsync import ssh_options
from kit.ssh_config import is_ssh, resolve
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
        *((text, True) for text in ("gpu", "a@b", "b:22", "u@[::1]:22")),
        *((text, False) for text in ("b", "a b", "docker:x", "@b", "a@", "a@b;id")),
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
