"""`kit plan power`: what a plan's boots can tell, and how many a wanted answer needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from analysis.figures.figure import FORMS
from analysis.figures.rendering import render
from analysis.metrics import WindowMetrics, run_metrics
from analysis.power_figure import power_figure
from analysis.power_sources import Source, measured_sources, published_sources, with_boots_of
from analysis.power_tables import Wanted, blocks_table, power_tables
from analysis.published import load_published
from analysis.reading import read_run
from analysis.statistics.planning import Design
from analysis.table import Table, as_csv, as_object
from analysis.whole import require_place, write_whole
from kit.heartbeat import heartbeat
from kit.home import Home
from kit.options import DEFAULT_PLAN, find_plan, find_records, home, json_option
from kit.output import echo, print_json, print_table, say
from kit.outside_records import Place, require_outside_records
from records.plan import Plan


@dataclass(frozen=True, slots=True)
class _Read:
    """A run that was read: its plan, and its windows as far as asked for."""

    plan: Plan
    metrics: list[WindowMetrics]


class _Number(click.FloatRange):
    """A float in a range; click itself lets "nan" into every one."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or BadParameter."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


_BORROWED = (
    "How much this plan's own boots will differ is not known before a run: the published study's\n"
    "figures stand for them. --from RUN takes a run's own, --cv PERCENT any."
)
_NONE_OF_THESE = (
    "The published study measured none of this plan's arms: the rows below are the study's.\n"
    "--from RUN takes the spreads of a run of this plan, --cv PERCENT any."
)

# Below this share of a percent boots do not differ, and squares of it leave what floats hold.
_LEAST_CV_PERCENT = 1e-4
# One in a million: of nearer tails the quantiles are not exact.
_LEAST_LEVEL_PERCENT = 1e-4


def _fraction(ctx: click.Context, param: click.Parameter, percent: float) -> float:
    if not 0 < percent < 100:
        raise click.BadParameter("want percent, between 0 and 100", ctx, param)
    return percent / 100


def _level(ctx: click.Context, param: click.Parameter, percent: float) -> float:
    if not _LEAST_LEVEL_PERCENT <= percent < 50:
        raise click.BadParameter(f"want percent, from {_LEAST_LEVEL_PERCENT} to 50", ctx, param)
    return percent / 100


def _picture(ctx: click.Context, param: click.Parameter, name: Path | None) -> Path | None:
    if name is not None and name.suffix[1:] not in FORMS:
        raise click.BadParameter(f"want a name that ends in .{', .'.join(FORMS)}", ctx, param)
    return name


