"""`kit job`."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path, PurePosixPath

import click

from kit.hosts.offline import OfflineHost, job_for
from kit.options import blocks_option, find_plan, home, json_option, plan_option, require_blocks_of
from kit.output import echo, print_json
from kit.planning import prompt_files
from kit.run.launch import build_harness, new_run_id
from records import canonical
from records.decode import to_object


@click.command()
@plan_option
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Directory to fill.")
@click.option("--root", type=PurePosixPath, required=True, help="Working directory on the host.")
@click.option("--python", type=PurePosixPath, required=True, help="The engine's Python there.")
@click.option(
    "--site", type=PurePosixPath, multiple=True, required=True,
    help="Directory of installed distributions there; repeat it, first found first.",
)  # fmt: skip
@click.option("--client-cpus", default="", help="Processors for the client, such as 14,15.")
@click.option("--engine-cpus", default="", help="Processors for the engine, such as 0-13.")
@blocks_option
@json_option
def command(
    plan_name: str,
    out: Path,
    root: PurePosixPath,
    python: PurePosixPath,
    site: tuple[PurePosixPath, ...],
    client_cpus: str,
    engine_cpus: str,
    blocks: tuple[int, ...],
    as_json: bool,
) -> None:
    """Write the harness and a job for a host that this machine cannot reach.

    The engine and the models get there by other means; kit bundle carries them too, to the same
    places below ROOT. Carry both files there and run: python3 -I -S harness.pyz run job.json. The
    same command continues a run that was stopped. Bring the run directory back and take it in with
    kit fetch-records --from.

    \b
    Example:
      kit job --plan sm90-pilot --out carry --root /root/kit --python /usr/bin/python3 \\
          --site /root/kit/site --client-cpus 14,15 --engine-cpus 0-13
    """
    here = home()
    plan = find_plan(here, plan_name)
    require_blocks_of(plan, blocks)
    host = OfflineHost(root, python, site, client_cpus, engine_cpus)
    run_id = new_run_id(plan, datetime.datetime.now(datetime.timezone.utc))
    archive, digest = build_harness(here)
    job = replace(job_for(here, plan, run_id, host, digest), blocks=blocks)
    out.mkdir(parents=True, exist_ok=True)
    (out / "harness.pyz").write_bytes(archive.read_bytes())
    (out / "job.json").write_bytes(canonical.encode(to_object(job)))
    prompts = list(prompt_files.files(here, plan))
    for source, name in prompts:
        (out / "prompts").mkdir(exist_ok=True)
        (out / "prompts" / name).write_bytes(source.read_bytes())
    if as_json:
        print_json({"run_id": run_id, "harness": str(digest), "directory": str(out)})
    else:
        echo(f"{run_id}: {out}/harness.pyz ({digest}), {out}/job.json")
        if prompts:
            echo(f"carry {out}/prompts to {job.prompts_directory}")
