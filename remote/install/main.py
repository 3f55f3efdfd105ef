"""The `install` and `host` commands: a carried bundle becomes a run that can be started.

Invariant: each step is done only after the one before it was verified, and skipped only where its
result was; so the same command is right after a new part, after a kill, and after it has succeeded.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from records import bundle, canonical, durable
from records.bundle import Manifest, read_manifest
from records.bundle_stream import require_files, require_parts
from records.cache_listing import CARRIED, CacheListing, read_listing
from records.cpu_list import parse_cpus
from records.decode import from_object
from records.digest import Digest
from records.errors import (
    BundleDamagedError,
    BundleIncompleteError,
    DiskFullError,
    HostUnfitError,
)
from records.job import Job
from records.plan import require_blocks
from remote.binding import binding_of, site_directories
from remote.install import carried_cache
from remote.install.interpreter import Interpreter, ask, require_fit
from remote.install.job import Here
from remote.install.settle import require_idle, settle
from remote.install.unpack import unpack
from remote.install.wheels import install

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_LONGEST_LEASE_S = 366 * 86400


def parser() -> argparse.ArgumentParser:
    """The options of the installation."""
    p = argparse.ArgumentParser(
        prog="install",
        description="Verify the parts of a bundle, unpack and install them below ROOT, without a "
        "network. Run it again as parts arrive: it says which are missing.",
        epilog="examples: python3 bundle_install.py DIR --root /root/kit --python venv/bin/python; "
        "for another of the plans: python3 bundle_install.py DIR --root /root/kit --plan NAME",
    )
    p.add_argument("directory", type=Path, help="where manifest.json and the parts lie")
    p.add_argument("--root", type=Path, required=True, help="directory to install below")
    p.add_argument("--python", default=sys.executable, help="the engine's interpreter [this one]")
    p.add_argument("--host-site", action="append", metavar="DIR", help="bind these directories of "
                   "the host's distributions; repeatable [those of the interpreter]")  # fmt: skip
    p.add_argument("--client-cpus", default="", help="processors for the client, such as 14,15")
    p.add_argument("--engine-cpus", default="", help="processors for the engine, such as 0-13")
    p.add_argument("--plan", default="", metavar="NAME", help="whose job to write, in a "
                   "bundle of several plans [the first]")  # fmt: skip
    p.add_argument("--blocks", default="", help="only these blocks of the plan, such as 1,3 [all]")
    p.add_argument("--bundle", default="", metavar="DIGEST", help="refuse any other bundle")
    p.add_argument("--ends-in", type=_lease_s, default=0, metavar="SECONDS", help="the host "
                   "goes back so long from now: begin no block that will not end before [never]",
                   )  # fmt: skip
    p.add_argument("--new-run", action="store_true", help="a new run even if one was begun")
    p.add_argument("--json", action="store_true", help="print the result as JSON")
    return p


def main(argv: Sequence[str]) -> int:
    """Install; prints the command that starts the run, and nothing else, on stdout.

    HostUnfitError where a place on the host is not what it must be.
    """
    began_unix_s = int(time.time())
    args = parser().parse_args(argv)
    try:
        return _install(args, began_unix_s)
    except OSError as error:
        if error.errno in durable.NO_SPACE or error.filename is None:
            raise
        raise HostUnfitError(
            f"cannot install below {args.root}: {error.filename}: {error.strerror}",
            "name another --root, or make this one usable",
        ) from error


def _install(args: argparse.Namespace, began_unix_s: int) -> int:
    steps = _Steps()
    client_cpus, engine_cpus = parse_cpus(args.client_cpus), parse_cpus(args.engine_cpus)
    blocks = parse_cpus(args.blocks)
    manifest = read_manifest(args.directory)
    if args.bundle and Digest.parse(args.bundle) != manifest.digest:
        raise BundleDamagedError(
            f"manifest.json: got {manifest.digest}, want {args.bundle}", "carry manifest.json anew"
        )
    chosen = manifest.plan_named(args.plan)
    root = args.root.absolute()
    require_idle(root, chosen.job)
    steps.say(
        f"bundle {manifest.digest}, plan {chosen.plan}: verifying {len(manifest.parts)} parts, "
        f"{manifest.size_bytes / 1e6:.0f} MB"
    )
    require_files(args.directory, manifest)
    template = args.directory / chosen.job
    _require_blocks_of(template, blocks)
    require_parts(args.directory, manifest)
    steps.done("every part verified")
    here = ask(args.python)
    if manifest.target is not None:
        require_fit(here, manifest.target)
        _require_relied_on(here, manifest, steps)
    _make(root)
    steps.say(f"unpacking below {root}")
    kept = unpack(args.directory, manifest, root)
    steps.done(f"{len(manifest.content)} files unpacked and verified, {kept} of them kept")
    if manifest.target is not None:
        install(root, manifest, args.python, steps.say)
        steps.done("engine installed")
    _bring_harness(args.directory / bundle.HARNESS, root / bundle.HARNESS)
    sites = args.host_site or [str(path) for path in site_directories(Path(args.python))]
    if manifest.target is not None:
        _require_bindable([root / bundle.SITE, *map(Path, sites)], steps)
    cache = _carried(root, manifest, steps)
    ends_unix_s = began_unix_s + args.ends_in if args.ends_in else 0
    places = Here(root, args.python, tuple(sites), client_cpus, engine_cpus, blocks, ends_unix_s)
    begun = (root / chosen.job).exists()
    job, fresh = settle(template, places, cache, new=args.new_run, say=steps.say)
    steps.done("job written")
    if begun and fresh and not args.new_run:
        steps.say("note: the job that was here differs from this one, so this is another run")
    _report(root / chosen.job, job, manifest, as_json=args.json)
    return 0


def host(argv: Sequence[str]) -> int:
    """Print the host list of an interpreter."""
    p = argparse.ArgumentParser(
        prog="host", description="Print what an interpreter has, for kit bundle build."
    )
    p.add_argument("--python", default=sys.executable, help="which interpreter [this one]")
    sys.stdout.write(ask(p.parse_args(argv).python).listing())
    return 0


def pack(argv: Sequence[str]) -> int:
    """Pack what is to be carried home: the records, and the warm cache where it is asked for."""
    p = argparse.ArgumentParser(
        prog="pack",
        description="Pack the records of every run below ROOT, whole or so far, in parts.",
        epilog="example: python3 -I -S harness.pyz pack --root /root/kit --out out --cache",
    )
    p.add_argument("--root", type=Path, required=True, help="where the bundle was installed")
    p.add_argument("--out", type=Path, required=True, help="directory to fill")
    p.add_argument("--part-mib", type=int, default=16, help="size of a part in MiB [16]")
    p.add_argument("--cache", action="store_true", help="the warm cache too, for the next host")
    args = p.parse_args(argv)
    steps, root, part_bytes = _Steps(), args.root.absolute(), args.part_mib << 20
    if args.part_mib < 1:
        p.error("--part-mib must be at least 1")
    carried_cache.pack_records(root, args.out, part_bytes, steps.say)
    steps.done("records packed")
    if args.cache:
        carried_cache.pack(root, args.out, part_bytes, steps.say)
        steps.done("cache packed")
    return 0


class _Steps:
    """Progress on stderr, with the seconds since the step before."""

    def __init__(self) -> None:
        self._since_ns = time.monotonic_ns()

    def say(self, line: str) -> None:
        """One line."""
        print(line, file=sys.stderr, flush=True)

    def done(self, line: str) -> None:
        """One line on a step that has ended."""
        now_ns = time.monotonic_ns()
        self.say(f"{line} ({(now_ns - self._since_ns) / 1e9:.1f} s)")
        self._since_ns = now_ns


def _lease_s(text: str) -> int:
    """The seconds of --ends-in."""
    if not text.isdecimal() or len(text) > 12 or int(text) > _LONGEST_LEASE_S:
        raise argparse.ArgumentTypeError(f"must be 0 to {_LONGEST_LEASE_S} seconds")
    return int(text)


def _require_blocks_of(template: Path, blocks: tuple[int, ...]) -> None:
    """FormatError for blocks that the job's plan does not have, before anything is done for it."""
    try:
        job = from_object(Job, canonical.decode(template.read_bytes()))
    except OSError as error:
        raise BundleIncompleteError(
            f"{template.name}: {error.strerror}", f"carry {template.name} there"
        ) from error
    require_blocks(job.plan, blocks)