@click.command("power")
@click.argument("name", default="")
@click.option(
    "--boots",
    type=click.IntRange(2, 2000),
    help="Of an arm on each host; default: the plan's blocks, shared by the hosts.",
)
@click.option(
    "--hosts",
    default=1,
    show_default=True,
    type=click.IntRange(1, 200),
    help="How many hosts run the plan.",
)
@click.option(
    "--cv",
    "cvs",
    multiple=True,
    type=_Number(_LEAST_CV_PERCENT, 100, max_open=True),
    metavar="PERCENT",
    help="An arm's CV over boots; may be given several times.",
)
@click.option(
    "--from",
    "run",
    default=None,
    metavar="RUN",
    help="The CVs of a run's arms: its id or beginning, or a path.",
)
@click.option("--window", default="", help="With --from: this window alone.")
@click.option(
    "--correlation",
    default=0.0,
    show_default=True,
    type=_Number(-1, 1, min_open=True, max_open=True),
    help="Of two arms over blocks: what blocks gain.",
)
@click.option(
    "--host-cv",
    default=0.0,
    show_default=True,
    type=_Number(0, 100),
    metavar="PERCENT",
    help="How much a ratio of arms itself differs between hosts.",
)
@click.option(
    "--alpha",
    default=5.0,
    show_default=True,
    callback=_level,
    metavar="PERCENT",
    help="Level of the tests.",
)
@click.option(
    "--power",
    default=80.0,
    show_default=True,
    callback=_fraction,
    metavar="PERCENT",
    help="Chance of the answer.",
)
@click.option(
    "--detect",
    default=5.0,
    show_default=True,
    callback=_fraction,
    metavar="PERCENT",
    help="A difference of arms to find.",
)
@click.option(
    "--margin",
    default=5.0,
    show_default=True,
    callback=_fraction,
    metavar="PERCENT",
    help="A margin of equivalence.",
)
@click.option(
    "--within",
    default=50.0,
    show_default=True,
    callback=_fraction,
    metavar="PERCENT",
    help="How near a CV is to repeat.",
)
@click.option(
    "--spread",
    default=2.0,
    show_default=True,
    type=click.FloatRange(1, 1000, min_open=True),
    metavar="RATIO",
    help="A ratio of spreads to find.",
)
@click.option(
    "--plot",
    type=Place(),
    callback=_picture,
    metavar="FILE",
    help="Draw it, as .svg, .pdf or .png; its data beside it.",
)
@json_option
def command(
    name: str,
    boots: int | None,
    hosts: int,
    cvs: tuple[float, ...],
    run: str | None,
    window: str,
    correlation: float,
    host_cv: float,
    alpha: float,
    power: float,
    detect: float,
    margin: float,
    within: float,
    spread: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """What a plan's boots can tell of a CV, a ratio and a spread, and how many an answer needs.

    NAME: a plan of this kit, or a TOML file; default: that of the run, or smoke-cpu.
    Boots of one arm differ; how much decides what a plan can tell. That spread is taken from --cv,
    or from a run with --from, or else from paper/published.toml: what the published study found of
    such arms. Every host runs every arm, in blocks.

    \b
    Example:
      kit plan power l4-confounds
      kit plan power l4-confounds --hosts 3 --plot power.svg
      kit plan power --boots 12 --cv 13.92 --cv 1.44
      kit plan power l4-confounds --boots 24 --correlation 0.5 --json
    """  # fmt: skip
    if host_cv and hosts < 2:
        raise click.UsageError("--host-cv is about several hosts: --hosts 2 or more")
    if power <= alpha:
        raise click.UsageError("want --power above --alpha: chance alone finds as often")
    here = home()
    if plot:
        require_outside_records(plot, here)
        require_place(plot, directory=False, option="--plot")
    wanted = Wanted(detect, margin, within, spread)
    read = _read(here, cvs, run, window)
    plan = read.plan if read and not name else find_plan(here, name or DEFAULT_PLAN)
    sources = _sources(here, cvs, read, plan)
    if boots is None:
        sources = with_boots_of(sources, plan, hosts)
    per_host = boots or max(2, plan.blocks // hosts)
    design = Design(per_host, hosts, correlation, host_cv / 100, alpha, power)
    with heartbeat(say, "computing"):
        tables = power_tables(sources, design, wanted)
        if read:
            tables.append(blocks_table(read.metrics))
    files = _draw(plot, sources, design) if plot else []
    if as_json:
        print_json(
            {
                "plan": plan.id,
                "design": asdict(design),
                "wanted": asdict(wanted),
                "sources": [asdict(source) for source in sources],
                "tables": [as_object(table) for table in tables],
                "files": [str(path) for path in files],
            }
        )
        return
    echo(_headed(plan, design, sources, alpha, power))
    if not cvs and read is None:
        echo(_BORROWED if any(source.arm for source in sources) else _NONE_OF_THESE)
    for table in tables:
        _show(table)
    if hosts == 1:
        echo("\nOne host tells nothing of how much hosts differ; --hosts 3 asks about three.")


def _headed(
    plan: Plan, design: Design, sources: Sequence[Source], alpha: float, power: float
) -> str:
    counts = sorted({source.planned or design.boots for source in sources})
    boots = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    many = f" on each of {design.hosts} hosts" if design.hosts > 1 else " on one host"
    return (
        f"{plan.id}: {boots} boots of an arm{many}; "
        f"level {100 * alpha:g} %, power {100 * power:g} %"
    )


def _read(here: Home, cvs: tuple[float, ...], run: str | None, window: str) -> _Read | None:
    """With --from the run that is meant."""
    if cvs and run is not None:
        raise click.UsageError("--cv or --from: not both")
    if window and run is None:
        raise click.UsageError("--window is of a run: --from RUN")
    if run is None:
        return None
    with heartbeat(say, "reading the records"):
        read = read_run(find_records(here, run))
        metrics = [one for one in run_metrics(read) if not window or one.window == window]
    if not measured_sources(metrics):
        where = f" in window {window}" if window else ""
        raise click.UsageError(
            f"{read.run_id}: no arm with three usable boots{where}; give --cv PERCENT, or a run "
            "of more blocks"
        )
    return _Read(read.started.plan, metrics)


def _sources(here: Home, cvs: tuple[float, ...], read: _Read | None, plan: Plan) -> list[Source]:
    """What is known of the arms' spread."""
    if cvs:
        return [Source(f"CV {cv:g} %", cv / 100, 0, "") for cv in dict.fromkeys(cvs)]
    if read is not None:
        return measured_sources(read.metrics)
    found = published_sources(load_published(here.root).values(), plan)
    if not found:
        raise click.UsageError("no published CV in paper/published.toml: --cv or --from")
    return found


def _draw(plot: Path, sources: list[Source], design: Design) -> list[Path]:
    with heartbeat(say, "drawing"):
        figure = power_figure(sources, design)
        form = next(form for form in FORMS if plot.suffix == f".{form}")
        write_whole(plot, render(figure, form), "--plot")
        data = plot.with_suffix(".csv")
        write_whole(data, as_csv(figure.data).encode(), "--plot")
    say(f"written: {plot}, {data}")
    return [plot, data]


def _show(table: Table) -> None:
    echo(f"\n{table.title}")
    print_table([column.heading for column in table.columns], table.rows)
    for note in table.notes:
        echo(f"  {note}")
