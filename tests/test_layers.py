"""The house: who may import whom, held against the real import graph and the sources."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest

ROOT = Path(__file__).parents[1]
LAYERS = {
    "records": frozenset[str](),
    "remote": frozenset({"records"}),
    "kit": frozenset({"records"}),
    "analysis": frozenset({"records"}),
    "audit": frozenset({"records", "analysis"}),
}
# Below this module more is allowed: a verb composes what its layer keeps apart.
ENTRY_POINT = "kit.main"
VERBS, VERBS_MAY = "kit.commands", frozenset({"records", "analysis", "audit"})
STDLIB_ONLY = ("records", "remote")
OLDEST_PYTHON_ON_A_HOST = (3, 10)
NEVER = frozenset({"vllm", "torch"})
# Standard modules that Python 3.10 does not have.
NEWER_MODULES = frozenset({"tomllib", "concurrent.interpreters", "compression", "annotationlib"})
# Names that Python 3.10's modules do not have.
NEWER_NAMES = {
    "asyncio": {"TaskGroup", "Runner", "timeout", "timeout_at", "Barrier"},
    "builtins": {"ExceptionGroup", "BaseExceptionGroup"},
    "contextlib": {"chdir"},
    "datetime": {"UTC"},
    "enum": {"StrEnum", "ReprEnum", "verify", "member", "nonmember"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "typing": {
        "Self",
        "Never",
        "LiteralString",
        "Required",
        "NotRequired",
        "Unpack",
        "TypeVarTuple",
        "assert_never",
        "assert_type",
        "reveal_type",
        "override",
        "dataclass_transform",
    },
}


class Import(NamedTuple):
    """One import statement: who, what, where."""

    importer: str
    imported: str
    place: str


def _below(module: str, parent: str) -> bool:
    return module == parent or module.startswith(f"{parent}.")


def _may(importer: str) -> frozenset[str]:
    return VERBS_MAY if _below(importer, VERBS) else LAYERS[importer.partition(".")[0]]


def _sources(package: str) -> Iterator[Path]:
    for path in sorted((ROOT / package).rglob("*.py")):
        if "data" not in path.relative_to(ROOT).parts[1:2]:
            yield path


def _imports(package: str) -> Iterator[Import]:
    """Every absolute import in the sources, also inside functions and under TYPE_CHECKING."""
    for path in _sources(package):
        name = path.relative_to(ROOT)
        for node in ast.walk(ast.parse(path.read_bytes(), str(name))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name}:{node.lineno}: relative import"
                modules = [node.module or ""]
            elif isinstance(node, ast.Call) and node.args:
                modules = _dynamic(node)
            else:
                continue
            for module in modules:
                yield Import(".".join(name.with_suffix("").parts), module, f"{name}:{node.lineno}")


def _dynamic(node: ast.Call) -> list[str]:
    function, first = node.func, node.args[0]
    name = getattr(function, "id", getattr(function, "attr", ""))
    if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
        return [str(first.value)]
    return []


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """The import graph of all five packages, TYPE_CHECKING imports included."""
    for package in LAYERS:
        spec = importlib.util.find_spec(package)
        origin = spec.origin if spec else None
        # tests/ mirrors the sources: on sys.path before the root it would stand in for them.
        assert origin == str(ROOT / package / "__init__.py"), f"{package} is read from {origin}"
    return grimp.build_graph(*LAYERS, cache_dir=None, include_external_packages=True)


def _shown(graph: grimp.ImportGraph, importer: str, imported: str) -> str:
    details = graph.get_import_details(importer=importer, imported=imported)
    path = importer.replace(".", "/")
    file = f"{path}.py" if (ROOT / f"{path}.py").exists() else f"{path}/__init__.py"
    places = ", ".join(f"{file}:{d['line_number']}: {d['line_contents']}" for d in details)
    return f"{importer} -> {imported} ({places})"


def _against_the_house(importer: str, imported: str) -> bool:
    own, package = importer.partition(".")[0], imported.partition(".")[0]
    if _below(imported, VERBS):  # and no other part of kit may come to analysis through a verb
        return not _below(importer, VERBS) and importer != ENTRY_POINT
    return package in LAYERS and package != own and package not in _may(importer)


def test_no_module_imports_above_its_layer(graph: grimp.ImportGraph) -> None:
    faults = [
        _shown(graph, importer, imported)
        for importer in sorted(m for m in graph.modules if m.partition(".")[0] in LAYERS)
        for imported in sorted(graph.find_modules_directly_imported_by(importer))
        if _against_the_house(importer, imported)
    ]
    assert not faults, "imports against the house:\n" + "\n".join(faults)


def test_no_chain_of_imports_reaches_what_is_forbidden(graph: grimp.ImportGraph) -> None:
    faults = []
    for package in LAYERS.keys() - {"kit"}:  # kit's verbs may; the rule above tells them apart
        for other in LAYERS.keys() - LAYERS[package] - {package}:
            chain = graph.find_shortest_chain(importer=package, imported=other, as_packages=True)
            steps = itertools.pairwise(chain or ())
            faults += ["\n  ".join(_shown(graph, a, b) for a, b in steps)] if chain else []
    assert not faults, "chains against the house:\n" + "\n".join(faults)


@pytest.mark.parametrize("package", STDLIB_ONLY)
def test_what_runs_on_a_host_needs_only_the_standard_library(package: str) -> None:
    allowed = sys.stdlib_module_names | LAYERS[package] | {package}
    faults = [
        f"{one.place}: {one.importer} -> {one.imported}"
        for one in _imports(package)
        if one.imported.partition(".")[0] not in allowed or one.imported in NEWER_MODULES
    ]
    assert not faults, "not in the standard library of Python 3.10:\n" + "\n".join(faults)


@pytest.mark.parametrize("package", STDLIB_ONLY)
def test_what_runs_on_a_host_never_imports_the_engine(package: str) -> None:
    """Not even inside a function: the engine is a process on the other side of HTTP."""
    faults = [
        f"{one.place}: {one.importer} -> {one.imported}"
        for one in _imports(package)
        if one.imported.partition(".")[0] in NEVER
    ]
    assert not faults, "the engine must stay a process of its own:\n" + "\n".join(faults)


@pytest.mark.parametrize("package", STDLIB_ONLY)
def test_what_runs_on_a_host_is_python_3_10(package: str) -> None:
    faults = []
    for path in _sources(package):
        name = str(path.relative_to(ROOT))
        tree = ast.parse(path.read_bytes(), name, feature_version=OLDEST_PYTHON_ON_A_HOST)
        for node in ast.walk(tree):
            used: set[str] = set()
            if isinstance(node, ast.ImportFrom):
                used = {a.name for a in node.names} & NEWER_NAMES.get(node.module or "", set())
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = {node.attr} & NEWER_NAMES.get(node.value.id, set())
            elif isinstance(node, ast.Name):
                used = {node.id} & NEWER_NAMES["builtins"]
            elif isinstance(node, ast.TryStar):
                used = {"except*"}
            faults += [f"{name}:{getattr(node, 'lineno', 0)}: {one}" for one in sorted(used)]
    assert not faults, "newer than Python 3.10:\n" + "\n".join(faults)


@pytest.mark.parametrize("folder", ["images", "paper"])
def test_data_folders_hold_no_modules(folder: str) -> None:
    assert list((ROOT / folder).rglob("*.py")) == []


def test_every_package_of_the_house_is_known() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found == set(LAYERS)


def test_a_package_is_marked_as_one() -> None:
    """Without __init__.py a folder would be left out of the import graph, and so of this test."""
    faults = {
        str(path.parent.relative_to(ROOT))
        for package in LAYERS
        for path in _sources(package)
        if not (path.parent / "__init__.py").exists()
    }
    assert not faults
