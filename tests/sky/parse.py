"""Have SkyPilot read the tasks that come by standard input; run in an environment of its own.

`make test-sky` makes that environment: SkyPilot brings a hundred packages, which no test of the kit
is to depend on.
"""

from __future__ import annotations

import copy
import inspect
import json
import sys
from typing import Any

import sky
from sky import ClusterStatus, jobs
from sky.exceptions import ClusterNotUpError
from sky.jobs.state import ManagedJobStatus
from sky.schemas.api.responses import ManagedJobRecord


def main() -> int:
    told = json.load(sys.stdin)
    check_calls(told["ended"])
    documents: list[dict[str, Any]] = told["tasks"]
    for document in documents:
        task = sky.Task.from_yaml_config(copy.deepcopy(document))  # it empties what it reads
        (resources,) = task.resources
        want = document["resources"]
        assert resources.use_spot == want["use_spot"]
        assert resources.disk_size == want["disk_size"]
        assert resources.memory == want["memory"]
        asked = want.get("accelerators")
        got = resources.accelerators
        assert (f"{next(iter(got))}:{next(iter(got.values()))}" if got else None) == asked
        if "image_id" in want:
            assert list(resources.image_id.values()) == [want["image_id"]]
        assert resources.job_recovery["recover_on_exit_codes"] == [52]
        assert task.run == document["run"]
        assert list(task.storage_mounts) == ["/kit/bucket"]
        again = sky.Task.from_yaml_config(task.to_yaml_config())
        assert again.run == task.run
        print(f"{task.name}: read by SkyPilot {sky.__version__}")
    spoilt: dict[str, Any] = {
        **documents[0],
        "resources": {**documents[0]["resources"], "acelerators": "L4:1"},
    }
    try:
        sky.Task.from_yaml_config(spoilt)
    except ValueError:
        return 0
    print("SkyPilot read a key that it does not have: its validation proves nothing here")
    return 1


def check_calls(ended: list[str]) -> None:
    """What kit/sky/cloud.py calls is there, with the arguments it is given."""
    wanted = {
        jobs.launch: {"name"},
        jobs.queue_v2: {"refresh", "job_ids", "name_match"},
        jobs.cancel: {"job_ids", "graceful"},
        sky.get: set(),
        sky.stream_and_get: set(),
    }
    for function, arguments in wanted.items():
        assert arguments <= set(inspect.signature(function).parameters), function
    assert ClusterNotUpError("", ClusterStatus.STOPPED).cluster_status is sky.ClusterStatus.STOPPED
    assert {"job_id", "job_name", "status"} <= set(ManagedJobRecord.model_fields)
    terminal = {status.value for status in ManagedJobStatus.terminal_statuses()}
    assert set(ended) == terminal, (ended, terminal)


if __name__ == "__main__":
    sys.exit(main())
