"""Print the tasks that the kit makes of its plans, as JSON, for SkyPilot itself to read."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from kit.docker.choice import DockerChoice
from kit.image_lock import LockedImage
from kit.planning.plan_file import load_plan
from kit.registry.resolve import Platform
from kit.sky.cloud_host import ENDED
from kit.sky.site import SkySite
from kit.sky.task_document import Carried, document
from records.digest import Digest

PLANS = Path(__file__).parents[2] / "kit" / "plans"


def main() -> None:
    image = LockedImage(
        "docker.io", "vllm/vllm-openai", "v0.29.0", Digest.of(b"index"), False, {}, "python3"
    )
    platform = Platform(Digest.of(b"manifest"), Digest.of(b"id"), 9 << 30, 30, "12.9")
    choice = DockerChoice(image, platform, "docker.io", "images.lock.json", Digest.of(b"lock"))
    here = str(Path(__file__))
    carried = Carried(
        {"/kit/harness.pyz": here, "/kit/provision": str(PLANS)},
        "/kit/job.json",
        "/kit/harness.pyz",
        ("python3", "-I", "/kit/provision", "/kit/asked.json", "/kit/answer.json"),
    )
    l4 = load_plan(PLANS / "l4-confounds.toml")
    demo = load_plan(PLANS / "demo.toml")
    site = SkySite("kit-records")
    gcs = replace(site, store="gcs", spot=False, accelerators="L40S:2")
    tasks = [
        document(l4, "kit-l4-confounds-b1-0a1b2c", site, "", carried, choice),
        document(l4, "kit-l4-confounds-b2-0a1b2c", gcs, "gcp", carried, choice),
        document(demo, "kit-demo-b1-0a1b2c", site, "aws", carried, None),
    ]
    json.dump({"tasks": tasks, "ended": sorted(ENDED)}, sys.stdout)


if __name__ == "__main__":
    main()
