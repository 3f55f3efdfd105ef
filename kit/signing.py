"""Make SSH signatures with ssh-keygen; the private key stays with ssh-keygen or the agent.

Invariant: a signature is written whole or not at all, and never over one that is there.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from records import durable
from records.errors import SigningError


def sign(data: bytes, key: Path, namespace: str) -> bytes:
    """The SSHSIG armor over `data`. `key`: a private key, or a public one whose key an agent holds.

    SigningError where ssh-keygen is missing or refuses.
    """
    program = shutil.which("ssh-keygen")
    if program is None:
        raise SigningError("no ssh-keygen on PATH", remedy="apt-get install openssh-client")
    if not key.is_file():
        raise SigningError(f"no key at {key}", remedy="ssh-keygen -t ed25519 makes one")
    done = subprocess.run(
        [program, "-Y", "sign", "-q", "-n", namespace, "-f", str(key)],
        input=data,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0 or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().split("\n")[-1]
        raise SigningError(f"ssh-keygen did not sign: {said}", remedy=f"ssh-keygen -y -f {key}")
    return done.stdout


def keep(signature: bytes, path: Path) -> None:
    """Write a new signature. SigningError where there is one already."""
    if path.exists():
        raise SigningError(
            f"{path} exists; a signature is never replaced",
            remedy="kit audit says whether it holds",
        )
    path.parent.mkdir(exist_ok=True)
    durable.replace(path, signature)


def public_line(key: Path, principal: str, namespace: str) -> str:
    """The line of allowed_signers for a key: principal, namespace, key type and key."""
    program = shutil.which("ssh-keygen") or "ssh-keygen"
    done = subprocess.run(
        [program, "-y", "-f", str(key)], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode != 0:
        raise SigningError(f"{key}: not a private key, or one with a passphrase")
    words = done.stdout.decode("utf-8", "replace").split()[:2]
    return f'{principal} namespaces="{namespace}" {" ".join(words)}'
