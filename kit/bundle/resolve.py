"""A lock made for a host: what an engine needs there and the host does not have, by hash.

Invariant: every version is chosen by uv over the whole set; versions of the host are preferred
where they fit, so that they stay behind; each distribution that travels has one wheel.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from kit.bundle.download import pip_for, require_pip
from kit.bundle.host_list import HostList
from kit.bundle.wheel_lock import read_wheel_lock
from kit.engine.one_wheel_each import entries_of
from kit.engine.uv_process import Progress, discard, run_shown, uv_binary
from records.errors import ProvisionError

_RETRY = "the same command again"


def make_lock(lock: Path, host: HostList, progress: Progress) -> None:
    """Write `lock` from the .in and .override files beside it. ProvisionError: it cannot be made.

    The .in names the engine; the .override (optional) what is left out.
    """
    wanted, left_out = lock.with_suffix(".in"), lock.with_suffix(".override")
    if not wanted.is_file():
        raise ProvisionError(
            f"neither {lock} nor {wanted.name} beside it exists",
            f"write what to resolve into {wanted}, such as: vllm==0.29.0",
        )
    with tempfile.TemporaryDirectory(prefix="kit-lock-") as scratch:
        hashes, report = Path(scratch) / "all-hashes.txt", Path(scratch) / "report.json"
        # An output file that is there already is what uv prefers versions from.
        hashes.write_text("".join(f"{n}=={v}\n" for n, v in sorted(host.have.items())), "utf-8")
        progress(f"resolving {wanted.name} for Python {host.target.python} against the host's list")
        _resolve(wanted, left_out, host, hashes, progress)
        needed = _not_on_host(hashes.read_text(encoding="utf-8"), host)
        hashes.write_text(needed, encoding="utf-8")
        _one_wheel_each(hashes, report, host, Path(scratch) / "none")
        text = entries_of(json.loads(report.read_text(encoding="utf-8")))
        fresh = lock.with_suffix(".partial")
        fresh.write_text(_head(wanted, host) + text, encoding="utf-8")
        read_wheel_lock(fresh)
        fresh.replace(lock)
    progress(f"{lock} is written: commit it, for records are held against it")


def _resolve(
    wanted: Path, left_out: Path, host: HostList, output: Path, progress: Progress
) -> None:
    target = host.target
    glibc = target.glibc.replace(".", "_")
    argv = [str(uv_binary()), "pip", "compile", "--no-config", "--quiet", "--only-binary", ":all:"]
    argv += ["--python-version", target.python]
    argv += ["--python-platform", f"{target.machine}-manylinux_{glibc}"]
    argv += ["--generate-hashes", "--no-annotate", "--no-header", "-o", str(output)]
    if left_out.is_file():
        argv += ["--override", str(left_out)]
    run_shown([*argv, str(wanted)], progress, "uv pip compile", _RETRY)


def _not_on_host(text: str, host: HostList) -> str:
    """The entries of a resolution whose version the host does not have."""
    kept = []
    for entry in text.replace("\\\n", "").splitlines():
        name, _, rest = entry.partition("==")
        version = rest.split()[0] if rest else ""
        if name and not entry.startswith("#") and host.have.get(name) != version:
            kept.append(entry)
    return "".join(f"{entry}\n" for entry in kept)


def _one_wheel_each(hashes: Path, report: Path, host: HostList, nowhere: Path) -> None:
    options = ["--dry-run", "--ignore-installed", "--no-deps", "--require-hashes", "--quiet"]
    options += ["--target", str(nowhere), "--report", str(report)]
    argv = [*require_pip(), "install", *options, *pip_for(host.target), "-r", str(hashes)]
    run_shown(argv, discard, "pip install --dry-run", _RETRY, dict(os.environ))


def _head(wanted: Path, host: HostList) -> str:
    target = host.target
    return (
        f"# What {wanted.name} needs on CPython {target.python}, {target.machine}, glibc "
        f"{target.glibc}, beside what the host has.\n"
        "# One wheel for each distribution; made by kit bundle build, not edited by hand.\n"
    )
