"""A small paper over a healthy project, whose every number is cited: to be changed by tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysis.claiming.evaluation import evaluate_project
from audit.checks import basis, claims, findings, numerals, sources
from audit.report import as_text
from audit.runner import audit
from records.digest import Digest
from records.run_directory import RunDirectory

CHECKS = (claims.CHECK, basis.CHECK, numerals.CHECK, findings.CHECK, sources.CHECK)
OTHER = Digest.of(b"something else")
CELL = "small.draft.c1"
RATIO = "small.draft-vs-none.c1.throughput.ratio"
NO_EFFECT = "small.draft-vs-none.c1.step-gap.p95.difference"
TEX, F1, F2 = "paper/main.tex", "paper/findings/F001.md", "paper/findings/F002.md"


class Paper:
    """A project with a study `small` on run-1, two findings, a paper and a README."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self.root = project.root
        self.rest_on("run-1")
        self.write("paper/published.toml", PUBLISHED)
        self.write("paper/allowed-numbers.toml", ALLOWED)
        self.write("README.md", "Completed: [4](claim:small.boots.completed). `[9](claim:x)`\n")
        self.write(
            "paper/main.tex",
            "\\documentclass[11pt]{article} % 12 comments\n"
            f"Throughput was \\claim{{{CELL}.throughput.mean}} and \\published{{cv}};\n"
            f"ratio \\claim{{{RATIO}}}. Engine 0.29.0, FP8.\n",
        )
        self.finding(
            "F001",
            f"It was [{self.value(f'{CELL}.acceptance.mean')}](claim:{CELL}.acceptance.mean).",
            "That it is so elsewhere, on hosts of other kinds.",
        )
        self.finding(
            "F002",
            "Published: [13.92 %](published:cv).",
            "That anybody measured it again since then.",
        )
        project.commit("paper")

    def rest_on(self, *runs: str) -> None:
        """Let the study rest on these runs."""
        lines = ['[study.small]\nplan = "test-plan"\n[study.small.runs]']
        lines += [f'"{run}" = "{self.seal(run)}"' for run in runs]
        if "run-2" not in runs:
            lines.append('[study.small.left_out]\n"run-2" = "a boot failed"')
        self.write("paper/evidence.toml", "\n".join(lines) + "\n")

    def seal(self, run: str = "run-1") -> Digest:
        """The digest of a run's seal."""
        return RunDirectory(self.project.run(run)).seal_digest

    def value(self, id_: str) -> str:
        """A claim as it must be printed."""
        return evaluate_project(self.root, self.project.data).value(id_).printed

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def change(self, name: str, old: str, new: str) -> None:
        """Change a text that must be there."""
        text = (self.root / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def finding(self, id_: str, body: str, limits: str, **head: str) -> None:
        """Write a finding."""
        front = {
            "id": id_,
            "title": f"The finding {id_}",
            "status": "active",
            "retracts": "[]",
            "retracted-by": "[]",
            "provenance": "record",
            "evidence": f"[{self.seal()}]",
            **{key.replace("_", "-"): value for key, value in head.items()},
        }
        lines = [f"{key}: {value}" for key, value in front.items()]
        section = f"## What this does NOT establish\n\n{limits}\n"
        text = "\n".join(["---", *lines, "---", "", body, "", section])
        self.write(f"paper/findings/{id_}.md", text)

    def codes(self) -> set[str]:
        """What these checks find."""
        report = audit(self.root, self.project.data, CHECKS)
        assert as_text(report)
        return {finding.code for finding in report.findings}


PUBLISHED = """
[[claim]]
id = "cv"
text = "a coefficient of variation"
figure = "13.92"
unit = "%"
source = "abstract"
quantity = "throughput"
test = "cv-margin"
fixed = "2026-11-30"

[claim.of]
engine = "vllm 0.29.0"
capability = "8.9"

[claim.margin]
relative = "0.50"
fixed = "2026-11-30"
reason = "for tests"
"""
ALLOWED = """
[[number]]
value = "0.29.0"
place = "paper/*.tex"
phrase = "Engine 0.29.0"
reason = "the version of the engine"
"""


def text_change(name: str, old: str, new: str) -> Callable[[Paper], None]:
    return lambda paper: paper.change(name, old, new)
