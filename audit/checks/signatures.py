"""Where there are signatures, each one verifies against a listed key, and they cover all runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from audit.signature import Subject, allowed_signers_at, checkpoint_text, signatures_at
from audit.ssh import SshKeygen
from records.checkpoint import RUNS_NAME, Leaf, parse_runs
from records.errors import FormatError
from records.seal import SEAL_NAME

FAILS = Code(
    "SIGN01",
    "error",
    "a signature does not verify",
    "records/signatures holds SSH signatures over seals and over CHECKPOINT texts. One that does "
    "not verify was made over other bytes, for another purpose, or by a key that "
    "records/allowed_signers does not list: history can be made anew, a signature cannot.",
    "restore the records from a copy that the signature fits; never sign what you did not measure",
)
NOBODY = Code(
    "SIGN02",
    "error",
    "there are signatures, but nobody is allowed to sign",
    "records/allowed_signers lists who may sign. Without it signatures say nothing.",
    "restore records/allowed_signers from git",
)
STRAY = Code(
    "SIGN03",
    "error",
    "a signature over something that is not there",
    "Each signature is named after a run of RUNS, or after the size of a CHECKPOINT that RUNS "
    "reaches. One left over speaks of runs that were removed.",
    "restore the records that it was made over",
)
UNCHECKED = Code(
    "SIGN04",
    "warning",
    "signatures cannot be verified here",
    "The check asks ssh-keygen.",
    "apt-get install openssh-client",
)
UNSIGNED = Code(
    "SIGN05",
    "warning",
    "a run that no signature covers",
    "There are allowed signers, yet neither the run's seal nor a CHECKPOINT that covers it is "
    "signed.",
    "kit sign --checkpoint --key FILE",
)


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Verify every signature, then look for runs without one."""
    signers = allowed_signers_at(repository.data)
    folder = signatures_at(repository.data)
    signatures = sorted(path for path in folder.rglob("*") if not path.is_dir())
    if not signers.is_file():
        if signatures:
            count = f"{len(signatures)} signatures"
            yield NOBODY.at(repository.show(signers), 0, "", f"no such file, {count}", "its keys")
        return
    program = SshKeygen.find()
    if program is None:
        yield UNCHECKED.at(repository.show(signers), 0, "", "no ssh-keygen on PATH", "OpenSSH 8.2")
        return
    leaves = _leaves(repository)
    covered: set[str] = set()
    for path in signatures:
        shown = repository.show(path)
        try:
            subject = Subject.parse(path.name)
            data, runs = _subject(repository, subject, leaves)
        except FormatError as error:
            yield STRAY.at(shown, 0, f"{STRAY.title}: {error.message}")
            continue
        problem = program.problem(signers, path, data)
        if problem:
            want = f"a signature over {_name(subject)} by a listed key"
            yield FAILS.at(shown, 0, "", problem, want)
            continue
        covered.update(runs)
    for number, leaf in enumerate(leaves, 1):
        if leaf.run_id not in covered:
            shown = repository.show(repository.data / RUNS_NAME)
            yield UNSIGNED.at(shown, number, f"run {leaf.run_id}: {UNSIGNED.title}")


def _subject(
    repository: RepositoryView, subject: Subject, leaves: Sequence[Leaf]
) -> tuple[bytes, list[str]]:
    """The bytes signed, and the runs that they cover. FormatError where there are none."""
    if not subject.run_id:
        text = checkpoint_text(leaves, subject.size)
        return text, [leaf.run_id for leaf in leaves[: subject.size]]
    seal: Path = repository.data / subject.run_id / SEAL_NAME
    if not seal.is_file():
        raise FormatError(f"no sealed run {subject.run_id}")
    return seal.read_bytes(), [subject.run_id]


def _leaves(repository: RepositoryView) -> tuple[Leaf, ...]:
    """RUNS; none where it cannot be read, which the check of the checkpoint reports."""
    path = repository.data / RUNS_NAME
    try:
        return parse_runs(path.read_bytes().decode("utf-8", "replace")) if path.is_file() else ()
    except FormatError:
        return ()


def _name(subject: Subject) -> str:
    return f"the seal of {subject.run_id}" if subject.run_id else f"{subject.size} runs"


CHECK = Check(
    "signatures",
    "Where there are signatures, each verifies against a listed key, and they cover all runs.",
    (FAILS, NOBODY, STRAY, UNCHECKED, UNSIGNED),
    check,
    kind="integrity",
)
