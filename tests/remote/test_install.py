"""From carried parts to a run that can be started, without a network, however often it is tried."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from called_kit import outcomes, tiny_plan

from kit.bundle.build import build
from kit.bundle.host_list import read_host_list
from kit.engine.uv_process import uv_binary
from kit.planning.plan_file import load_plan
from records import bundle, canonical
from records.bundle import read_manifest
from records.cache_listing import WARM, CacheListing
from records.decode import from_object, to_object
from records.digest import Digest
from records.errors import (
    BindingError,
    BundleDamagedError,
    BundleIncompleteError,
    FormatError,
    HostUnfitError,
    PlanError,
    ProvisionError,
)
from records.job import EngineOnHost, Job
from records.run_directory import RunDirectory
from remote.binding import binding_of
from remote.install.carried_cache import pack
from tests.bundle_maker import (
    HERE,
    MODEL_FILE,
    ROOT,
    SALT,
    Project,
    host_with,
    make_project,
    silent,
    start_install,
)
from tests.sealed_run import Shape, make_run

TinyWheel = Callable[..., Path]
ALPHA = b"WORD = 'carried'\ndef main(): print(WORD)\n"


@pytest.fixture
def project(tmp_path: Path, tiny_wheel: TinyWheel, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A lock of one wheel, and no installer: pip does it."""
    wheel = tiny_wheel("alpha", {"alpha/__init__.py": ALPHA}, data=False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return make_project(tmp_path, {"alpha": wheel}, None)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The host's interpreter: an environment with pip and nothing else."""
    directory = tmp_path_factory.mktemp("host") / "env"
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    return str(directory / "bin" / "python")


@pytest.fixture
def carry(tmp_path: Path, project: Project) -> Path:
    """The bundle."""
    project.build(tmp_path / "carry", part_bytes=1000)
    return tmp_path / "carry"


def job_in(root: Path) -> Job:
    return from_object(Job, canonical.decode((root / bundle.JOB).read_bytes()))


def word(python: str, site: Path) -> str:
    argv = [python, "-c", "import alpha; alpha.main()"]
    return subprocess.check_output(argv, env={"PYTHONPATH": str(site)}, text=True).strip()


def test_a_bundle_is_installed_and_says_how_to_start(
    tmp_path: Path, carry: Path, python: str
) -> None:
    root = tmp_path / "deep" / "root"
    done = start_install(carry, root, "--client-cpus", "0", python=python)
    assert done.returncode == 0, done.stderr
    job = job_in(root)
    argv = [python, "-I", "-S", str(root / "harness.pyz"), "run", str(root / "job.json")]
    assert shlex.split(done.stdout) == ["env", "-u", "PYTHONDONTWRITEBYTECODE", *argv]
    assert "distributions can be bound, the host's included" in done.stderr
    assert word(python, root / "site") == "carried"
    assert list((root / "site" / "alpha" / "__pycache__").glob("*.pyc"))
    assert binding_of([root / "site"]).distributions[0].name == "alpha"
    assert (root / "models" / "tiny" / "config.json").read_bytes() == MODEL_FILE
    assert job.models["tiny"].path == str(root / "models" / "tiny")
    assert job.run_directory == str(root / "runs" / job.run_id)
    assert job.scratch == str(root / "scratch")
    assert job.engine.launcher[0] == python
    assert job.engine.env == {"PYTHONPATH": str(root / "site")}
    assert job.engine.site_directories[0] == str(root / "site")
    assert job.engine.site_directories[1].endswith("site-packages")
    assert (job.client_cpus, job.engine_cpus, job.host_salt) == ((0,), (), SALT)
    assert "@" not in (root / "job.json").read_text()


def test_the_same_command_again_keeps_everything_and_the_run(
    tmp_path: Path, carry: Path, python: str
) -> None:
    root = tmp_path / "root"
    assert start_install(carry, root, python=python).returncode == 0
    first = job_in(root)
    stamp = (root / "site" / "alpha" / "__init__.py").stat().st_ctime_ns
    harness = (root / bundle.HARNESS).stat().st_ino
    again = start_install(carry, root, "--json", python=python)
    assert json.loads(again.stdout)["run_id"] == first.run_id
    assert "installed already" in again.stderr
    assert job_in(root) == first
    assert (root / "site" / "alpha" / "__init__.py").stat().st_ctime_ns == stamp
    assert (root / bundle.HARNESS).stat().st_ino == harness  # it may be running
    assert start_install(carry, root, "--new-run", python=python).returncode == 0
    second = job_in(root)
    assert second.run_id != first.run_id
    part = start_install(carry, root, "--blocks", "2", python=python)
    assert "so this is another run" in part.stderr
    assert (job_in(root).blocks, second.blocks) == ((2,), ())


def test_parts_may_arrive_one_by_one(tmp_path: Path, carry: Path, python: str) -> None:
    here, root = tmp_path / "here", tmp_path / "root"
    here.mkdir()
    names = [part.name for part in read_manifest(carry).parts]
    for name in (bundle.STARTER, bundle.MANIFEST, bundle.HARNESS, bundle.JOB):
        shutil.copy(carry / name, here)
    missing = set(names)
    for name in reversed(names):
        done = start_install(here, root, python=python)
        assert done.returncode == BundleIncompleteError.exit_code
        assert all(other in done.stderr for other in missing)
        assert not root.exists()
        shutil.copy(carry / name, here)
        missing.remove(name)
    assert start_install(here, root, python=python).returncode == 0
    assert word(python, root / "site") == "carried"


def test_nothing_is_unpacked_from_a_bundle_with_a_damaged_part(
    tmp_path: Path, carry: Path, python: str
) -> None:
    part = carry / read_manifest(carry).parts[-1].name
    whole = part.read_bytes()
    part.write_bytes(b"\0" + whole[1:-1] + bytes([whole[-1] ^ 255]))
    done = start_install(carry, tmp_path / "root", python=python)
    assert done.returncode == BundleDamagedError.exit_code
    assert f"error: {part.name}: got {len(whole)} bytes, sha256:" in done.stderr
    assert f"carry {part.name} anew" in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "root").exists()
    part.write_bytes(whole)
    assert start_install(carry, tmp_path / "root", python=python).returncode == 0


