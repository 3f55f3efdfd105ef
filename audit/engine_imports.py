"""Find every way in which a Python source would load the engine into its own process.

Invariant: source in, places out. What is built at run time cannot be seen here; run.ended's list of
loaded modules answers for that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

FORBIDDEN = frozenset(
    {
        "compressed_tensors",
        "cupy",
        "flash_attn",
        "flashinfer",
        "jax",
        "numba",
        "ray",
        "sglang",
        "tensorrt_llm",
        "torch",
        "torchaudio",
        "torchvision",
        "transformers",
        "triton",
        "vllm",
        "xformers",
        "xgrammar",
    }
)
# importlib.import_module, __import__, and the ways around them.
_LOADERS = frozenset({"import_module", "__import__", "find_spec", "run_module", "reload"})
_RUNNERS = frozenset({"exec", "eval", "compile"})
_STATEMENT = re.compile(r"\b(?:import|from)\s+([A-Za-z_]\w*)")


def engine_imports(source: bytes) -> Iterator[tuple[int, str]]:
    """(line, what) of each import of the engine; SyntaxError for what is not Python."""
    tree = ast.parse(source)
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found = [node.module]
        elif isinstance(node, ast.Call):
            found = list(_called(node, aliases))
        elif isinstance(node, (ast.List, ast.Tuple)):
            found = list(_in_argv(node))
        else:
            continue
        yield from ((node.lineno, name) for name in found if is_engine(name))


def is_engine(module: str) -> bool:
    """Whether a module, by dotted name, is the engine or what it computes with."""
    return module.partition(".")[0] in FORBIDDEN


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Names under which a loader is known: `from importlib import import_module as load`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name: a.name for a in node.names if a.name in _LOADERS}
        elif isinstance(node, ast.Assign) and _name(node.value) in _LOADERS:
            found |= {t.id: _name(node.value) for t in node.targets if isinstance(t, ast.Name)}
    return found


def _called(node: ast.Call, aliases: dict[str, str]) -> Iterator[str]:
    called = _name(node.func)
    called = aliases.get(called, called)
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    texts = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if called in _LOADERS:
        yield from texts[:1]
    elif called in _RUNNERS:
        for text in texts:
            yield from _STATEMENT.findall(text)


def _in_argv(node: ast.List | ast.Tuple) -> Iterator[str]:
    """Code given to an interpreter: [sys.executable, "-c", "import vllm"].

    `-m vllm…` is none: it starts the engine, as a process of its own, which is the harness's work.
    """
    items = [item.value if isinstance(item, ast.Constant) else None for item in node.elts]
    for option, text in pairwise(items):
        if option == "-c" and isinstance(text, str):
            yield from _STATEMENT.findall(text)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
