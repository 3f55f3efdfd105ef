"""The harness never loads the engine into its own process."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from audit.finding import Check, Code, Finding
from audit.repository import RepositoryView
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

FORBIDDEN = frozenset(
    {"vllm", "torch", "transformers", "triton", "flashinfer", "flash_attn", "xformers", "sglang"}
)
_PACKAGES = ("records", "remote")
_BY_NAME = ("import_module", "__import__")


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Read the sources that make the harness, and what each run says it had loaded."""
    for package in _PACKAGES:
        for path in sorted((repository.root / package).rglob("*.py")):
            shown = repository.show(path)
            try:
                tree = ast.parse(path.read_bytes())
            except SyntaxError as error:
                yield UNPARSABLE.at(shown, error.lineno or 0, str(error))
                continue
            for line, module in _imports(tree):
                if module.partition(".")[0] in FORBIDDEN:
                    yield IMPORTED.at(shown, line, "", f"import of {module}", "none")
    for run, scan in repository.readable():
        for event in scan.of(RunEnded):
            loaded = FORBIDDEN & {name.partition(".")[0] for name in event.value.modules}
            if loaded:
                shown = repository.show(run.directory.events)
                yield LOADED.at(shown, event.line, "", ", ".join(sorted(loaded)), "none of them")


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            argument = node.args[0]
            if called in _BY_NAME and isinstance(argument, ast.Constant):
                yield node.lineno, str(argument.value)


CHECK = Check(
    "engine",
    "The harness never loads the engine into its own process.",
    (IMPORTED, LOADED, UNPARSABLE),
    check,
)
