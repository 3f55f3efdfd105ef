"""Signatures: made by `kit sign` with a real ssh-keygen, verified by the audit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from audit.checks import signatures
from audit.runner import audit
from audit.signature import NAMESPACE, Subject, allowed_signers_at, checkpoint_text, signatures_at
from records.errors import FormatError, SigningError
from tests.audit.tamper.healthy import Repository, build, copy_of, make_key


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A signed repository, built once."""
    return build(tmp_path_factory.mktemp("signed"))


@pytest.fixture
def repository(template: Repository, tmp_path: Path) -> Repository:
    """A copy without signatures and signers."""
    copy = copy_of(template, tmp_path / "copy")
    shutil.rmtree(signatures_at(copy.data))
    allowed_signers_at(copy.data).unlink()
    return copy


def found(repository: Repository) -> set[str]:
    report = audit(repository.root, repository.data, [signatures.CHECK])
    return {finding.code for finding in report.findings}


def kit(repository: Repository, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kit.main", *arguments],
        env={**os.environ, "KIT_DATA": str(repository.data)},
        capture_output=True,
        text=True,
        check=False,
    )


def allow(repository: Repository, key: Path, options: str = "") -> None:
    public = key.with_suffix(".pub").read_text().split()[:2]
    line = " ".join(filter(None, ["owner", options, *public]))
    allowed_signers_at(repository.data).write_text(line + "\n")


def test_unsigned_records_are_fine(repository: Repository) -> None:
    assert found(repository) == set()


def test_a_signed_checkpoint_covers_every_run(repository: Repository) -> None:
    done = kit(repository, "sign", "--checkpoint", "--key", str(repository.key))
    assert done.returncode == 0, done.stderr
    assert f'NAME namespaces="{NAMESPACE}" ssh-ed25519 ' in done.stderr
    allow(repository, repository.key, f'namespaces="{NAMESPACE}"')
    assert found(repository) == set()


def test_a_signed_seal_covers_its_run_alone(repository: Repository) -> None:
    assert kit(repository, "sign", "run-1", "--key", str(repository.key)).returncode == 0
    allow(repository, repository.key)
    assert found(repository) == {"SIGN05"}


def test_a_run_that_is_signed_may_be_named_by_its_beginning(repository: Repository) -> None:
    known = [leaf.run_id for leaf in repository.leaves]
    done = kit(repository, "sign", "no", "--key", str(repository.key))
    assert all(name in done.stderr for name in known)
    assert kit(repository, "sign", "RUN-1", "--key", str(repository.key)).returncode == 0


def test_a_signature_is_never_replaced(repository: Repository) -> None:
    assert kit(repository, "sign", "run-1", "--key", str(repository.key)).returncode == 0
    again = kit(repository, "sign", "run-1", "--key", str(repository.key))
    assert again.returncode == SigningError.exit_code
    assert "never replaced" in again.stderr


def test_a_key_that_is_none(repository: Repository, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("not a key\n")
    key.chmod(0o600)
    done = kit(repository, "sign", "run-1", "--key", str(key))
    assert done.returncode == SigningError.exit_code
    assert not signatures_at(repository.data).exists()


def test_an_old_checkpoint_signature_holds_while_the_list_grows(template: Repository) -> None:
    """What was signed over two runs can be made again from a list of three."""
    two = checkpoint_text(template.leaves, 2)
    assert two != checkpoint_text(template.leaves, 3)
    assert two.startswith(b"speculative-decoding-fp8/records\n2\n")
    with pytest.raises(FormatError, match="RUNS lists 3"):
        checkpoint_text(template.leaves, 4)


def test_a_key_allowed_for_other_purposes_only(repository: Repository) -> None:
    repository.sign(Subject(size=3))
    allow(repository, repository.key, 'namespaces="git"')
    assert found(repository) == {"SIGN01", "SIGN05"}


def test_a_stranger(repository: Repository, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    make_key(stranger)
    repository.sign(Subject(size=3), stranger)
    allow(repository, repository.key)
    assert found(repository) == {"SIGN01", "SIGN05"}


def test_without_ssh_keygen_it_says_so(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository.sign(Subject(size=3))
    allow(repository, repository.key)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found(repository) == {"SIGN04"}


@pytest.mark.parametrize(
    "name", ["run-1.sig", "CHECKPOINT.0.sig", "CHECKPOINT.sig", "../a.seal.sig"]
)
def test_names_of_signatures(name: str) -> None:
    with pytest.raises(FormatError):
        Subject.parse(name)


@pytest.mark.parametrize("subject", [Subject("run.1"), Subject(size=12)])
def test_names_round_trip(subject: Subject) -> None:
    assert Subject.parse(subject.file_name) == subject
