"""`kit paper`: the paper as PDF, every number of it from the records."""

from __future__ import annotations

import click

from analysis.typeset.files import paper_files
from kit.heartbeat import heartbeat
from kit.options import home, json_option
from kit.output import print_json, say
from kit.tex import build_pdf, require_tex


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Build build/paper.pdf from paper/main.tex and from the runs that paper/evidence.toml names.

    What the paper takes from the records is written to paper/generated first: values of claims,
    figures, verdicts, provenance. The same records and sources give the same bytes. A claim,
    reference or link that leads nowhere fails the build.

    \b
    Example:
      kit paper
    """
    here = home()
    require_tex()
    with heartbeat(say, "evaluating claims and drawing figures"):
        made = paper_files(here.root, here.data, here.cache)
    for name, data in made.files.items():
        path = here.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with heartbeat(say, "setting the paper"):
        built = build_pdf(here.root / "paper" / "main.tex", here.out / "paper", made.epoch)
    pdf = here.out / "paper.pdf"
    built.pdf.replace(pdf)
    for points in built.overfull_pt:
        say(f"a line of the paper sticks out by {points:.1f} pt")
    if as_json:
        print_json({"pdf": str(pdf), "files": [str(name) for name in made.files]})
        return
    say(f"written: {pdf}")
