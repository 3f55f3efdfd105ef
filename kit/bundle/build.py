"""A bundle made: wheels chosen against the host's list, models, harness and job, cut into parts.

Invariant: manifest.json is written last, over files that were each hashed while they were packed;
the same plans, lock, host list, models and source tree give the same bytes. Small files that change
from day to day (harness, jobs) stand beside the parts, so that a new harness is carried alone. What
a further plan adds stands behind what was packed for those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kit.bundle import download
from kit.bundle.carried_cache import cache_files
from kit.bundle.cut import Packed, cut
from kit.bundle.host_list import HostList
from kit.bundle.requirements import relied_on
from kit.bundle.resolve import make_lock
from kit.bundle.wheel_lock import LockedWheel, names_in, read_wheel_lock
from kit.engine.models import materialise, read_model_lock
from kit.engine.setup import REFERENCE
from kit.home import Home
from kit.hosts.offline import template_for
from kit.planning import prompt_files
from kit.run.launch import build_harness
from records import bundle, canonical
from records.bundle import CarriedPlan, Content, Manifest, Pin, job_file
from records.decode import to_object
from records.digest import Digest
from records.errors import ForeignDirectoryError, PlanError, ProvisionError
from records.plan import Plan

Say = Callable[[str], None]

# The lock of the installer that travels along: uv, a program in one wheel.
INSTALLER_LOCK = "wheels-installer.lock"
_STARTER = Path(__file__).with_name("starter.py")


@dataclass(frozen=True, slots=True)
class Wheels:
    """What is installed on the host: files by wheel, what stays behind, what it leans on there."""

    travelling: dict[LockedWheel, Path]
    installer: dict[LockedWheel, Path]
    left_behind: tuple[LockedWheel, ...]
    relies_on: tuple[Pin, ...]


_NO_WHEELS = Wheels({}, {}, (), ())


@dataclass(frozen=True, slots=True)
class Built:
    """A bundle as it lies in `directory`."""

    directory: Path
    manifest: Manifest
    wheels: Wheels


def build(
    home: Home,
    plans: Sequence[Plan],
    host: HostList | None,
    part_bytes: int,
    out: Path,
    say: Say,
    cache: Path | None = None,
) -> Built:
    """Make the bundle of some plans for a host in `out`, in place of a bundle that is there.

    The first plan is the one that is installed where none is named. `cache`: a warm cache that was
    packed on another host, which goes along.
    PlanError: the plans do not share an engine, or one stands there twice.
    ProvisionError: a wheel or model cannot be had, or the lock does not fit the host.
    ForeignDirectoryError: `out` holds something else. BundleDamagedError: the cache is not whole.
    """
    _require_ours(out)
    _require_one_engine(plans)
    plan = plans[0]
    harness, harness_digest = build_harness(home)
    wheels, target = _NO_WHEELS, None
    if plan.engine.name != REFERENCE:
        if host is None:
            raise PlanError(f"plan {plan.id} needs a host to be made for", "--host-freeze FILE")
        wheels = _wheels(home, plan, host, say)
        glibc = download.needed_glibc([*wheels.travelling.values(), *wheels.installer.values()])
        target = replace(host.target, glibc=glibc)
    names = [job_file(one.id, first=one is plan) for one in plans]
    jobs = [template_for(home, one, harness_digest) for one in plans]
    packed = [*_wheel_files(wheels), *_files_of(home, plans, say)]
    if cache is not None:  # last: parts before it stay as they are from one cache to the next
        packed += cache_files(cache, plans, say)
    _clear(out)
    parts = cut(packed, part_bytes, out, say)
    small = {
        bundle.HARNESS: harness.read_bytes(),
        bundle.STARTER: _STARTER.read_bytes(),
        **{name: canonical.encode(to_object(j)) for name, j in zip(names, jobs, strict=True)},
    }
    for name, data in small.items():
        (out / name).write_bytes(data)
    manifest = Manifest(
        format=bundle.FORMAT,
        plan=plan.id,
        plan_digest=plan.digest,
        lock=plan.engine.lock,
        lock_digest=jobs[0].engine.lock_digest if plan.engine.lock else None,
        target=target,
        relies_on=wheels.relies_on,
        files={name: Digest.of(data) for name, data in sorted(small.items())},
        parts=parts,
        content=tuple(one.content for one in packed),
        more_plans=tuple(
            CarriedPlan(one.id, one.digest, name)
            for one, name in zip(plans[1:], names[1:], strict=True)
        ),
    )
    partial = out / f"{bundle.MANIFEST}.partial"
    partial.write_bytes(manifest.encode())
    partial.replace(out / bundle.MANIFEST)
    return Built(out, manifest, wheels)


def _require_ours(out: Path) -> None:
    """ForeignDirectoryError where `out` holds anything but a bundle, finished or not."""
    ours = {bundle.MANIFEST, bundle.HARNESS, bundle.STARTER, bundle.JOB}
    numbered = ("part-[0-9]*", job_file("*", first=False))
    for path in sorted(out.iterdir()) if out.is_dir() else ():
        if path.name.removesuffix(".partial") not in ours and not any(map(path.match, numbered)):
            raise ForeignDirectoryError(f"{path} is not of a bundle", "name an empty --out")


def _require_one_engine(plans: Sequence[Plan]) -> None:
    """PlanError unless one installation serves every plan, and each stands there once."""
    first, *others = plans
    for number, plan in enumerate(others, 1):
        if plan.id in [one.id for one in plans[:number]]:
            raise PlanError(f"two plans are called {plan.id}", "name each plan once")
        if plan.engine != first.engine:
            raise PlanError(
                f"plan {plan.id} is of engine {_named(plan)}, plan {first.id} of {_named(first)}: "
                "a bundle installs one engine",
                "make a bundle for each",
            )


def _named(plan: Plan) -> str:
    engine = plan.engine
    return f"{engine.name} {engine.version}" + (f" ({engine.lock})" if engine.lock else "")


def _clear(out: Path) -> None:
    """Make `out`, or empty it, the manifest first: without one there is no bundle."""
    out.mkdir(parents=True, exist_ok=True)
    (out / bundle.MANIFEST).unlink(missing_ok=True)
    for path in out.iterdir():
        path.unlink()


def _wheels(home: Home, plan: Plan, host: HostList, say: Say) -> Wheels:
    images, store = home.root / "images", home.path / "wheels"
    lock = images / plan.engine.lock
    if not plan.engine.lock.endswith(".lock"):
        raise ProvisionError(f"plan {plan.id} names no wheel lock", "kit plan list")
    if not lock.is_file():
        make_lock(lock, host, say)
    locked = read_wheel_lock(lock)
    stays = tuple(wheel for wheel in locked if host.have.get(wheel.name) == wheel.version)
    travels = [wheel for wheel in locked if wheel not in stays]
    files = download.wheels(travels, host.target, store, say)
    pins = relied_on(files, host, names_in(lock.with_suffix(".override")), lock.name)
    say(f"{len(travels)} wheels travel, {len(stays)} stay behind, {len(pins)} of the host serve")
    installer = {}
    if (images / INSTALLER_LOCK).is_file():
        installer = download.wheels(
            read_wheel_lock(images / INSTALLER_LOCK), host.target, store, say
        )
    return Wheels(files, installer, stays, pins)


def _wheel_files(wheels: Wheels) -> Iterator[Packed]:
    for folder, files in (
        (bundle.INSTALLER, wheels.installer),
        (bundle.WHEELS, wheels.travelling),
    ):
        for wheel, path in sorted(files.items(), key=lambda item: item[1].name):
            content = Content(f"{folder}/{path.name}", path.stat().st_size, wheel.digest)
            yield Packed(content, path)


def _files_of(home: Home, plans: Sequence[Plan], say: Say) -> Iterator[Packed]:
    """Models and prompt files of the plans in order, each once."""
    seen: set[str] = set()
    models: set[str] = set()
    for plan in plans:
        fresh = sorted(set(plan.models) - models)
        models.update(fresh)
        for one in (*_model_files(home, plan, fresh, say), *_prompt_files(home, plan)):
            if one.content.path not in seen:
                seen.add(one.content.path)
                yield one


def _model_files(home: Home, plan: Plan, models: Sequence[str], say: Say) -> Iterator[Packed]:
    if plan.engine.name == REFERENCE:
        return
    lock = read_model_lock(home.root / "images" / "models.lock.json")
    for name in models:
        python = home.engine / "bin" / "python"
        if not (home.models / name).is_dir() and not python.exists():
            lock.model(name)
            raise ProvisionError(
                f"model {name} is not in {home.models}, and no engine is here to make it with",
                "make reproduce  (it installs both)",
            )
        directory = materialise(name, lock, python, home.models, say)
        say(f"model {name}: every file is the locked one")
        for file, locked in sorted(lock.model(name).files.items()):
            content = Content(f"{bundle.MODELS}/{name}/{file}", locked.size_bytes, locked.digest)
            yield Packed(content, directory / file)


def _prompt_files(home: Home, plan: Plan) -> Iterator[Packed]:
    for source, name in sorted(prompt_files.files(home, plan)):
        path = f"{bundle.SCRATCH}/prompts/{name}"
        yield Packed(Content(path, source.stat().st_size, Digest(name)), source)
