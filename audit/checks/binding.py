"""Engine and models are bound by digest before the first window and after the last, and agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from audit.finding import Check, Code, Finding
from audit.journal_scan import Event, JournalScan
from audit.repository import RepositoryView
from records.digest import Digest
from records.errors import FormatError
from records.schema import EngineBound, ModelBound, WindowStarted

MODELS_LOCK = "models.lock.json"

UNBOUND = Code(
    "BIND01",
    "error",
    "a window was measured before engine and models were bound",
    "No digest, no measurement: engine.bound and a model.bound for each model of the plan come "
    "before the first window.",
    "the run cannot stand: measure again",
)
UNCLOSED = Code(
    "BIND02",
    "error",
    "engine or model was not bound again after the boots",
    "What was measured is known only if it was the same at both ends of the run. (Of a run that "
    "was closed, its host being gone, CLOSE01 says it.)",
    "the run cannot stand: measure again",
)
CHANGED = Code(
    "BIND03",
    "error",
    "engine or model changed during the run",
    "The digests before and after (and at every resumption) must be one.",
    "the run cannot stand: measure again",
)
LOCK = Code(
    "BIND04",
    "error",
    "the engine was installed from a lock that is not in images/",
    "lock_digest is the SHA-256 of the lock file. It must be that of the file under images/, as it "
    "is or as it was in some commit.",
    "restore the lock under images/, or say in git which one it was",
)
MODEL = Code(
    "BIND05",
    "error",
    "a model's files are not those of images/models.lock.json",
    "The lock holds every file of every model by digest, as it is or as it was in some commit.",
    "kit models materialise, then measure again",
)
MODELS_LOCK_BAD = Code(
    "BIND06",
    "error",
    "images/models.lock.json is missing or cannot be read",
    "Without the lock nobody can tell which model was measured.",
    "restore images/models.lock.json from git",
)
IMAGE = Code(
    "BIND07",
    "error",
    "the container was not of an image of the lock",
    "Index, platform manifest and image id that the host showed must be those that the image lock "
    "of the run gives together, and the container must have been made of that image.",
    "the run cannot stand: measure again",
)

INSTALLED = Code(
    "BIND08",
    "error",
    "the engine's files are not those that its lock installs",
    "images/*.binding.json holds, for a lock, the digest over all that an installation from it "
    "leaves on disk. engine.bound names the digest of what was there.",
    "kit reproduce installs the engine anew; then measure again",
)


_IMAGES = ("apptainer", "docker")


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold the bindings of each run against each other and against images/."""
    for run, scan in repository.readable():
        shown = repository.show(run.directory.events)
        engines, models = list(scan.of(EngineBound)), list(scan.of(ModelBound))
        yield from _before(shown, scan)
        if run.is_sealed and scan.closed is None:
            yield from _after(shown, scan, engines, models)
        yield from _unchanged(shown, engines, models)
        if scan.started and not scan.started.synthetic:
            yield from _engine_lock(repository, shown, engines)
            yield from _installed(repository, shown, engines)
            yield from _image(repository, shown, engines)
            yield from _model_lock(repository, shown, models)


def _before(shown: str, scan: JournalScan) -> Iterator[Finding]:
    started = scan.started
    wanted = {"engine", *(started.plan.models if started else ())}
    for event in scan.events:
        if isinstance(event.value, EngineBound):
            wanted.discard("engine")
        elif isinstance(event.value, ModelBound):
            wanted.discard(event.value.model)
        elif isinstance(event.value, WindowStarted):
            if wanted:
                yield UNBOUND.at(
                    shown, event.line, "", f"no binding of {', '.join(sorted(wanted))}", "bindings"
                )
            return


def _after(
    shown: str, scan: JournalScan, engines: list[Event], models: list[Event]
) -> Iterator[Finding]:
    last_window = max((event.line for event in scan.of(WindowStarted)), default=0)
    found = {"engine"} if any(_is_after(e, last_window) for e in engines) else set()
    found |= {e.value.model for e in models if _is_after(e, last_window)}
    wanted = {"engine", *(scan.started.plan.models if scan.started else ())}
    for name in sorted(wanted - found):
        yield UNCLOSED.at(shown, scan.lines, f"{name}: {UNCLOSED.title}", "none", 'phase "after"')


def _is_after(event: Event, last_window: int) -> bool:
    return bool(event.value.phase == "after") and event.line > last_window


def _unchanged(shown: str, engines: list[Event], models: list[Event]) -> Iterator[Finding]:
    for event in engines[1:]:
        first, now = engines[0].value, event.value
        for name in ("runtime", "digest", "lock", "lock_digest"):
            got, want = getattr(now, name), getattr(first, name)
            if got != want:
                message = f"engine {name}: {CHANGED.title}"
                yield CHANGED.at(shown, event.line, message, str(got), f"{want} (first binding)")
    firsts: dict[str, dict[str, Digest]] = {}
    for event in models:
        want_files = firsts.setdefault(event.value.model, event.value.files)
        for name in sorted(want_files.keys() | event.value.files.keys()):
            got, want = event.value.files.get(name), want_files.get(name)
            if got != want:
                message = f"model {event.value.model}, {name}: {CHANGED.title}"
                yield CHANGED.at(shown, event.line, message, str(got), f"{want} (first binding)")


