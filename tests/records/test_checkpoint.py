"""The checkpoint: grows by one run at a time, heals a stop, refuses an edit."""

from __future__ import annotations

import base64
import cProfile
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from records import checkpoint, merkle
from records.checkpoint import Checkpoint, Leaf, add_run, parse_runs, read_checkpoint, read_runs
from records.digest import Digest
from records.errors import ChainError, DiskFullError, FormatError

ROOT = Path(__file__).parents[2]
LEAVES = [Leaf(f"run-{i}", Digest.of(b"%d" % i)) for i in range(5)]


def _data(directory: Path, count: int) -> tuple[Path, Path]:
    for leaf in LEAVES[:count]:
        assert add_run(directory, leaf)
    return directory / "RUNS", directory / "CHECKPOINT"


def _agrees(directory: Path, leaves: list[Leaf]) -> bool:
    return read_runs(directory) == tuple(leaves) and read_checkpoint(directory) == Checkpoint.of(
        leaves
    )


def test_the_three_lines() -> None:
    text = str(Checkpoint.of(LEAVES[:2]))
    origin, size, root, rest = text.split("\n")
    assert (origin, size, rest) == ("speculative-decoding-fp8/records", "2", "")
    lines = [f"{leaf.run_id} sha256:{leaf.seal.hex}".encode() for leaf in LEAVES[:2]]
    assert base64.b64decode(root).hex() == merkle.root(lines).hex
    assert Checkpoint.parse(text) == Checkpoint.of(LEAVES[:2])


@given(st.integers(0, 10**17), st.binary(min_size=32, max_size=32))
def test_a_checkpoint_survives_its_text(size: int, root: bytes) -> None:
    made = Checkpoint(size, Digest(root.hex()))
    assert Checkpoint.parse(str(made)) == made


