"""`kit import`: files of other benchmark tools under this kit's definitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from tabulate import tabulate

from analysis.importing.foreign import ForeignRun
from analysis.importing.tables import contents_table, foreign_definitions_table
from analysis.table import Table, as_object
from kit.options import json_option
from kit.output import echo, print_json
from kit.parts import Parts

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=Parts)
def command() -> None:
    """Read a file of another benchmark tool and apply this kit's definitions to it.

    What is read stays foreign: it never becomes a record. What the file does not say is missing.

    \b
    Example:
      kit import vllm-bench tests/fixtures/foreign/vllm-bench.json --definitions
      kit import aiperf tests/fixtures/foreign/aiperf --definitions --json
    """


def _definitions_option(function: F) -> F:
    return click.option(
        "--definitions", is_flag=True, help="Every tool's latency quantities over its requests."
    )(function)


@command.command("vllm-bench")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_definitions_option
@json_option
def vllm_bench(file: Path, definitions: bool, as_json: bool) -> None:
    """Read what vllm bench serve --save-result --save-detailed wrote.

    \b
    Example:
      kit import vllm-bench tests/fixtures/foreign/vllm-bench.json --definitions
    """
    from analysis.importing.vllm_bench import read_vllm_bench

    if _there(file).is_dir():
        raise click.BadParameter(f"{file} is a directory; name the file that was saved")
    _show(read_vllm_bench(file), definitions, as_json)


@command.command("aiperf")
@click.argument("path", type=click.Path(path_type=Path))
@_definitions_option
@json_option
def aiperf(path: Path, definitions: bool, as_json: bool) -> None:
    """Read what aiperf profile exported: raw records (--export-level raw), else metric records.

    PATH is one of its JSONL files, or the directory of artifacts.

    \b
    Example:
      kit import aiperf tests/fixtures/foreign/aiperf --definitions
    """
    from analysis.importing.aiperf import read_aiperf

    _show(read_aiperf(_there(path)), definitions, as_json)


def _there(path: Path) -> Path:
    if not path.exists():
        raise click.BadParameter(f"{path} does not exist")
    if not (path.is_file() or path.is_dir()):
        raise click.BadParameter(f"{path} is neither a file nor a directory")  # it may never end
    return path


def _show(run: ForeignRun, definitions: bool, as_json: bool) -> None:
    tables = [contents_table(run)]
    if definitions:
        tables.append(foreign_definitions_table(run))
    if as_json:
        print_json(
            {
                "foreign": True,
                "tool": run.tool,
                "file": run.file,
                "digest": str(run.digest),
                "model": run.model,
                "tables": [as_object(table) for table in tables],
            }
        )
        return
    for table in tables:
        echo(_text(table))
    for note in tables[-1].notes:
        echo(note)


def _text(table: Table) -> str:
    head = [column.heading for column in table.columns]
    grid = tabulate(table.rows, head, tablefmt="simple", disable_numparse=True)
    return f"{table.title}\n\n{grid}\n"