def test_a_changed_harness_never_runs(tmp_path: Path, carry: Path, python: str) -> None:
    with (carry / bundle.HARNESS).open("ab") as file:
        file.write(b"!")
    done = start_install(carry, tmp_path / "root", python=python)
    assert done.returncode == BundleDamagedError.exit_code
    assert "harness.pyz: got sha256:" in done.stderr
    (carry / bundle.MANIFEST).unlink()
    done = start_install(carry, tmp_path / "root", python=python)
    assert done.returncode == BundleIncompleteError.exit_code
    assert "manifest.json" in done.stderr


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"files": []}', '{"files": {}}', "null", "[" * 99999]
)
def test_what_is_no_manifest_is_told_without_a_traceback(
    tmp_path: Path, carry: Path, python: str, text: str
) -> None:
    (carry / bundle.MANIFEST).write_text(text)
    done = start_install(carry, tmp_path / "root", python=python)
    assert done.returncode == BundleDamagedError.exit_code
    assert done.stderr.startswith("error: manifest.json: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("below", ["", "deep"])
def test_a_root_that_is_a_file_is_refused(
    tmp_path: Path, carry: Path, python: str, below: str
) -> None:
    (tmp_path / "file").write_text("")
    done = start_install(carry, tmp_path / "file" / below, python=python)
    assert done.returncode == HostUnfitError.exit_code
    assert "Not a directory" in done.stderr
    assert "try: name another --root" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("option", "code", "told"),
    [
        (("--blocks", "99"), FormatError.exit_code, "blocks 99 of plan"),
        (("--blocks", "0"), FormatError.exit_code, "blocks 0 of plan"),
        (("--blocks", "x"), PlanError.exit_code, "not a list of numbers"),
        (("--ends-in", "-5"), 2, "--ends-in: must be 0 to "),
        (("--ends-in", "1" * 20), 2, "--ends-in: must be 0 to "),
        (("--ends-in", "soon"), 2, "--ends-in: must be 0 to "),
    ],
)
def test_an_option_that_cannot_be_is_refused_before_anything_is_installed(
    tmp_path: Path, carry: Path, python: str, option: tuple[str, str], code: int, told: str
) -> None:
    done = start_install(carry, tmp_path / "root", *option, python=python)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert not (tmp_path / "root").exists()


def test_another_bundle_than_the_named_one_is_refused(
    tmp_path: Path, carry: Path, python: str
) -> None:
    digest = str(read_manifest(carry).digest)
    wrong = start_install(carry, tmp_path / "root", "--bundle", "sha256:" + "0" * 64, python=python)
    assert wrong.returncode == BundleDamagedError.exit_code
    assert digest in wrong.stderr
    right = start_install(carry, tmp_path / "root", "--bundle", digest, python=python)
    assert right.returncode == 0


def test_what_was_stopped_or_damaged_is_made_again(
    tmp_path: Path, carry: Path, python: str
) -> None:
    root = tmp_path / "root"
    assert start_install(carry, root, python=python).returncode == 0
    (root / "installed.json").unlink()  # as a kill before the last step leaves it
    (root / "site" / "half").write_text("")
    (root / "models" / "tiny" / "config.json").write_text("{}")
    (wheel,) = (root / "wheels").glob("alpha*")
    stamp = wheel.stat().st_ino
    done = start_install(carry, root, python=python)
    assert done.returncode == 0, done.stderr
    assert "removing" in done.stderr
    assert not (root / "site" / "half").exists()
    assert (root / "models" / "tiny" / "config.json").read_bytes() == MODEL_FILE
    assert wheel.stat().st_ino == stamp  # it was whole, and stayed
    assert word(python, root / "site") == "carried"


