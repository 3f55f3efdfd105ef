"""`kit paper`: the paper as PDF, every number of it from the records."""

from __future__ import annotations

from pathlib import Path

import click

from analysis.claiming.documents import GENERATED
from analysis.typeset.files import PaperFiles, paper_files
from analysis.typeset.generated import strays
from analysis.whole import require_place, write_whole
from kit.heartbeat import heartbeat
from kit.home import Home
from kit.options import home, json_option
from kit.output import print_json, say
from kit.tex import build_pdf, require_tex
from records.errors import PaperError


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Build build/paper.pdf from paper/main.tex and from the runs that paper/evidence.toml names.

    What the paper takes from the records is written to paper/generated first: values of claims,
    figures, verdicts, provenance. What else is found there is removed and named: it was left by an
    earlier build, or made by none. The same records and sources give the same bytes. A claim,
    reference or link that leads nowhere fails the build.

    \b
    Example:
      kit paper
    """
    here = home()
    require_tex()
    pdf = here.out / "paper.pdf"
    require_place(pdf, directory=False, option="")
    if (here.root / GENERATED).is_symlink():  # something else would be written and removed
        raise PaperError(f"{GENERATED} is a link to somewhere else", f"rm {here.root / GENERATED}")
    with heartbeat(say, "evaluating claims and drawing figures"):
        made = paper_files(here.root, here.data, here.cache)
    removed = _write(here, made)
    with heartbeat(say, "setting the paper"):
        built = build_pdf(here.root / "paper" / "main.tex", here.out / "paper", made.epoch)
    built.pdf.replace(pdf)
    for points in built.overfull_pt:
        say(f"a line of the paper sticks out by {points:.1f} pt")
    if as_json:
        names = [str(name) for name in made.files]
        print_json({"pdf": str(pdf), "files": names, "removed": [str(name) for name in removed]})
        return
    say(f"written: {pdf}")


def _write(here: Home, made: PaperFiles) -> list[Path]:
    """Write what was made, and leave nothing else; what was removed, by path below the root."""
    removed = []
    for path in strays(here.root, made.files.keys()):
        path.unlink()
        removed.append(path.relative_to(here.root))
        say(f"removed: {removed[-1]}, which no build makes")
    for name, data in made.files.items():
        write_whole(here.root / name, data, "")
    return removed
