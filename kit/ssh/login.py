"""Open one authenticated SSH transport, telling apart what may stand in the way.

Invariant: nothing is offered to a server whose host key was not accepted; each failure is an error
class of its own, because "no sshd", "bad key" and "wrong address" have different remedies
(runpod-python issue 337).
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator

import paramiko

from kit.ssh.config import Destination
from kit.ssh.known_hosts import Meeting, known_types, require_known
from records.errors import (
    HostUnreachableError,
    KitError,
    NoSshServerError,
    SshAuthError,
    SshKeyError,
)

CONNECT_TIMEOUT_S = 15
# A server hangs up after MaxAuthTries refusals, 6 by default (sshd_config(5)); before that many it
# was the line.
_PATIENT_KEYS = 2
_KEEPALIVE_S = 15
# How paramiko begins its word on a server that hung up before it greeted; a cause may follow.
_NO_GREETING = "Error reading SSH protocol banner"


class LoginDroppedError(HostUnreachableError):
    """The line dropped between the first byte and the login: no verdict on any key."""


def login(destination: Destination, meeting: Meeting) -> list[paramiko.Transport]:
    """The transports to the destination, through its jumps; the last one reaches it.

    HostUnreachableError, NoSshServerError, HostKeyError, SshKeyError, SshAuthError.
    """
    _keep_quiet()
    chain: list[paramiko.Transport] = []
    try:
        for hop in (*destination.jumps, destination):
            chain.append(_open(hop, meeting, chain[-1] if chain else None))
            _authenticate(chain[-1], hop)
            chain[-1].set_keepalive(_KEEPALIVE_S)
    except KitError:
        close(chain)
        raise
    return chain


def dropped(hop: Destination, error: BaseException) -> LoginDroppedError:
    """The error of a line that dropped before the host could be used.

    paramiko raises what its socket raised: also ConnectionResetError, of whatever was waited for.
    """
    said = str(error) or "hung up"
    return LoginDroppedError(
        f"{hop.typed}: the connection dropped during the login ({said})", "the same command again"
    )


def close(chain: list[paramiko.Transport]) -> None:
    """Close every transport, the far end first."""
    for transport in reversed(chain):
        transport.close()


def _keep_quiet() -> None:
    """Keep paramiko's tracebacks off the terminal: what it logs, it also raises to us.

    A logger without any handler prints warnings and errors to stderr (logging.lastResort).
    """
    logger = logging.getLogger("paramiko")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _open(
    hop: Destination, meeting: Meeting, through: paramiko.Transport | None
) -> paramiko.Transport:
    transport = paramiko.Transport(_socket(hop, through))
    transport.banner_timeout = CONNECT_TIMEOUT_S
    options = transport.get_security_options()
    pinned = known_types(meeting.file, hop.known_as)
    if pinned:
        first = [t for t in options.key_types if _base_type(t) in pinned]
        options.key_types = (*first, *(t for t in options.key_types if t not in first))
    try:
        transport.start_client(timeout=CONNECT_TIMEOUT_S)
        key = transport.get_remote_server_key()
    except (paramiko.SSHException, EOFError, OSError) as error:
        greeted = bool(transport.remote_version)
        transport.close()
        if greeted and isinstance(error, (EOFError, OSError)):
            raise dropped(hop, error) from error
        raise NoSshServerError(
            f"{hop.typed}: something answers at port {hop.port}, but not as an SSH server does "
            f"({str(error).removeprefix(_NO_GREETING).strip() or 'it hung up'})",
            "check the port; an image without sshd needs one started in it; an sshd that is "
            "overloaded or refuses this address hangs up, too, and its log says why",
        ) from error
    try:
        require_known(meeting, hop.known_as, hop.typed, key)
    except KitError:
        transport.close()
        raise
    return transport


def _base_type(algorithm: str) -> str:
    """An RSA key signs by several algorithms (RFC 8332); known_hosts has the key's own type."""
    return "ssh-rsa" if algorithm.startswith("rsa-sha2-") else algorithm


def _socket(
    hop: Destination, through: paramiko.Transport | None
) -> socket.socket | paramiko.Channel:
    where = f"{hop.typed} ({hop.address} port {hop.port})"
    try:
        if through is not None:
            return through.open_channel(
                "direct-tcpip", (hop.address, hop.port), ("127.0.0.1", 0), timeout=CONNECT_TIMEOUT_S
            )
        return socket.create_connection((hop.address, hop.port), CONNECT_TIMEOUT_S)
    except socket.gaierror as error:
        raise HostUnreachableError(
            f"{where}: no such name: {error.strerror}", "check the name, or write the address"
        ) from error
    except UnicodeError as error:  # a part of the name is empty, or longer than names may be
        raise HostUnreachableError(f"{where}: no such name: {error}", "check the name") from error
    except ConnectionRefusedError as error:
        raise NoSshServerError(
            f"{where}: the machine is there and refuses: no SSH server listens at this port",
            "check the port; an image without sshd needs one started in it",
        ) from error
    except (OSError, paramiko.SSHException) as error:
        raise HostUnreachableError(
            f"{where}: nothing answers: {error or 'timed out'}",
            "is the machine running, and does a firewall let SSH through?",
        ) from error


def _authenticate(transport: paramiko.Transport, hop: Destination) -> None:
    offered: list[str] = []
    unusable: list[str] = []
    for name, key in _keys(hop, unusable):
        offered.append(name)
        try:
            more = transport.auth_publickey(hop.user, key)
        except (paramiko.SSHException, EOFError, OSError) as error:
            if transport.is_active():
                continue
            if "Too many" in str(error) or len(offered) > _PATIENT_KEYS:
                raise _refused(hop, offered, f"the server hung up ({error})") from error
            raise dropped(hop, error) from error
        if not more:
            return
        raise _refused(hop, offered, f"the server asks for more than a key: {', '.join(more)}")
    if not offered:
        raise SshKeyError(
            f"{hop.typed}: no private key to offer: {'; '.join(unusable) or 'none is configured'}",
            "ssh-add KEY, or name one by IdentityFile in ~/.ssh/config",
        )
    raise _refused(hop, offered, "; ".join(unusable))


def _refused(hop: Destination, offered: list[str], detail: str) -> SshAuthError:
    also = f"; {detail}" if detail else ""
    return SshAuthError(
        f"{hop.typed}: the SSH server accepts no key for user {hop.user}; "
        f"offered: {', '.join(offered)}{also}",
        "is the public key with the provider, and the user name right?",
    )


def _keys(hop: Destination, unusable: list[str]) -> Iterator[tuple[str, paramiko.PKey]]:
    """Keys to offer: the configured files first, then the agent's, unless it is excluded."""
    for path in hop.identity_files:
        try:
            yield str(path), paramiko.PKey.from_path(path)
        except FileNotFoundError:
            unusable.append(f"{path} is missing")
        except PermissionError:
            unusable.append(f"{path} cannot be read")
        except TypeError:  # cryptography: "Password was not given but private key is encrypted"
            unusable.append(f"{path} is locked by a passphrase: ssh-add {path}")
        except (ValueError, paramiko.SSHException):
            unusable.append(f"{path} is no private key")
    if hop.identities_only or not os.environ.get("SSH_AUTH_SOCK"):
        return
    try:
        agent = paramiko.Agent()
        keys = agent.get_keys()
    except (paramiko.SSHException, OSError) as error:
        unusable.append(f"the agent does not answer: {error}")
        return
    for key in keys:
        yield f"the agent's {key.fingerprint}", key
    agent.close()