def test_uv_is_carried_and_does_the_same(
    tmp_path: Path, tiny_wheel: TinyWheel, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = {"uv-1.0.data/scripts/uv": uv_binary().read_bytes()}
    wheels = tiny_wheel("alpha", {"alpha/__init__.py": ALPHA}), tiny_wheel("uv", program)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels[0].parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    project = make_project(tmp_path, {"alpha": wheels[0]}, wheels[1])
    project.build(tmp_path / "carry", part_bytes=10_000_000)
    done = start_install(tmp_path / "carry", tmp_path / "root", python=python)
    assert done.returncode == 0, done.stderr
    assert "with uv" in done.stderr
    site = tmp_path / "root" / "site"
    assert word(python, site) == "carried"
    assert binding_of([site]).verified_files > 3
    assert (site / "lib" / "libalpha.so").is_file()
    assert (site / "alpha-1.0.dist-info" / "INSTALLER").read_text().strip() == "uv"


def test_a_wheel_that_cannot_be_installed_is_told_with_the_installers_words(
    tmp_path: Path, tiny_wheel: TinyWheel, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tiny_wheel("alpha", {"alpha-1.0.dist-info/x": b"", "alpha/__init__.py": ALPHA})
    broken = wheel.with_name("beta-1.0-py3-none-any.whl")  # its name and its inside differ
    shutil.copy(wheel, broken)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    project = make_project(tmp_path, {"alpha": wheel}, None)
    store = project.home.path / "wheels"
    project.build(tmp_path / "carry")
    (stored,) = store.glob("*/alpha*.whl")
    stored.rename(stored.with_name(broken.name))
    project.build(tmp_path / "carry")
    done = start_install(tmp_path / "carry", tmp_path / "root", python=python)
    assert done.returncode == ProvisionError.exit_code
    assert "pip install failed" in done.stderr
    assert not (tmp_path / "root" / "installed.json").exists()


def test_another_host_than_the_bundle_was_made_for_is_refused(
    tmp_path: Path, project: Project, python: str
) -> None:
    listed = subprocess.check_output(
        [python, "-I", "-S", str(project.build(tmp_path / "carry").directory / "harness.pyz"),
         "host", "--python", python], text=True,
    )  # fmt: skip
    (tmp_path / "host.txt").write_text(listed)
    host = read_host_list(tmp_path / "host.txt")
    assert host.target.python == HERE
    assert "pip" in host.have
    _edit_manifest(tmp_path / "carry", relies_on=[{"name": "absent", "version": "1.0"},
                                                  {"name": "pip", "version": "0.1"}])  # fmt: skip
    done = start_install(tmp_path / "carry", tmp_path / "root", python=python)
    assert done.returncode == HostUnfitError.exit_code
    assert "lacks absent==1.0" in done.stderr
    _edit_manifest(tmp_path / "carry", relies_on=[{"name": "pip", "version": "0.1"}])
    noted = start_install(tmp_path / "carry", tmp_path / "root", python=python)
    assert noted.returncode == 0, noted.stderr
    assert f"note: the host has pip {host.have['pip']}; the bundle was made against 0.1" in (
        noted.stderr
    )
    _edit_manifest(
        tmp_path / "carry", target={"glibc": "9.1", "machine": "riscv64", "python": "3.1"}
    )
    done = start_install(tmp_path / "carry", tmp_path / "root", python=python)
    assert done.returncode == HostUnfitError.exit_code
    for words in ("the wheels are for 3.1", "for riscv64", "the wheels need 9.1"):
        assert words in done.stderr


def test_a_host_whose_packages_cannot_be_bound_is_told_before_the_run(
    tmp_path: Path, carry: Path, python: str
) -> None:
    (tmp_path / "packages" / "old.egg-info").mkdir(parents=True)
    site = ("--host-site", str(tmp_path / "packages"))
    done = start_install(carry, tmp_path / "root", *site, python=python)
    assert done.returncode == BindingError.exit_code
    assert "old.egg-info" in done.stderr
    assert not (tmp_path / "root" / "job.json").exists()


def _edit_manifest(carry: Path, **changes: object) -> None:
    value = canonical.decode((carry / bundle.MANIFEST).read_bytes())
    (carry / bundle.MANIFEST).write_bytes(canonical.encode({**value, **changes}))


def test_a_plan_runs_from_an_installed_bundle_to_its_seal(
    tmp_path: Path, project: Project, python: str
) -> None:
    (tmp_path / "tiny.toml").write_text(tiny_plan())
    plan = load_plan(tmp_path / "tiny.toml")
    build(project.home, [plan], None, 4000, tmp_path / "carry", print)
    done = start_install(tmp_path / "carry", tmp_path / "root", python=python)
    assert done.returncode == 0, done.stderr
    subprocess.run(shlex.split(done.stdout), check=True, capture_output=True, timeout=300)
    job = job_in(tmp_path / "root")
    run = RunDirectory(Path(job.run_directory))
    assert run.is_sealed
    assert outcomes(run) == ["completed"] * 2


def test_the_starter_is_python_3_10_with_its_standard_library_alone() -> None:
    tree = ast.parse((ROOT / "kit" / "bundle" / "starter.py").read_bytes(), feature_version=(3, 10))
    modules = {
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert {str(module).partition(".")[0] for module in modules} <= sys.stdlib_module_names
    codes = {"_INCOMPLETE": BundleIncompleteError, "_DAMAGED": BundleDamagedError}
    line = f"{', '.join(codes)} = {', '.join(str(e.exit_code) for e in codes.values())}"
    assert line in (ROOT / "kit" / "bundle" / "starter.py").read_text()


def filled_cache(project: Project, root: Path, out: Path) -> CacheListing:
    """What a host packs after a run of the project's plan, whose cache holds one kernel."""
    run_id = "20261130T000000Z-sm90-pilot-abcdef"
    run = make_run(root / "runs" / run_id, project.plan, Shape())
    engine = EngineOnHost("installed", ("python",), (), {}, "lock", Digest.of(b"lock"))
    job = Job(run_id, project.plan, engine, {}, str(run.path), str(root / "scratch"), SALT)
    (root / bundle.JOB).write_bytes(canonical.encode(to_object(job)))
    (root / "scratch" / WARM).mkdir(parents=True)
    (root / "scratch" / WARM / "kernel.so").write_bytes(b"compiled")
    return pack(root, out, 1 << 20, lambda _line: None)


def test_a_carried_cache_is_put_in_its_place_for_a_new_run_alone(
    tmp_path: Path, project: Project, python: str
) -> None:
    home, root = tmp_path / "cache", tmp_path / "root"
    listing = filled_cache(project, tmp_path / "filled", home)
    built = build(project.home, [project.plan], host_with(), 1000, tmp_path / "carry", silent, home)
    assert [c.path for c in built.manifest.below("cache")] == [
        "cache/cache.json",
        "cache/cache-000",
    ]
    done = start_install(tmp_path / "carry", root, "--ends-in", "900", python=python)
    assert done.returncode == 0, done.stderr
    first = job_in(root)
    assert first.cache == listing.binding
    # The seconds count from the command's start: installing takes of them.
    assert 1_700_000_000 < first.ends_unix_s - 900 <= (root / "wheels").stat().st_mtime
    assert "some of it is compiled again" in done.stderr  # it was filled below another root
    kernel = root / "scratch" / WARM / "kernel.so"
    kernel.write_bytes(b"compiled, and more")
    again = start_install(tmp_path / "carry", root, python=python)
    assert again.returncode == 0, again.stderr
    assert (job_in(root), kernel.read_bytes()) == (first, b"compiled, and more")
    later = start_install(tmp_path / "carry", root, "--ends-in", "9000", python=python)
    assert later.returncode == 0, later.stderr
    assert (job_in(root).run_id, job_in(root).cache) == (first.run_id, first.cache)
    assert job_in(root).ends_unix_s > first.ends_unix_s
    assert start_install(tmp_path / "carry", root, "--new-run", python=python).returncode == 0
    assert kernel.read_bytes() == b"compiled"


def test_a_cache_that_lost_a_byte_on_its_way_home_is_not_packed(
    tmp_path: Path, project: Project
) -> None:
    home = tmp_path / "cache"
    filled_cache(project, tmp_path / "filled", home)
    (home / "cache-000").write_bytes((home / "cache-000").read_bytes()[:-1])
    with pytest.raises(BundleDamagedError, match="cache-000: got"):
        build(project.home, [project.plan], host_with(), 1000, tmp_path / "carry", print, home)


def test_what_is_installed_has_one_time_so_that_nothing_counts_as_newer_than_a_cache(
    tmp_path: Path, carry: Path, python: str
) -> None:
    root = tmp_path / "root"
    assert start_install(carry, root, python=python).returncode == 0
    sources = [p for p in (root / "site").rglob("*") if p.is_file() and p.suffix != ".pyc"]
    assert {path.stat().st_mtime_ns for path in sources} == {1_577_836_800 * 10**9}
