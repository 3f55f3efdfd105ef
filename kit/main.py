"""The command `kit`: one verb a file, loaded when it is called; every failure ends in a message.

Invariant: no traceback reaches the terminal. A KitError gives its message, its remedy and its exit
code; anything else is a bug, gives exit code 70, and leaves its traceback in logs/last-error.txt.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

import click

from kit.home import Home
from kit.output import print_error
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
    "job": "Write harness and job for a host without a network.",
    "doctor": "Examine a host for a plan before anything is put there.",
    "bundle": "An engine bundle for hosts without a network: build, verify, install.",
    "images": "The locked container images; lock and verify them at a registry.",
    "models": "The locked models; verify those that stand here.",
    "analyze": "Tables from records.",
    "audit": "Hold records, tables and claims to account.",
    "sign": "Sign a run's seal, or CHECKPOINT, with an SSH key.",
    "claims": "Every number that may be cited, recomputed from records.",
    "trace": "From a claim down to its records, or from a record up.",
    "finding": "Write or retract a finding.",
    "compare-definitions": "Every tool's latency metrics, from the same records.",
    "version": "The version of this kit.",
}
INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it
BUG = 70  # EX_SOFTWARE of sysexits.h


class Verbs(click.Group):
    """A group that imports kit/commands/<verb>.py when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs in the order of a run."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The module's `command`."""
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"kit.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of verbs, from VERBS alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        from kit.commands.version import version_line  # reads the installed distributions

        click.echo(version_line())
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
        logs = Home.find(os.environ).logs
        logs.mkdir(parents=True, exist_ok=True)
        file = logs / "last-error.txt"
        file.write_text("".join(traceback.format_exception(kind, error, trace)), encoding="utf-8")
        print_error(f"{kind.__name__}: {error}", f"this is a bug; report it with {file}")
        raise SystemExit(BUG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    with _Bugs():
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
        except BrokenPipeError:
            # The reader has gone (`kit logs | head`); without this Python complains at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return result if isinstance(result, int) else 0
    raise AssertionError("unreachable")


if __name__ == "__main__":
    sys.exit(main())