def _engine_lock(repository: RepositoryView, shown: str, engines: list[Event]) -> Iterator[Finding]:
    seen: set[tuple[str, Digest]] = set()
    for event in engines:
        key = (event.value.lock, event.value.lock_digest)
        if key in seen:
            continue
        seen.add(key)
        path = repository.root / "images" / event.value.lock
        versions = (Digest.of(data) for data in repository.versions(path))
        if event.value.lock_digest not in versions:
            got = f"{event.value.lock_digest} ({event.value.lock})"
            now = Digest.of(path.read_bytes()) if path.is_file() else "no such file"
            yield LOCK.at(shown, event.line, "", got, f"{now} ({repository.show(path)})")


def _installed(repository: RepositoryView, shown: str, engines: list[Event]) -> Iterator[Finding]:
    """Each binding against what is known of its lock, where anything is."""
    for event in engines:
        bound = event.value
        if bound.runtime in _IMAGES:
            continue
        path = repository.root / "images" / f"{bound.lock.removesuffix('.lock')}.binding.json"
        known = [
            _binding_digest(data, str(bound.lock_digest)) for data in repository.versions(path)
        ]
        wanted = [digest for digest in known if digest]
        if wanted and str(bound.digest) not in wanted:
            want = f"{wanted[0]} ({repository.show(path)})"
            yield INSTALLED.at(shown, event.line, "", str(bound.digest), want)


def _binding_digest(data: bytes, lock_digest: str) -> str:
    """The digest that an installation from this very lock has; "" where the file says nothing."""
    try:
        value = json.loads(data)
        return str(value["binding_digest"]) if value["lock_digest"] == lock_digest else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _image(repository: RepositoryView, shown: str, engines: list[Event]) -> Iterator[Finding]:
    """Each binding of a container against the lock that it names; that lock missing is BIND04."""
    for event in engines:
        bound = event.value
        if bound.runtime not in _IMAGES:
            continue
        versions = repository.versions(repository.root / "images" / bound.lock)
        data = next((d for d in versions if Digest.of(d) == bound.lock_digest), None)
        if data is None:
            continue
        facts = bound.facts
        names = ("index_digest", "manifest_digest", "image_id", "container_image")
        index, manifest, image, container = (str(facts.get(name)) for name in names)
        if bound.runtime == "apptainer":  # a file, which has no container to ask
            container = image
        # containerd's store calls an image by its manifest or index, the classic one by its id
        fits = any(
            (index, manifest) == locked[:2] and image in locked for locked in _locked_images(data)
        )
        if not fits or container != image or index != str(bound.digest):
            got = f"index {index}, manifest {manifest}, image {image}, container {container}"
            yield IMAGE.at(shown, event.line, "", got, f"an image of images/{bound.lock}")


def _locked_images(data: bytes) -> list[tuple[str, str, str]]:
    """(index, manifest, image id) of every resolved platform; none where it is no image lock."""
    try:
        return [
            (str(image["index_digest"]), str(one["manifest_digest"]), str(one["image_id"]))
            for image in json.loads(data)["images"].values()
            for one in image["platforms"].values()
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _model_lock(repository: RepositoryView, shown: str, models: list[Event]) -> Iterator[Finding]:
    if not models:
        return
    path = repository.root / "images" / MODELS_LOCK
    try:
        now = _locked(path.read_bytes()) if path.is_file() else None
    except FormatError as error:
        now = None
        yield MODELS_LOCK_BAD.at(repository.show(path), 1, error.message)
    if now is None:
        if not path.is_file():
            yield MODELS_LOCK_BAD.at(repository.show(path), 0, "", "no such file", "the model lock")
        return
    seen: set[str] = set()
    for event in models:
        model, files = event.value.model, event.value.files
        if model in seen or now.get(model) == files:
            continue
        seen.add(model)
        if any(_once_locked(data).get(model) == files for data in repository.versions(path)):
            continue
        locked = now.get(model, {})
        for name in sorted(files.keys() | locked.keys()) or [model]:
            got, want = files.get(name), locked.get(name)
            if got != want:
                message = f"model {model}, {name}: {MODEL.title}"
                yield MODEL.at(
                    shown,
                    event.line,
                    message,
                    str(got or "no such file"),
                    f"{want or 'no such file'} (images/{MODELS_LOCK})",
                )


def _once_locked(data: bytes) -> dict[str, dict[str, Digest]]:
    """As `_locked`, for an old version: one that cannot be read locks nothing."""
    try:
        return _locked(data)
    except FormatError:
        return {}


def _locked(data: bytes) -> dict[str, dict[str, Digest]]:
    """Model -> file -> digest. FormatError where the lock does not have this shape."""
    try:
        models: Any = json.loads(data)["models"]
        return {
            model: {name: Digest.parse(file["digest"]) for name, file in locked["files"].items()}
            for model, locked in models.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{MODELS_LOCK}: not a model lock: {error!r}") from error


CHECK = Check(
    "binding",
    "Engine and models are bound by digest before the first window and after the last, and agree "
    "with each other and with images/.",
    (UNBOUND, UNCLOSED, CHANGED, LOCK, MODEL, MODELS_LOCK_BAD, IMAGE, INSTALLED),
    check,
    scope="meaning",
    kind="conduct",
)
