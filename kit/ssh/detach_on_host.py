"""Start a process on a host that outlives the connection; run there by its Python, sent by stdin.

Invariant: at most one process is running for a note, however often this is run, so that a
connection that drops in the middle never starts a second. Standard library of Python 3.10 alone;
never imported by the kit.

Usage: CWD LOG NOTE PART ARGV…; what is on standard input is handed to the process, and stands
nowhere else. Prints the process id. NOTE holds it; NOTE.status holds its exit status once it has
ended (-N: ended by signal N). PART is an argument by which the process is told from a later one of
its id.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

STATUS_WIDTH = 8  # the file has its size from the start: a full disk cannot keep the status out
SECRETS = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HUGGINGFACE_TOKEN",
    "HF_TOKEN_FILE",
    "HF_TOKEN_PATH",
)


def main(argv: list[str]) -> int:
    """Start it, unless it runs already."""
    cwd, log, note = (Path(text) for text in argv[:3])
    for directory in (cwd, log.parent, note.parent):
        directory.mkdir(parents=True, exist_ok=True)
    lock = os.open(f"{note}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(lock, fcntl.LOCK_EX)
    pid = running(note, argv[3]) or start(argv[4:], cwd, log, note, lock)
    print(pid, flush=True)
    return 0


def running(note: Path, part: str) -> int:
    """The process id in the note, if that process runs; 0 otherwise."""
    try:
        pid = int(note.read_text(encoding="ascii"))
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return 0
    return pid if part.encode() in words else 0


def start(argv: list[str], cwd: Path, log: Path, note: Path, lock: int) -> int:
    """Start the process under a parent that waits for it and notes how it ended."""
    status = os.open(f"{note}.status", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.ftruncate(status, 0)
    os.write(status, b" " * (STATUS_WIDTH - 1) + b"\n")
    os.fsync(status)
    ours, theirs = os.pipe()
    if os.fork():
        os.close(theirs)
        with os.fdopen(ours) as answer:
            text = answer.read()
        if not text:
            sys.exit("error: the process could not be started")
        return int(text)
    handed = sys.stdin.buffer.read()
    os.close(lock)  # held by the parent alone, until it ends
    os.setsid()
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env={k: v for k, v in os.environ.items() if k not in SECRETS},
            stdin=subprocess.PIPE if handed else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    if process.stdin is not None:
        with process.stdin as pipe:
            pipe.write(handed)
    fresh = note.with_name(f"{note.name}.new")
    fresh.write_text(f"{process.pid}\n", encoding="ascii")
    fresh.replace(note)
    os.write(theirs, b"%d" % process.pid)
    os.close(theirs)
    # The channel closes only when nobody holds its ends any more.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    code = process.wait()
    os.pwrite(status, b"%*d\n" % (STATUS_WIDTH - 1, code), 0)
    os.fsync(status)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
