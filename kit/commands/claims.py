"""`kit claims`: every number that may be cited, and the file LaTeX reads them from."""

from __future__ import annotations

import re

import click

from analysis.claiming.claim import described
from analysis.claiming.documents import citations, documents
from analysis.claiming.evaluation import evaluate_project
from analysis.claiming.resolution import unresolved
from analysis.claiming.tex import CLAIMS_TEX, claims_tex
from analysis.published import load_published
from analysis.whole import write_whole
from kit.options import home, json_option
from kit.output import print_json, print_table, say
from records.errors import ClaimError


@click.command()
@click.argument("part", default="", metavar="[PART]")
@click.option("--tex", is_flag=True, help="Write paper/generated/claims.tex.")
@click.option("--unused", is_flag=True, help="Those that nothing cites.")
@click.option("--cited", "only_cited", is_flag=True, help="Those that are cited somewhere.")
@json_option
def command(part: str, tex: bool, unused: bool, only_cited: bool, as_json: bool) -> None:
    """List claims with their values, recomputed from the runs that paper/evidence.toml names.

    PART: only ids that contain it. Claims without a value come last and say why. One that the audit
    would not let stand for the error of the client's stamps (BASIS05) is marked "below the client's
    error". One that holds arms against each other names the blocks that counted, where that is not
    all.

    \b
    Example:
      kit claims throughput.cv
      kit claims --cited
      kit claims --tex
    """
    if unused and only_cited:
        raise click.UsageError("--unused and --cited leave nothing")
    here = home()
    found = evaluate_project(here.root, here.data)
    if tex:
        path = here.root / CLAIMS_TEX
        write_whole(path, claims_tex(found.values, load_published(here.root)), "")
        say(f"written: {path}")
        return
    cited = {c.id for d in documents(here.root) for c in citations(d) if c.scheme == "claim"}
    known = {*found.values, *found.problems}
    wanted = known - cited if unused else known & cited if only_cited else known
    ids = sorted(
        (id_ for id_ in wanted if part in id_),
        key=lambda id_: (id_ not in found.values, _by_numbers(id_)),
    )
    if part and not any(part in id_ for id_ in known):
        raise ClaimError(f"no claim has {part!r} in its id", "kit claims lists those there are")
    below = {
        id_
        for id_ in ids
        if (value := found.values.get(id_)) is not None
        and any(unresolved(value, [found.runs[run] for run in value.runs]))
    }
    if as_json:
        print_json(
            [
                {
                    "id": id_,
                    "printed": found.values[id_].printed if id_ in found.values else None,
                    "problem": found.problems.get(id_, ""),
                    "text": found.values[id_].claim.text if id_ in found.values else "",
                    "function": described(found.values[id_].claim.function)
                    if id_ in found.values
                    else "",
                    "runs": list(found.values[id_].runs) if id_ in found.values else [],
                    "closed": [
                        run
                        for run in (found.values[id_].runs if id_ in found.values else ())
                        if found.runs[run].closed
                    ],
                    "below_client_error": id_ in below,
                    "blocks": list(found.values[id_].blocks_told) if id_ in found.values else [],
                    "cited": id_ in cited,
                }
                for id_ in ids
            ]
        )
        return
    rows = [
        (
            id_,
            found.values[id_].printed if id_ in found.values else found.problems[id_],
            "yes" if id_ in cited else "",
            "; ".join(
                [
                    *(["below the client's error"] if id_ in below else []),
                    *(found.values[id_].blocks_told if id_ in found.values else ()),
                ]
            ),
        )
        for id_ in ids
    ]
    print_table(("claim", "value", "cited", "remark"), rows)
    resting = {run for id_ in ids if id_ in found.values for run in found.values[id_].runs}
    for run in sorted(resting):
        event = found.runs[run].closed
        if event is not None:
            say(f"run {run}, on which some of them rest: {event.WORD} ({event.reason})")
    for study, problem in found.study_problems.items():
        say(f"study {study or '?'}: {problem}")


def _by_numbers(id_: str) -> list[str | int]:
    """To sort by: numbers within a name by their size, c1, c8, c64."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", id_))]