def _require_relied_on(here: Interpreter, manifest: Manifest, steps: _Steps) -> None:
    """HostUnfitError where a distribution that was left behind for this host is not on it."""
    missing = [f"{pin.name}=={pin.version}" for pin in manifest.relies_on
               if pin.name not in here.have]  # fmt: skip
    if missing:
        raise HostUnfitError(
            f"{here.python} lacks {', '.join(missing)}, which the bundle leaves to the host",
            "make the bundle against this host's own list: python3 -I -S harness.pyz host",
        )
    for pin in manifest.relies_on:
        if here.have[pin.name] != pin.version:
            steps.say(
                f"note: the host has {pin.name} {here.have[pin.name]}; the bundle was made against "
                f"{pin.version}"
            )


def _require_bindable(sites: Sequence[Path], steps: _Steps) -> None:
    """BindingError now for what the harness would refuse at the head of the run."""
    found = binding_of(sites, verify_files=False, allow_altered=True)
    steps.done(f"{len(found.distributions)} distributions can be bound, the host's included")


def _carried(root: Path, manifest: Manifest, steps: _Steps) -> CacheListing | None:
    """The listing of the cache that came with the bundle; None where none did."""
    if not manifest.below(CARRIED):
        return None
    listing = read_listing(root / CARRIED)
    if listing.root != str(root):
        steps.say(
            f"note: the carried cache was filled below {listing.root}; below {root} some of it is "
            "compiled again"
        )
    return listing


def _make(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskFullError(f"{root}: {error.strerror}", "name another --root") from error


def _bring_harness(source: Path, target: Path) -> None:
    """The harness in its place; one that is the same stays, since it may be running."""
    data = source.read_bytes()
    if not target.is_file() or target.read_bytes() != data:
        partial = target.with_suffix(".partial")
        partial.write_bytes(data)
        partial.replace(target)


def _report(path: Path, job: Job, manifest: Manifest, *, as_json: bool) -> None:
    # Where it is set, what the engine compiles while it runs would be compiled at every boot.
    command = [
        *(["env", "-u", _NO_BYTECODE] if _NO_BYTECODE in os.environ else []),
        sys.executable,
        "-I",
        "-S",
        str(path.with_name(bundle.HARNESS)),
        "run",
        str(path),
    ]
    if as_json:
        told = {
            "bundle": str(manifest.digest),
            "plan": job.plan.id,
            "run_id": job.run_id,
            "run_directory": job.run_directory,
            "site_directories": list(job.engine.site_directories),
            "command": command,
        }
        print(json.dumps(told, indent=2))
        return
    print(f"run {job.run_id}: start it, or continue it, with", file=sys.stderr, flush=True)
    print(shlex.join(command))
