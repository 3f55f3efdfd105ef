"""TeX, run to the end: sources in, one PDF out, or the reason why there is none.

Invariant: a PDF comes out only of a build that lacks nothing: no undefined reference, citation or
link target, no float that its page cuts off. No shell, no network, and no file outside the build
directory is written.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from records.errors import DiskFullError, PaperError, ToolMissingError

# Debian's names; what a clean machine needs of TeX for this paper.
PACKAGES = ("texlive-latex-base", "texlive-latex-recommended", "texlive-science", "lmodern")
_PROGRAMS = ("pdflatex", "bibtex", "kpsewhich")
_STYLES = ("booktabs.sty", "siunitx.sty", "hyperref.sty", "lmodern.sty", "microtype.sty")
_MOST_RUNS = 5
_TIMEOUT_S = 300
_AGAIN = re.compile(r"Rerun to get|Label\(s\) may have changed|rerunfilecheck.*has changed")
_ERROR = re.compile(r"^(?:! |!pdfTeX error: |\S+:\d+: ).*", re.MULTILINE)
_AT = re.compile(r"^l\.\d+ (.*)", re.MULTILINE)  # the source up to where TeX stopped
_FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))
_UNDEFINED = re.compile(
    r"LaTeX Warning: (?:Reference|Citation) .*? undefined.*"
    r"|LaTeX Warning: There were (?:undefined|multiply-defined).*"
    r"|pdfTeX warning \(dest\): .*"
    r"|LaTeX Warning: Label .*? multiply defined.*"
)
_TOO_HIGH = re.compile(
    r"LaTeX Warning: Float too large for page by ([0-9.]+)pt on input (line \d+)"
)
_OVERFULL = re.compile(r"Overfull \\[hv]box \(([0-9.]+)pt too .*")


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build: the PDF, how often TeX ran, and by how much boxes stick out."""

    pdf: Path
    runs: int
    overfull_pt: tuple[float, ...]


def require_tex() -> None:
    """ToolMissingError names the Debian packages to install."""
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    if not missing:
        found = subprocess.run(
            ["kpsewhich", *_STYLES], capture_output=True, text=True, check=False
        ).stdout
        missing = [name for name in _STYLES if name not in found]
    if missing:
        raise ToolMissingError(
            f"the paper is set with TeX, and {', '.join(missing)} is not here",
            remedy=f"apt-get install --no-install-recommends {' '.join(PACKAGES)}",
        )


def build_pdf(main: Path, build: Path, epoch: int) -> Built:
    """Set `main` (a .tex file, read from its own directory) in `build`; dates are `epoch`.

    PaperError: TeX's first error, or what stayed undefined. DiskFullError: no space in `build`.
    """
    build.mkdir(parents=True, exist_ok=True)
    # Left over from an earlier build they would decide how often TeX must run.
    for old in build.glob(f"{main.stem}.*"):
        old.unlink()
    env = _environment(build, epoch)
    log, runs = "", 0
    for runs in range(1, _MOST_RUNS + 1):
        log = _latex(main, build, env)
        if runs == 1 and "\\citation" in (build / f"{main.stem}.aux").read_text(encoding="utf-8"):
            _bibtex(main, build, env)
        elif runs > 1 and not _AGAIN.search(log):
            break
    undefined = _UNDEFINED.findall(log)
    if undefined:
        raise PaperError(
            f"{main.name}: {undefined[0].strip()}", remedy=f"see {build / f'{main.stem}.log'}"
        )
    high = _TOO_HIGH.search(log)
    if high:
        raise PaperError(
            f"{main.name}: a figure or table is {float(high[1]):.0f} pt higher than its page, which"
            f" cuts it off ({high[2]} of its file)",
            remedy=f"break it in two, or make it smaller; see {build / f'{main.stem}.log'}",
        )
    wide = tuple(float(points) for points in _OVERFULL.findall(log))
    return Built(build / f"{main.stem}.pdf", runs, wide)


def _environment(build: Path, epoch: int) -> dict[str, str]:
    # TeX reads its own variables; what a user set for other documents must not decide this one.
    # None names the sources: $ { } , : in the name of their directory would mean something there.
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "SOURCE_DATE_EPOCH": str(epoch),
        "FORCE_SOURCE_DATE": "1",
        "max_print_line": "10000",
        "TEXMFOUTPUT": str(build),
        "openout_any": "p",
    }


def _latex(main: Path, build: Path, env: Mapping[str, str]) -> str:
    argv = [
        "pdflatex",
        "-no-shell-escape",
        "-interaction=nonstopmode",
        "-halt-on-error",
        "-file-line-error",
        f"-output-directory={build}",
        main.name,
    ]
    done = _run(argv, main.parent, env)
    log_path = build / f"{main.stem}.log"
    log = log_path.read_text(encoding="utf-8", errors="replace") if log_path.is_file() else ""
    if done.returncode:
        raise failure(argv[0], done.returncode, done.stdout, log, log_path)
    return log


def failure(
    program: str, returncode: int, printed: str, log: str, log_path: Path
) -> PaperError | DiskFullError:
    """Why TeX ended without a PDF, by what it printed and wrote into its log."""
    if returncode == -signal.SIGXFSZ or any(words in printed + log for words in _FULL):
        return DiskFullError(
            f"no space left for {program} in {log_path.parent}",
            "free space there, or put KIT_OUT on another disk, and start again",
        )
    if returncode < 0:
        return PaperError(
            f"{program} was ended by {signal.Signals(-returncode).name}", "kit paper, once more"
        )
    found = _ERROR.search(log) or _ERROR.search(printed)
    cause = found[0] if found else (printed.strip().rpartition("\n")[2] or "TeX failed")
    at = _AT.search(log, found.end()) if found else None
    where = f" ({at[1].strip()})" if at and at[1].strip() else ""
    return PaperError(f"{cause}{where}", remedy=f"mend it there; the whole log: {log_path}")


def _bibtex(main: Path, build: Path, env: Mapping[str, str]) -> None:
    for entries in main.parent.glob("*.bib"):
        shutil.copyfile(entries, build / entries.name)
    done = _run(["bibtex", main.stem], build, env)
    if done.returncode or "Warning--" in done.stdout:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        cause = next((line for line in lines if "Warning--" in line or "error" in line), lines[-1])
        raise PaperError(f"bibtex: {cause}", remedy=f"see {build / f'{main.stem}.blg'}")


def _run(argv: list[str], where: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, cwd=where, env=dict(env), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise PaperError(f"{argv[0]} was still at it after {_TIMEOUT_S} s") from error
