"""Ask ssh-keygen whether a signature holds; nothing here signs or reads a private key.

Invariant: bytes go in through stdin, so that nothing is written. Source: ssh-keygen(1), -Y verify.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from audit.signature import NAMESPACE


@dataclass(frozen=True, slots=True)
class SshKeygen:
    """The program that verifies."""

    program: str

    @classmethod
    def find(cls) -> SshKeygen | None:
        """The ssh-keygen on PATH; None without OpenSSH."""
        program = shutil.which("ssh-keygen")
        return cls(program) if program else None

    def problem(self, allowed_signers: Path, signature: Path, data: bytes) -> str:
        """Why `signature` is not a valid one over `data` by an allowed signer; "" where it is."""
        files = ["-s", str(signature), "-f", str(allowed_signers)]
        found = self._run("find-principals", *files)
        principals = found.stdout.decode("utf-8", "replace").split("\n")
        if found.returncode != 0 or not principals[0]:
            return f"no allowed signer: {_said(found)}"
        arguments = ["-n", NAMESPACE, "-I", principals[0]]
        done = self._run("verify", *files, *arguments, stdin=data)
        return "" if done.returncode == 0 else _said(done)

    def _run(
        self, verb: str, *arguments: str, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.program, "-Y", verb, *arguments], input=stdin, capture_output=True, check=False
        )


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    text = (done.stderr + done.stdout).decode("utf-8", "replace").strip()
    return text.split("\n")[-1].strip() or f"ssh-keygen ended with {done.returncode}"