@given(st.integers(0, 200), st.integers(0, 0x10FFFF))
def test_a_changed_character_is_refused_or_another_checkpoint(at: int, code: int) -> None:
    text = str(Checkpoint.of(LEAVES))
    changed = text[: at % len(text)] + chr(code) + text[at % len(text) + 1 :]
    if changed == text:
        return
    try:
        parsed = Checkpoint.parse(changed)
    except FormatError:
        return
    assert parsed != Checkpoint.of(LEAVES)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "three lines"),
        (str(Checkpoint.of(LEAVES))[:-1], "three lines"),
        (str(Checkpoint.of(LEAVES)) + "\n", "three lines"),
        (str(Checkpoint.of(LEAVES)).replace("\n", "\r\n"), "line 1"),
        (str(Checkpoint.of(LEAVES)).replace("speculative", "another"), "line 1"),
        (str(Checkpoint.of(LEAVES)).replace("\n5\n", "\n05\n"), "line 2"),
        (str(Checkpoint.of(LEAVES)).replace("\n5\n", "\n\u0665\n"), "line 2"),
        (str(Checkpoint.of(LEAVES)).replace("\n5\n", "\n" + "9" * 5000 + "\n"), "line 2"),
        (f"{checkpoint.ORIGIN}\n5\nAAAA\n", "line 3"),
        (f"{checkpoint.ORIGIN}\n5\n\u00e4\n", "line 3"),
        (f"{checkpoint.ORIGIN}\n5\n{'A' * 42}B=\n", "line 3"),
    ],
)
def test_what_is_not_a_checkpoint(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        Checkpoint.parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{LEAVES[0]}", "no line end"),
        (f"{LEAVES[0]}\n\n", "line 2"),
        (f"{LEAVES[0]}\r\n", "line 1"),
        (f"{LEAVES[0]}\n{LEAVES[1]} \n", "line 2"),
        (f"../x {LEAVES[0].seal}\n", "line 1"),
        (f"{LEAVES[0]}\n{LEAVES[1]}\n{LEAVES[0]}\n", "line 3: run run-0 for the second time"),
    ],
)
def test_what_is_not_a_list_of_runs(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        parse_runs(text)


@pytest.mark.parametrize("run_id", ["", "a b", "a/b", ".hidden", "a\n", "x" * 101, "é"])
def test_run_ids_that_would_break_the_list(run_id: str) -> None:
    with pytest.raises(FormatError):
        Leaf(run_id, LEAVES[0].seal)


def test_adding_runs_grows_the_list_and_only_that(tmp_path: Path) -> None:
    before = b""
    for count in range(1, 6):
        runs, _ = _data(tmp_path, 0)
        assert add_run(tmp_path, LEAVES[count - 1])
        assert runs.read_bytes().startswith(before)
        before = runs.read_bytes()
        assert _agrees(tmp_path, LEAVES[:count])
    assert sorted(os.listdir(tmp_path)) == ["CHECKPOINT", "RUNS"]  # noqa: PTH208


def test_adding_a_run_again_changes_nothing(tmp_path: Path) -> None:
    runs, point = _data(tmp_path, 3)
    before = runs.read_bytes(), point.read_bytes()
    for leaf in LEAVES[:3]:
        assert not add_run(tmp_path, leaf)
    assert (runs.read_bytes(), point.read_bytes()) == before


def test_another_seal_for_a_known_run_is_refused(tmp_path: Path) -> None:
    runs, point = _data(tmp_path, 3)
    before = runs.read_bytes(), point.read_bytes()
    with pytest.raises(ChainError, match=f"run-1 was sealed as {LEAVES[1].seal}, now it is"):
        add_run(tmp_path, Leaf("run-1", Digest.of(b"other")))
    assert (runs.read_bytes(), point.read_bytes()) == before


@pytest.mark.parametrize("known", [0, 1, 3])
@pytest.mark.parametrize("again", [True, False])
def test_a_stop_between_the_two_writes_is_completed(
    tmp_path: Path, known: int, again: bool
) -> None:
    runs, _ = _data(tmp_path, known)
    with runs.open("a") as file:
        file.write(f"{LEAVES[known]}\n")
    if again:
        assert not add_run(tmp_path, LEAVES[known])
        assert _agrees(tmp_path, LEAVES[: known + 1])
    else:
        assert add_run(tmp_path, LEAVES[known + 1])
        assert _agrees(tmp_path, LEAVES[: known + 2])


@pytest.mark.parametrize("known", [0, 2])
def test_a_stop_within_the_first_write_is_completed(tmp_path: Path, known: int) -> None:
    line = f"{LEAVES[known]}\n".encode()
    for cut in range(1, len(line)):
        with TemporaryDirectory(dir=tmp_path) as name:
            runs, _ = _data(Path(name), known)
            with runs.open("ab") as file:
                file.write(line[:cut])
            assert add_run(Path(name), LEAVES[known])
            assert _agrees(Path(name), LEAVES[: known + 1])


def test_a_stop_within_the_second_write_is_completed(tmp_path: Path) -> None:
    runs, point = _data(tmp_path, 2)
    with runs.open("a") as file:
        file.write(f"{LEAVES[2]}\n")
    (tmp_path / ".CHECKPOINT.new").write_bytes(point.read_bytes()[:10])
    assert not add_run(tmp_path, LEAVES[2])
    assert _agrees(tmp_path, LEAVES[:3])
    assert not (tmp_path / ".CHECKPOINT.new").exists()


@settings(max_examples=150)
@given(st.sampled_from(["RUNS", "CHECKPOINT"]), st.data())
def test_a_changed_byte_in_either_file_is_refused(name: str, data: st.DataObject) -> None:
    with TemporaryDirectory() as directory:
        _data(Path(directory), 3)
        path = Path(directory) / name
        whole = bytearray(path.read_bytes())
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(whole)
        with pytest.raises((ChainError, FormatError), match=name):
            add_run(Path(directory), LEAVES[3])
        assert path.read_bytes() == bytes(whole)


@pytest.mark.parametrize("edit", ["drop first", "drop two", "swap", "add two", "no checkpoint"])
def test_lists_that_disagree_with_the_checkpoint(tmp_path: Path, edit: str) -> None:
    runs, point = _data(tmp_path, 3)
    lines = runs.read_text().splitlines(keepends=True)
    if edit == "drop first":
        del lines[0]
    elif edit == "drop two":
        del lines[1:]
    elif edit == "swap":
        lines[0], lines[1] = lines[1], lines[0]
    elif edit == "add two":
        lines += [f"{leaf}\n" for leaf in LEAVES[3:]]
    else:
        point.unlink()
    runs.write_text("".join(lines))
    with pytest.raises(ChainError, match=r"disagree: got .*want root") as caught:
        add_run(tmp_path, Leaf("new", LEAVES[0].seal))
    assert "git checkout" in caught.value.remedy


def test_the_last_run_dropped_from_the_list_alone_is_refused(tmp_path: Path) -> None:
    runs, _ = _data(tmp_path, 3)
    runs.write_text("".join(runs.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(ChainError, match="disagree"):
        add_run(tmp_path, LEAVES[2])


def test_two_processes_lose_no_run(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from records.checkpoint import Leaf, add_run\nfrom records.digest import Digest\n"
        "for i in range(20):\n"
        "    add_run(Path(sys.argv[1]), Leaf(f'{sys.argv[2]}-{i}', Digest.of(b'%d' % i)))\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), name], cwd=ROOT)
        for name in ("a", "b")
    ]
    assert [w.wait() for w in writers] == [0, 0]
    leaves = read_runs(tmp_path)
    assert len(leaves) == 40
    assert read_checkpoint(tmp_path) == Checkpoint.of(leaves)


def test_no_space_leaves_what_was_there(tmp_path: Path) -> None:
    runs, point = _data(tmp_path, 2)
    before = runs.read_bytes(), point.read_bytes()
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from records.checkpoint import Leaf, add_run\nfrom records.digest import Digest\n"
        "from records.errors import DiskFullError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try:\n    add_run(Path(sys.argv[1]), Leaf('run-2', Digest.of(b'2')))\n"
        "except DiskFullError as error:\n    sys.exit(error.exit_code)\n"
    )
    limit = str(len(before[0]) + 30)
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path), limit], cwd=ROOT)
    assert ended.returncode == DiskFullError.exit_code
    assert runs.read_bytes().startswith(before[0])
    assert point.read_bytes() == before[1]
    assert add_run(tmp_path, LEAVES[2])
    assert _agrees(tmp_path, LEAVES[:3])


