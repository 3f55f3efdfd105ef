"""`kit sign`."""

from __future__ import annotations

from pathlib import Path

import click

from audit.signature import NAMESPACE, Subject, allowed_signers_at, checkpoint_text, signatures_at
from kit.options import home, match_run
from kit.output import echo, say
from kit.signing import keep, public_line, sign
from records.checkpoint import read_runs
from records.errors import SigningError, UnknownRunError
from records.run_directory import RunDirectory
from records.seal import SEAL_NAME


@click.command()
@click.argument("run_id", default="")
@click.option("--checkpoint", is_flag=True, help="Sign CHECKPOINT, and so every run listed so far.")
@click.option(
    "--key", type=click.Path(path_type=Path), required=True, metavar="FILE", help="An SSH key."
)
def command(run_id: str, checkpoint: bool, key: Path) -> None:
    """Sign the seal of a run, or CHECKPOINT, with an SSH key (ssh-keygen -Y sign).

    The signature goes to records/signatures and is committed with the records; kit audit verifies
    it against records/allowed_signers. Unsigned records are fine; a signature that fails is not.

    \b
    Example:
      kit sign 20261130T115921Z-smoke-cpu-5d0eba --key ~/.ssh/id_ed25519
      kit sign --checkpoint --key ~/.ssh/id_ed25519
    """
    if checkpoint == bool(run_id):
        raise click.UsageError("name a run, or write --checkpoint")
    data = home().data
    leaves = read_runs(data)
    if checkpoint:
        if not leaves:
            raise UnknownRunError(f"no sealed run at {data}", "kit reproduce makes one")
        subject, text = Subject(size=len(leaves)), checkpoint_text(leaves, len(leaves))
    else:
        listed = tuple(leaf.run_id for leaf in leaves)
        known = ", ".join(listed) or "none; kit reproduce makes one"
        run_id = match_run(listed, run_id, f"sealed runs: {known}")
        RunDirectory(data / run_id).verify_chain()
        subject, text = Subject(run_id), (data / run_id / SEAL_NAME).read_bytes()
    path = signatures_at(data) / subject.file_name
    keep(sign(text, key, NAMESPACE), path)
    echo(f"signed: {path}")
    signers = allowed_signers_at(data)
    if not signers.exists():
        try:
            line = public_line(key, "NAME", NAMESPACE)
        except SigningError:
            line = f'NAME namespaces="{NAMESPACE}" <your public key>'
        say(f"put your key into {signers}, with your name:\n  {line}")
