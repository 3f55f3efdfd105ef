"""The command `kit`: one verb a file, loaded when it is called; every failure ends in a message.

Invariant: no traceback reaches the terminal. A KitError gives its message, its remedy and its exit
code, and so does what the operating system refused; anything else is a bug, gives exit code 70, and
leaves its traceback in logs/last-error.txt.
"""

from __future__ import annotations

import difflib
import importlib
import keyword
import os
import select
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, TextIO

import click

from kit.home import Home
from kit.output import echo, print_error
from kit.system_errors import as_kit_error
from records.errors import KitError

# The help stands here so that `kit --help` need not import every verb.
VERBS = {
    "plan": "Show plans: arms, order of boots, expected duration.",
    "calibrate": "What a host does to the client's time stamps.",
    "reproduce": "Run a plan, bring its records home, write the tables.",
    "run": "Start or resume a plan's run, and follow it.",
    "status": "Where each run stands.",
    "logs": "What a run's harness printed.",
    "stop": "Stop a run in order; it stays resumable.",
    "fetch-records": "Bring records into records/data, verified.",
    "close": "Close and seal an unfinished run whose host is gone for good.",
    "job": "Write harness and job for a host without a network.",
    "doctor": "Examine a host for a plan before anything is put there.",
    "hosts": "The hosts that were met over SSH, with the key that was accepted.",
    "bundle": "An engine bundle for hosts without a network: build, verify, install.",
    "images": "The locked container images; lock and verify them at a registry.",
    "models": "The locked models; verify those that stand here.",
    "analyze": "Tables from records.",
    "minutes": "What a run's time went to, and the share that was measured.",
    "figures": "Figures from records, each with its data beside it.",
    "paper": "The paper as PDF, each number a link to its records.",
    "report": "One page of what was measured: verdicts, figures, tables, traces.",
    "compare": "Verdicts: records against the published study, or against other records.",
    "audit": "Hold records, tables and claims to account.",
    "sign": "Sign a run's seal, or CHECKPOINT, with an SSH key.",
    "claims": "Every number that may be cited, recomputed from records.",
    "trace": "From a claim down to its records, or from a record up.",
    "finding": "Write or retract a finding.",
    "export": "Runs as Parquet, CSV, RO-Crate, in-toto statement, Zenodo metadata.",
    "import": "Files of other benchmark tools under this kit's definitions.",
    "compare-definitions": "Every tool's latency metrics, from the same records.",
    "version": "The version of this kit.",
}
INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
BUG = 70  # EX_SOFTWARE of sysexits.h


class _PipeBrokenError(Exception):
    """EPIPE. click itself would end the process on it, silently, with status 1."""


@contextmanager
def _pipes_kept() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _PipeBrokenError(str(error)) from error


class Verbs(click.Group):
    """A group that imports kit/commands/<verb>.py when the verb is used."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """As click does it; --help and --version print here."""
        with _pipes_kept():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """As click does it."""
        with _pipes_kept():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs in the order of a run."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The module's `command`."""
        if cmd_name not in VERBS:
            return None
        name = cmd_name.replace("-", "_")
        name += "_" if keyword.iskeyword(name) else ""
        module = importlib.import_module(f"kit.commands.{name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it; a mistyped verb names its neighbour, which click finds only in groups
        whose commands are loaded.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], VERBS, n=1)
            if not near:
                raise
            hint = f"{error.message} Did you mean {near[0]!r}?"
            raise click.UsageError(hint, error.ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of verbs, from VERBS alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from kit.commands.version import version_line  # reads the installed distributions

        echo(version_line())
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version of this kit.",
)  # fmt: skip
def cli() -> None:
    """Measure speculative decoding under FP8 on vLLM 0.29.0, and hold the figures to account.

    \b
    Example:
      kit reproduce                 run the default plan here and write its tables
      kit audit                     check every record and table
    """


class _Bugs:
    """Turns an unexpected exception into a short message, a file and exit code 70."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or error is None or issubclass(kind, SystemExit):
            return
        file = Home.find(os.environ).logs / "last-error.txt"
        text = "".join(traceback.format_exception(kind, error, trace))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            remedy = f"this is a bug; report it with {file}"
        except OSError as unwritten:
            remedy = (
                f"this is a bug; its traceback could not be kept ({unwritten}): "
                "repeat it with KIT_HOME=… naming a directory that can be written"
            )
        print_error(f"{kind.__name__}: {error}", remedy)
        raise SystemExit(BUG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    try:
        with _Bugs():
            return _run(argv)
    finally:
        _let_go(_streams())
    raise AssertionError("unreachable")


def _run(argv: Sequence[str] | None) -> int:
    try:
        result = cli.main(
            args=None if argv is None else list(argv), prog_name="kit", standalone_mode=False
        )
    except KitError as error:
        print_error(error.message, error.remedy)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        print_error("interrupted", "")
        return INTERRUPTED
    except OSError as error:
        known = as_kit_error(error, Home.find(os.environ))
        if known is None:
            raise
        print_error(known.message, known.remedy)
        return known.exit_code
    except _PipeBrokenError:
        if not _reader_gone(_streams()):
            raise  # a pipe of the kit's own
        return 0
    return result if isinstance(result, int) else 0


def _streams() -> tuple[TextIO, ...]:
    """stdout and stderr; Python has None where the caller closed one (`>&-`)."""
    both: tuple[TextIO | None, ...] = (sys.stdout, sys.stderr)
    return tuple(stream for stream in both if stream is not None)


def _reader_gone(streams: Iterable[TextIO]) -> bool:
    """Whether nobody reads any more what is written to one of these."""
    poll = select.poll()
    for stream in streams:
        with suppress(OSError, ValueError):  # a stream without a descriptor has no reader to lose
            poll.register(stream.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _let_go(streams: Iterable[TextIO]) -> None:
    """Drop what can no longer be written: else Python complains at exit, by a code of its own."""
    for stream in streams:
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
