"""An image file is bound by its own digest, and by what it says it was built of."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from records.digest import Digest
from records.errors import BindingError
from records.image_digests import ImageDigests
from records.job import EngineOnHost, Sif
from remote.container import apptainer
from remote.engine.adapter import EngineSpec

IMAGE = ImageDigests(Digest.of(b"index"), Digest.of(b"manifest"), Digest.of(b"id"))
LABEL = "org.label-schema.usage.singularity.deffile.from"


def engine(tmp_path: Path, built_of: str | None) -> EngineOnHost:
    sif = tmp_path / "image.sif"
    sif.write_bytes(b"SIF")
    labels = {} if built_of is None else {LABEL: built_of}
    told = json.dumps({"data": {"attributes": {"labels": labels}}})
    program = tmp_path / "apptainer"
    program.write_text(
        f"#!/bin/sh\ncase $1 in inspect) echo '{told}';; *) echo version 1.3;; esac\n"
    )
    program.chmod(0o755)
    found = Sif(str(sif), Digest.of(b"SIF"), IMAGE, "docker.io")
    words = (str(program), "exec", str(sif), "python3")
    return EngineOnHost("apptainer", words, (), {}, "images.lock.json", Digest.of(b"l"), sif=found)


@pytest.mark.parametrize("built_of", [f"docker.io/a/b@{IMAGE.index}", f"b@{IMAGE.manifest}", None])
def test_the_file_and_its_origin(tmp_path: Path, built_of: str | None) -> None:
    bound = apptainer.bind(engine(tmp_path, built_of), "before")
    assert (bound.runtime, bound.digest) == ("apptainer", IMAGE.index)
    assert bound.facts["sif_digest"] == str(Digest.of(b"SIF"))
    assert bound.facts["built_of"] == (built_of or "absent")
    assert bound.facts["apptainer"] == "version 1.3"


def test_another_file_or_origin_or_none(tmp_path: Path) -> None:
    right = engine(tmp_path, None)
    assert right.sif is not None
    other = replace(right, sif=replace(right.sif, digest=Digest.of(b"other")))
    with pytest.raises(BindingError, match=f"got {Digest.of(b'SIF')}"):
        apptainer.bind(other, "before")
    with pytest.raises(BindingError, match="built of"):
        apptainer.bind(engine(tmp_path, f"x/y@{Digest.of(b'stranger')}"), "before")
    (tmp_path / "image.sif").unlink()
    with pytest.raises(BindingError, match="cannot be read"):
        apptainer.bind(right, "after")
    with pytest.raises(BindingError, match="names no image file"):
        apptainer.bind(replace(right, sif=None), "before")


def test_what_an_image_sets_for_itself_stays_the_images() -> None:
    spec = EngineSpec((), "/m", "m", "127.0.0.1", 1, (), (("VLLM_X", "1"),))
    host = {"PATH": os.defpath, "LD_LIBRARY_PATH": "/host/lib", "CUDA_VISIBLE_DEVICES": "2"}
    env = apptainer.environment(spec, host)
    assert "LD_LIBRARY_PATH" not in env
    assert (env["CUDA_VISIBLE_DEVICES"], env["VLLM_X"]) == ("2", "1")
