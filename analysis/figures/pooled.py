"""Several runs of one plan as one study to draw: which boots of which runs are in it.

Invariant: what counts is decided in analysis/study.py alone; runs of two strata are never in one
figure, those of several hosts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.claiming.reading import study_run
from analysis.reading import Run
from analysis.study import merge
from analysis.study_tables import letter
from records.run_directory import RunDirectory


def pooled_runs(read: Sequence[tuple[Run, RunDirectory]]) -> list[tuple[str, list[Run]]]:
    """For each plan and stratum that several runs count in: a name, and the runs with what counts.

    Synthetic runs are pooled among themselves. ForeignDirectoryError: a run is there twice.
    """
    found = []
    for synthetic in (False, True):
        runs = {run.run_id: run for run, _ in read if run.started.synthetic is synthetic}
        studies = merge(
            study_run(run, at) for run, at in read if run.started.synthetic is synthetic
        )
        several = [study for study in studies if len(study.runs) > 1]
        plans = [study.plan.id for study in several]
        for place, study in enumerate(several):
            # As the tables name strata, where a plan has more than one.
            order = plans[:place].count(study.plan.id)
            mark = f"-{letter(order)}" if plans.count(study.plan.id) > 1 else ""
            counted = {one.run_id: {b.started.boot for b in one.boots} for one in study.runs}
            members = [
                replace(runs[run], boots=[b for b in runs[run].boots if b.started.boot in boots])
                for run, boots in counted.items()
            ]
            found.append((f"study-{study.plan.id}{mark}", members))
    return found
