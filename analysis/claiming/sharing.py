"""Parts that many runs have alike, held once: the plan, command lines, what the engine decided.

Invariant: what comes out equals what went in; only equal parts become one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, TypeVar, cast

from analysis.claiming.reading import BootRecord, StudyRun
from analysis.metrics import WindowMetrics
from records.digest import Digest
from records.plan import Plan

T = TypeVar("T")


class Sharing:
    """Of the runs of one analysis; a fleet's thousandth run adds little but its figures."""

    def __init__(self) -> None:
        self._plans: list[Plan] = []
        self._facts: dict[str, dict[str, Any]] = {}
        self._files: dict[tuple[tuple[str, Digest], ...], dict[str, Digest]] = {}
        self._rest: dict[object, object] = {}

    def of(self, run: StudyRun) -> StudyRun:
        """The same run, made of parts that others hold already where they are equal."""
        return replace(
            run,
            started=replace(run.started, plan=self._plan(run.plan)),
            boots=tuple(map(self._boot, run.boots)),
            metrics=tuple(map(self._window, run.metrics)),
            peers=tuple(map(self._window, run.peers)),
            engines=tuple(replace(one, facts=self._told(one.facts)) for one in run.engines),
            models=tuple(replace(one, files=self._bound(one.files)) for one in run.models),
        )

    def _plan(self, plan: Plan) -> Plan:
        # Few plans, and maps in them, so that they have no hash.
        if plan not in self._plans:
            self._plans.append(plan)
        return self._plans[self._plans.index(plan)]

    def _window(self, window: WindowMetrics) -> WindowMetrics:
        return replace(window, answers=self._one(window.answers))

    def _boot(self, boot: BootRecord) -> BootRecord:
        started, decided = boot.started, boot.decided
        return replace(
            boot,
            started=replace(
                started,
                argv=self._one(started.argv),
                env=self._told(started.env),
                compile_cache=self._told(started.compile_cache),
            ),
            decided=decided and replace(decided, facts=self._told(decided.facts)),
            warmed=self._one(boot.warmed),
            windows=self._one(boot.windows),
        )

    def _told(self, facts: dict[str, T]) -> dict[str, T]:
        return self._facts.setdefault(json.dumps(facts, sort_keys=True), facts)

    def _bound(self, files: dict[str, Digest]) -> dict[str, Digest]:
        return self._files.setdefault(tuple(sorted(files.items())), files)

    def _one(self, part: T) -> T:
        return cast("T", self._rest.setdefault(part, part))
