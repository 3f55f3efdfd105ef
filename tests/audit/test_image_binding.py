"""A container's binding against the image lock that the run names: which digests fit together."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sealed_run import Shape

from audit.runner import audit
from records import schema
from records.digest import Digest

INDEX, MANIFEST, IMAGE = Digest("1" * 64), Digest("2" * 64), Digest("3" * 64)
OTHER = Digest("4" * 64)
LOCK = json.dumps(
    {
        "format": 1,
        "images": {
            "vllm-openai": {
                "index_digest": str(INDEX),
                "platforms": {
                    "linux/amd64": {"manifest_digest": str(MANIFEST), "image_id": str(IMAGE)},
                    "linux/arm64": {"manifest_digest": str(OTHER), "image_id": str(OTHER)},
                },
            }
        },
    }
).encode()
FACTS = {
    "index_digest": str(INDEX),
    "manifest_digest": str(MANIFEST),
    "image_id": str(IMAGE),
    "container_image": str(IMAGE),
}


def binding_codes(project: Any, digest: Digest, **facts: str) -> set[str]:
    """What the audit finds of a run that was bound so."""

    def edit(event: Any) -> Any:
        if not isinstance(event, schema.EngineBound):
            return event
        return replace(
            event,
            runtime="docker",
            digest=digest,
            lock="images.lock.json",
            lock_digest=Digest.of(LOCK),
            facts={**FACTS, **facts},
        )

    (project.root / "images" / "images.lock.json").write_bytes(LOCK)
    project.add_run("run-bound", Shape(edit=edit))
    found = audit(project.root, project.data).findings
    of_run = [f for f in found if "run-bound" in f.where.file]
    return {f.code for f in of_run if f.code.startswith("BIND")}


def test_the_locked_image_fits(project: Any) -> None:
    assert binding_codes(project, INDEX) == set()


def test_containerd_calls_the_image_by_its_manifest(project: Any) -> None:
    assert (
        binding_codes(project, INDEX, image_id=str(MANIFEST), container_image=str(MANIFEST))
        == set()
    )


@pytest.mark.parametrize("name", sorted(FACTS))
def test_any_other_digest_is_a_finding(project: Any, name: str) -> None:
    assert binding_codes(project, INDEX, **{name: str(OTHER)}) == {"BIND07"}


def test_the_binding_s_own_digest_is_that_of_the_index(project: Any) -> None:
    assert binding_codes(project, MANIFEST) == {"BIND07"}
