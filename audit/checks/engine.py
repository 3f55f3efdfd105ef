"""The harness never loads the engine into its own process."""

from __future__ import annotations

from collections.abc import Iterator

from audit.engine_imports import engine_imports, is_engine
from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
from records.run_directory import is_regular
from records.schema import RunEnded

IMPORTED = Code(
    "ENGINE01",
    "error",
    "the harness's sources import the engine",
    "The engine is a process on the other side of HTTP. A harness that imports it shares its "
    "interpreter lock, its memory and its CUDA context with what it measures.",
    "remove the import: ask the engine over HTTP or read its log",
)
LOADED = Code(
    "ENGINE02",
    "error",
    "the harness had the engine loaded",
    "run.ended lists every top-level module that the harness had imported.",
    "the run cannot stand: measure again with an unchanged harness",
)
UNPARSABLE = Code(
    "ENGINE03",
    "error",
    "a source of the harness is not Python",
    "What cannot be parsed cannot be checked.",
    "restore the file from git",
)
UNTOLD = Code(
    "ENGINE04",
    "error",
    "a run does not say which modules its harness had loaded",
    "run.ended lists every module that the harness had imported. Every harness imports its own "
    "packages, `records` and `remote`: a list without them was not taken from a harness.",
    "the run cannot stand: measure again with an unchanged harness",
)

_PACKAGES = ("records", "remote")


def check_sources(repository: RepositoryView) -> Iterator[Finding]:
    """Read the sources that make the harness."""
    for package in _PACKAGES:
        for path in sorted((repository.root / package).rglob("*.py")):
            shown = repository.show(path)
            if is_regular(path):
                yield from imports_in(shown, path.read_bytes())
            else:
                yield UNPARSABLE.at(shown, 0, "", "no regular file", "a source")


def imports_in(shown: str, source: bytes) -> Iterator[Finding]:
    """What is wrong with one source."""
    try:
        found = list(engine_imports(source))
    except SyntaxError as error:
        yield UNPARSABLE.at(shown, error.lineno or 0, str(error))
        return
    for line, module in found:
        yield IMPORTED.at(shown, line, "", f"import of {module}", "none")


def check_modules(repository: RepositoryView) -> Iterator[Finding]:
    """Look at what each run says its harness had loaded."""
    for run, scan in repository.readable():
        shown = repository.show(run.directory.events)
        for event in scan.of(RunEnded):
            names = {name.partition(".")[0] for name in event.value.modules}
            loaded = sorted(filter(is_engine, names))
            if loaded:
                yield LOADED.at(shown, event.line, "", ", ".join(loaded), "none of them")
            missing = sorted(set(_PACKAGES) - names)
            if missing:
                want = "every module that was loaded"
                yield UNTOLD.at(shown, event.line, "", f"no {', '.join(missing)}", want)


CHECK = Check(
    "engine",
    "The sources of the harness never load the engine into its own process.",
    (IMPORTED, UNPARSABLE),
    check_sources,
    kind="conduct",
)
MODULES_CHECK = Check(
    "modules",
    "No harness had the engine loaded when its run ended.",
    (LOADED, UNTOLD),
    check_modules,
    scope="meaning",
    kind="conduct",
)
