"""The directories of a job, by name: records say `<scratch>`, not where that was on this host.

Invariant: what is hidden is replaced by the same name on every host, so that the records of two
hosts differ in what was measured, not in where people keep their files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from records.job import Job

# Prefixes that say nothing about anybody and stand in too many other paths.
_COMMON = frozenset({"/", "/usr", "/usr/local", "/opt", "/bin"})


@dataclass(frozen=True, slots=True)
class Places:
    """Pairs of a directory and its name, the longest directory first."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, job: Job) -> Places:
        """The places of a job: run, scratch, models, and the engine's own directories."""
        named = {job.run_directory: "<run>", job.scratch: "<scratch>"}
        named |= {model.path: f"<models>/{name}" for name, model in job.models.items()}
        for number, site in enumerate(job.engine.site_directories, 1):
            named[site] = "<site>" if number == 1 else f"<site{number}>"
        program = PurePath(job.engine.launcher[0])
        if program.is_absolute():
            named.setdefault(str(program.parent.parent), "<engine>")
        for part in job.engine.launcher[1:]:  # the reference server starts from the harness archive
            if PurePath(part).is_absolute():
                named.setdefault(str(PurePath(part).parent), "<harness>")
        kept = {path: name for path, name in named.items() if path.startswith("/")}
        pairs = sorted(kept.items(), key=lambda pair: (-len(pair[0]), pair[0]))
        return cls(tuple(pair for pair in pairs if pair[0] not in _COMMON))

    def hide(self, text: str) -> str:
        """`text` with every place replaced by its name."""
        for path, name in self.pairs:
            text = text.replace(path, name)
        return text

    def hide_in(self, value: Any) -> Any:
        """A plain JSON value with the places hidden in every string and key."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self.hide(key): self.hide_in(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hide_in(item) for item in value]
        return value