@pytest.mark.parametrize("edit", ["other list", "edited line", "emptied", "longer"])
def test_what_happened_between_two_additions_of_one_process_is_seen(
    tmp_path: Path, edit: str
) -> None:
    """What is remembered of RUNS is never taken for what RUNS is."""
    runs, point = _data(tmp_path, 3)
    other = {
        "other list": (LEAVES[1], LEAVES[0]),
        "emptied": (),
        "longer": LEAVES[:4],
    }.get(edit)
    if other is None:
        runs.write_bytes(runs.read_bytes().replace(b"run-1", b"run-9"))
        with pytest.raises(ChainError, match="disagree"):
            add_run(tmp_path, LEAVES[4])
        return
    runs.write_text("".join(f"{leaf}\n" for leaf in other))
    point.write_text(str(Checkpoint.of(other)))
    assert add_run(tmp_path, LEAVES[4])
    assert _agrees(tmp_path, (*other, LEAVES[4]))


def test_a_process_that_met_a_bad_line_adds_once_it_is_mended(tmp_path: Path) -> None:
    runs, _ = _data(tmp_path, 3)
    good = runs.read_bytes()
    runs.write_bytes(good + b"no run\n")
    with pytest.raises(FormatError, match="line 4"):
        add_run(tmp_path, LEAVES[3])
    runs.write_bytes(good)
    assert add_run(tmp_path, LEAVES[3])
    assert _agrees(tmp_path, LEAVES[:4])


def test_the_four_hundredth_run_takes_no_more_steps_than_the_fortieth(tmp_path: Path) -> None:
    steps = []
    for number in range(400):
        profile = cProfile.Profile()
        profile.runcall(add_run, tmp_path, Leaf(f"r{number}", Digest.of(b"%d" % number)))
        steps.append(sum(entry.callcount for entry in profile.getstats()))
    assert max(steps[-40:]) < 1.2 * max(steps[40:80])
