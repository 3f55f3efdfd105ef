"""One wheel has one binding, wherever and by whatever it was installed; a changed byte has none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from hypothesis import given
from hypothesis import strategies as st

import remote.record_file
from records.digest import Digest
from records.errors import BindingError
from records.job import EngineOnHost, ModelOnHost
from remote.binding import (
    bind_engine,
    bind_models,
    binding_of,
    binding_text,
    site_directories,
)
from remote.record_file import canonical_text, parse_record, record_digest

TinyWheel = Callable[..., Path]
HASH = "sha256=" + "A" * 43


def uv_run(*arguments: str | Path) -> None:
    subprocess.run([uv.find_uv_bin(), *map(str, arguments)], check=True, capture_output=True)


def environment(directory: Path, *wheels: Path) -> Path:
    uv_run("venv", "--python", sys.executable, directory)
    python = directory / "bin" / "python"
    uv_run("pip", "install", "--no-index", "--no-deps", "--python", python, *wheels)
    return python


@pytest.fixture
def wheels(tiny_wheel: TinyWheel) -> list[Path]:
    return [
        tiny_wheel("alpha", {"alpha/__init__.py": b"def main(): pass\n", 'alpha/a "b", c': b"x"}),
        tiny_wheel(
            "beta", {"beta/__init__.py": b"", "beta/__init__.cpython-311.pyc": b"stray"}, data=False
        ),
    ]


@pytest.fixture
def site(tmp_path: Path, wheels: list[Path]) -> Path:
    (found,) = site_directories(environment(tmp_path / "env", *wheels))
    return found


def test_place_and_installer_do_not_change_the_binding(tmp_path: Path, wheels: list[Path]) -> None:
    first = environment(tmp_path / "one", *wheels)
    second = environment(tmp_path / "deeper" / "two", *reversed(wheels))
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "three")], check=True
    )
    third = tmp_path / "three" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(third), "install"]
    quiet = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, *quiet, *map(str, wheels)], check=True)
    first_digest, second_digest, third_digest = (
        binding_of(site_directories(python)).digest for python in (first, second, third)
    )
    assert first_digest == second_digest == third_digest


def test_directories_for_pythonpath_can_be_bound(
    tmp_path: Path, wheels: list[Path], site: Path
) -> None:
    target = tmp_path / "for-pythonpath"
    options = ["--no-index", "--no-deps", "--python", sys.executable, "--target", str(target)]
    uv_run("pip", "install", *options, *wheels)
    alpha, beta = binding_of([target]).distributions
    assert (alpha.name, beta.name) == ("alpha", "beta")
    assert (
        beta == binding_of([site]).distributions[1]
    )  # alpha has a file outside its site directory


def test_the_binding_covers_names_versions_and_records(site: Path) -> None:
    binding = binding_of([site])
    assert binding.digest == Digest.of(binding_text(binding.distributions))
    lines = binding_text(binding.distributions).decode().splitlines()
    assert lines[0] == "kit-binding 1"
    assert [line.split()[0] for line in lines[1:]] == ["alpha==1.0", "beta==1.0"]


def test_the_shell_recipe_of_the_docstring_agrees(site: Path) -> None:
    recipe = re.search(
        r"export LC_ALL=C;.*sha256sum$", remote.record_file.__doc__ or "", re.S | re.M
    )
    assert recipe is not None
    for name, distribution in zip(("alpha", "beta"), binding_of([site]).distributions, strict=True):
        done = subprocess.run(
            ["bash", "-c", recipe[0]],
            cwd=site / f"{name}-1.0.dist-info",
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split()[0] == distribution.record_digest.hex


@pytest.mark.parametrize("relative", ["alpha/__init__.py", "../../libalpha.so", "beta/__init__.py"])
def test_a_changed_file_is_named_with_what_it_should_be(site: Path, relative: str) -> None:
    path = Path(os.path.normpath(site / relative))
    want = Digest.of(path.read_bytes()).hex
    path.write_bytes(path.read_bytes() + b"#")
    with pytest.raises(BindingError) as caught:
        binding_of([site])
    assert str(path) in caught.value.message
    assert want in caught.value.message
    assert Digest.of(path.read_bytes()).hex in caught.value.message


def test_a_missing_file_is_named(site: Path) -> None:
    (site / "alpha" / "__init__.py").unlink()
    with pytest.raises(BindingError, match=r"alpha/__init__\.py: No such file"):
        binding_of([site])


def test_an_edited_record_changes_the_digest_even_where_the_files_agree(site: Path) -> None:
    before = binding_of([site]).digest
    (site / "alpha" / "__init__.py").write_bytes(b"def main(): return 1\n")
    digest = subprocess.run(
        ["sh", "-c", "openssl dgst -sha256 -binary | base64 | tr '+/' '-_' | tr -d '=\\n'"],
        input=b"def main(): return 1\n",
        capture_output=True,
        check=True,
    ).stdout.decode()
    record = site / "alpha-1.0.dist-info" / "RECORD"
    text = re.sub(
        r"^(alpha/__init__\.py),[^,]*", rf"\1,sha256={digest}", record.read_text(), flags=re.M
    )
    record.write_text(text)
    assert binding_of([site]).digest != before


def test_compiled_bytecode_does_not_count(site: Path) -> None:
    before = binding_of([site])
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(site)], check=True)
    (site / "beta" / "__init__.cpython-311.pyc").write_bytes(b"compiled anew")
    after = binding_of([site])
    assert after == before


def test_files_that_no_record_lists_are_named(site: Path) -> None:
    (site / "sitecustomize.py").write_text("")
    assert "sitecustomize.py" in binding_of([site]).unowned


@pytest.mark.parametrize("name", ["RECORD", "METADATA"])
def test_a_distribution_without_its_metadata_is_an_error(site: Path, name: str) -> None:
    (site / "beta-1.0.dist-info" / name).unlink()
    with pytest.raises(BindingError, match=f"beta-1.0.dist-info has no .*{name}"):
        binding_of([site])


def test_a_distribution_of_the_older_kind_is_an_error(site: Path) -> None:
    (site / "gamma-1.0.egg-info").mkdir()
    with pytest.raises(BindingError, match=r"gamma-1\.0\.egg-info"):
        binding_of([site])


def test_an_interpreter_that_does_not_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BindingError, match="does not run"):
        site_directories(tmp_path / "python")


def test_the_event_names_every_distribution(site: Path) -> None:
    python = str(site.parents[2] / "bin" / "python")
    engine = EngineOnHost("wheels", (python, "-m", "x"), (str(site),), {}, "l", Digest.of(b""))
    event = bind_engine(engine, "before")
    assert event.digest == binding_of([site]).digest
    assert [d["name"] for d in event.facts["distributions"]] == ["alpha", "beta"]
    assert event.facts["verified_files"] > 0
    with Path(python).resolve().open("rb") as file:
        assert event.facts["interpreter"] == str(Digest.of_file(file))


def test_an_engine_without_distributions_has_a_binding(tmp_path: Path) -> None:
    engine = EngineOnHost("reference", (), (), {}, "", Digest.of(b""))
    assert bind_engine(engine, "before").digest == Digest.of(b"kit-binding 1\n")


def test_a_model_is_bound_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"{}")
    model = ModelOnHost(str(tmp_path), {"config.json": Digest.of(b"{}")})
    (event,) = bind_models({"m": model}, "before")
    assert event.files == model.files
    (tmp_path / "config.json").write_bytes(b"{ }")
    with pytest.raises(BindingError, match=r"config\.json: got .*, want"):
        list(bind_models({"m": model}, "after"))
    shutil.rmtree(tmp_path)
    with pytest.raises(BindingError, match="No such file"):
        list(bind_models({"m": model}, "after"))


@pytest.mark.parametrize("text", ["a,b\n", f"a,md5={'A' * 22},3\n", ",,\n", "a,sha256=A,1\n"])
def test_a_record_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(BindingError, match="RECORD of x, line 1"):
        parse_record(text, "x")


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("a/b.py", "a/b.py"),
        ("../../libx.so", "../libx.so"),
        ("../../../share/man/x.1", "../share/man/x.1"),
        ("../../../bin/x", None),
        ("bin/x", None),
        ("/somewhere/x.py", None),
        ("a/__pycache__/b.cpython-311.pyc", None),
        ("a-1.dist-info/direct_url.json", None),
        ("a-1.dist-info/entry_points.txt", "a-1.dist-info/entry_points.txt"),
        ("a/INSTALLER", "a/INSTALLER"),
    ],
)
def test_what_enters_the_canonical_text(path: str, canonical: str | None) -> None:
    expected = b"" if canonical is None else f"{canonical},{HASH}\n".encode()
    assert canonical_text(parse_record(f"{path},{HASH},1\n", "x")) == expected


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1), st.randoms())
def test_order_and_repetition_of_rows_do_not_count(names: list[str], random: object) -> None:
    lines = [f"{name},{HASH},1\r\n" for name in names]
    once = record_digest(parse_record("".join(sorted(set(lines))), "x"))
    assert record_digest(parse_record("".join(lines), "x")) == once
