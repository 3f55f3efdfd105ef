"""`kit bundle build`, `kit bundle verify` and `kit bundle install`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from kit.bundle.build import Built, build
from kit.bundle.cut import parse_size
from kit.bundle.host_list import HostList, read_host_list
from kit.options import DEFAULT_PLAN, find_plan, home, json_option
from kit.output import echo, print_json, print_table, say
from kit.parts import Parts
from records.bundle import STARTER, Manifest, read_manifest
from records.bundle_stream import require_files, require_parts, verify_contents

_directory = click.argument(
    "directory", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR"
)


@click.group(cls=Parts)
def command() -> None:
    """Carry an engine to a host without a network: wheels, models, harness and job, in parts.

    \b
    Example:
      kit bundle build --plan sm90-pilot --host-freeze host.txt --out carry
      (carry it; then on the host) python3 carry/bundle_install.py carry --root /root/kit
    """


@command.command("build")
@click.option(
    "--plan", "plan_names", multiple=True, default=(DEFAULT_PLAN,), show_default=True,
    metavar="NAME|FILE",
    help="A plan of this kit by name, or a TOML file; repeat it for more plans of one engine.",
)  # fmt: skip
@click.option(
    "--host-freeze", type=click.Path(path_type=Path), metavar="FILE",
    help="What the host has: the output of `harness.pyz host` there, or of pip freeze.",
)  # fmt: skip
@click.option("--python", default="", metavar="X.Y", help="The host's Python, if FILE lacks it.")
@click.option("--glibc", default="", metavar="X.Y", help="The host's glibc, if FILE lacks it.")
@click.option("--part-size", default="62.5MB", show_default=True, help="Size of a part.")
@click.option(
    "--cache", type=click.Path(path_type=Path), metavar="DIR",
    help="A warm cache brought home from another host (harness.pyz pack --cache): it goes along.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory to fill.")
@json_option
def build_bundle(
    plan_names: tuple[str, ...],
    host_freeze: Path | None,
    python: str,
    glibc: str,
    part_size: str,
    cache: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Choose, download and verify what the host lacks, and cut it into parts.

    The plan's lock in images/ decides the wheels; where it does not exist it is made from the .in
    and .override beside it. The same inputs give the same bytes. Several plans of one lock share
    engine and cache; bundle_install.py --plan chooses among them on the host.

    \b
    Example:
      kit bundle build --plan sm90-pilot --host-freeze images/wheels-sm90-offline.host --out carry
      kit bundle build --plan sm90-confounds --host-freeze host.txt --cache home --out carry
      kit bundle build --plan sm90-confounds --plan sm90-shape8b --host-freeze host.txt --out carry
    """
    here = home()
    plans = [find_plan(here, name) for name in plan_names]
    host: HostList | None = None
    if host_freeze is not None:
        host = read_host_list(host_freeze, python, glibc)
    built = build(here, plans, host, parse_size(part_size), out, say, cache)
    if as_json:
        print_json(_built(built))
        return
    manifest = built.manifest
    _table(manifest)
    _echo_plans(manifest)
    echo(f"bundle {manifest.digest}")
    echo(f"carry {out}/ to the host, then: python3 {STARTER} DIR --root ROOT")


@command.command("verify")
@_directory
@json_option
def verify_bundle(directory: Path, as_json: bool) -> None:
    """Hold every part, and every file inside, against the manifest.

    \b
    Example:
      kit bundle verify carry
    """
    manifest = read_manifest(directory)
    require_files(directory, manifest)
    require_parts(directory, manifest)
    say(f"{len(manifest.parts)} parts verified; reading the files in them")
    verify_contents(directory, manifest)
    if as_json:
        print_json(_told(manifest))
    else:
        _table(manifest)
        _echo_plans(manifest)
        echo(f"bundle {manifest.digest}: every part and file is what the manifest says")


@command.command("install", context_settings={"ignore_unknown_options": True})
@_directory
@click.option("--root", type=click.Path(path_type=Path), required=True, help="Install below it.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def install_bundle(directory: Path, root: Path, options: tuple[str, ...]) -> int:
    """Install a bundle on this machine, as bundle_install.py does on a host without this kit.

    OPTIONS are those of bundle_install.py (--python, --client-cpus, --plan, --json …).

    \b
    Example:
      kit bundle install carry --root /root/kit --python /opt/venv/bin/python
      kit bundle install carry --root /root/kit --plan sm90-shape8b
    """
    read_manifest(directory)
    argv = [sys.executable, "-I", str(directory / STARTER), str(directory), "--root", str(root)]
    return subprocess.run([*argv, *options], check=False).returncode


def _table(manifest: Manifest) -> None:
    folders: dict[str, list[int]] = {}
    for one in manifest.content:
        folders.setdefault(one.path.partition("/")[0], []).append(one.size_bytes)
    rows = [(name, len(sizes), f"{sum(sizes) / 1e6:.1f}") for name, sizes in folders.items()]
    rows.append(("parts", len(manifest.parts), f"{manifest.size_bytes / 1e6:.1f}"))
    print_table(("of", "files", "MB"), rows)


def _echo_plans(manifest: Manifest) -> None:
    for one in manifest.plans:
        echo(f"plan {one.plan} {one.plan_digest}, {one.job}")


def _told(manifest: Manifest) -> dict[str, object]:
    return {
        "bundle": str(manifest.digest),
        "plan": manifest.plan,
        "plans": [
            {"plan": one.plan, "digest": str(one.plan_digest), "job": one.job}
            for one in manifest.plans
        ],
        "parts": len(manifest.parts),
        "files": len(manifest.content),
        "size_bytes": manifest.size_bytes,
    }


def _built(built: Built) -> dict[str, object]:
    return {
        **_told(built.manifest),
        "directory": str(built.directory),
        "travelling": [f"{w.name}=={w.version}" for w in built.wheels.travelling],
        "left_behind": [f"{w.name}=={w.version}" for w in built.wheels.left_behind],
        "relies_on": [f"{pin.name}=={pin.version}" for pin in built.wheels.relies_on],
    }
