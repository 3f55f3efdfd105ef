"""The records that bind a run: what the engine and the models are, before and after it.

Invariant: nothing is measured under a binding that was not computed on this host, from the bytes
that are installed here, in this same process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from records import schema
from records.digest import Digest
from records.errors import BindingError
from records.job import EngineOnHost, ModelOnHost
from remote.binding import binding_of


def bind_engine(engine: EngineOnHost, harness: Digest, phase: str) -> schema.EngineBound:
    """The engine's binding now. The synthetic engine is the harness itself, bound by its digest."""
    if engine.runtime == "reference":
        digest = harness
        facts: dict[str, object] = {"distributions": 0}
    else:
        binding = binding_of(tuple(Path(d) for d in engine.site_directories))
        versions = {d.name: d.version for d in binding.distributions}
        digest = binding.digest
        facts = {"distributions": len(versions), "versions": versions}
    return schema.EngineBound(phase, engine.runtime, digest, engine.lock, engine.lock_digest, facts)


def bind_models(models: Mapping[str, ModelOnHost], phase: str) -> Iterator[schema.ModelBound]:
    """Every model's files, hashed now. BindingError where one is not what the job says."""
    for name, model in sorted(models.items()):
        files = {}
        for file, want in sorted(model.files.items()):
            path = Path(model.path) / file
            try:
                with path.open("rb") as opened:
                    files[file] = Digest.of_file(opened)
            except FileNotFoundError:
                raise BindingError(
                    f"model {name}: {file} is missing; want {want}", remedy="kit reproduce"
                ) from None
            if files[file] != want:
                raise BindingError(
                    f"model {name}: {file} is {files[file]}, want {want}",
                    remedy=f"remove {model.path} and start again: it is materialised anew",
                )
        yield schema.ModelBound(phase, name, files)
