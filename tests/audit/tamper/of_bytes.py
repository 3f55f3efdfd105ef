"""Corruptions of bytes: files, lines, seals and lists, with nothing recomputed to hide them."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from records import canonical, chain
from records.checkpoint import CHECKPOINT_NAME, RUNS_NAME
from tests.audit.tamper.corruption import Corruption
from tests.audit.tamper.healthy import Repository

Lines = list[bytes]


def _lines(change: Callable[[Lines], None]) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        lines = repository.journal().read_bytes().splitlines(keepends=True)
        change(lines)
        repository.journal().write_bytes(b"".join(lines))

    return apply


def _flip(lines: Lines, number: int) -> None:
    middle = len(lines[number]) // 2
    lines[number] = (
        lines[number][:middle] + bytes([lines[number][middle] ^ 1]) + lines[number][middle + 1 :]
    )


def _swap(lines: Lines) -> None:
    lines[8], lines[9] = lines[9], lines[8]


def _append_rightly(lines: Lines) -> None:
    state = chain.verify(lines)
    value = {"phase": "end", "host_id": "h", "facts": {}}
    lines.append(chain.make_line(state, 10**18, "host.observed", value))


def _renumber(lines: Lines) -> None:
    lines[5] = lines[5].replace(b'"seq":5,', b'"seq":6,')


def _flip_in(pattern: str) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        path = min(repository.run().glob(pattern))
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)

    return apply


def _link_a_log(repository: Repository) -> None:
    log = repository.log()
    elsewhere = repository.root / "elsewhere.gz"
    log.rename(elsewhere)
    log.symlink_to(elsewhere)


def _seal(change: Callable[[dict[str, object]], None]) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        path = repository.run() / "seal.json"
        value = canonical.decode(path.read_bytes()[:-1])
        change(value)
        path.write_bytes(canonical.encode(value) + b"\n")

    return apply


def _longer(value: dict[str, object]) -> None:
    value["events"]["bytes"] += 1  # type: ignore[index]


def _swap_directories(repository: Repository) -> None:
    one, two = repository.run("run-1"), repository.run("run-3")
    one.rename(repository.root / "aside")
    two.rename(one)
    (repository.root / "aside").rename(two)


def _swap_journals(repository: Repository) -> None:
    one, two = repository.journal("run-1"), repository.journal("run-3")
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def _list(name: str, change: Callable[[str], str]) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        path = repository.data / name
        path.write_text(change(path.read_text()))

    return apply


def _turn(text: str) -> str:
    return "".join(reversed(text.splitlines(keepends=True)))


def _swap_digests(text: str) -> str:
    words = text.split()
    words[1], words[5] = words[5], words[1]
    return "".join(f"{a} {b}\n" for a, b in zip(words[::2], words[1::2], strict=True))


def _other_root(text: str) -> str:
    lines = text.split("\n")
    lines[2] = ("B" if lines[2][0] == "A" else "A") + lines[2][1:]
    return "\n".join(lines)


def _roll_back(*names: str) -> Callable[[Repository], None]:
    def apply(repository: Repository) -> None:
        for name in names:
            repository.git("checkout", "-q", "HEAD~2", "--", f"records/data/{name}")

    return apply


def _unlisted(repository: Repository) -> None:
    shutil.copytree(repository.run("run-1"), repository.run("run-4"))


ALL = (
    Corruption("a byte of a journal flipped", "CHAIN01", _lines(lambda x: _flip(x, 20))),
    Corruption(
        "a byte of the journal's last line flipped", "CHAIN01", _lines(lambda x: _flip(x, -1))
    ),
    Corruption("the journal's last line cut off", "CHAIN03", _lines(lambda x: x.pop())),
    Corruption(
        "the journal cut in the middle of a line",
        "CHAIN01",
        _lines(lambda x: x.append(x.pop()[:-9])),
    ),
    Corruption("a well-chained line appended", "CHAIN01", _lines(_append_rightly)),
    Corruption("a line deleted", "CHAIN01", _lines(lambda x: x.pop(12))),
    Corruption("two lines swapped", "CHAIN01", _lines(_swap)),
    Corruption("a line doubled", "CHAIN01", _lines(lambda x: x.insert(12, x[12]))),
    Corruption("a line renumbered", "EVENT03", _lines(_renumber)),
    Corruption("the journal deleted", "CHAIN02", lambda r: r.journal().unlink()),
    Corruption("the journal emptied", "CHAIN03", _lines(lambda x: x.clear())),
    Corruption("a byte of an engine log flipped", "SEAL02", _flip_in("logs/*")),
    Corruption("a byte of a metrics page flipped", "SEAL02", _flip_in("metrics/*")),
    Corruption("a log deleted", "SEAL03", lambda r: r.log().unlink()),
    Corruption("a log replaced by a link to its bytes", "SEAL04", _link_a_log),
    Corruption("a file added to a sealed run", "SEAL04", lambda r: (r.run() / "note.txt").touch()),
    Corruption("the seal emptied", "SEAL01", lambda r: (r.run() / "seal.json").write_bytes(b"")),
    Corruption("an unknown key in the seal", "SEAL01", _seal(lambda v: v.update(best=True))),
    Corruption("the seal of an unknown format", "SEAL01", _seal(lambda v: v.update(format=2))),
    Corruption("the seal states another length", "CHAIN03", _seal(_longer)),
    Corruption("the seal taken off", "CKPT03", lambda r: (r.run() / "seal.json").unlink()),
    Corruption("a run's directory renamed", "SEAL05", lambda r: r.run().rename(r.run("run-9"))),
    Corruption("two runs' directories swapped", "SEAL05", _swap_directories),
    Corruption("two runs' journals swapped", "CHAIN01", _swap_journals),
    Corruption("a run removed", "CKPT03", lambda r: shutil.rmtree(r.run())),
    Corruption("a sealed run added beside the list", "CKPT05", _unlisted),
    Corruption("RUNS reordered", "CKPT02", _list(RUNS_NAME, _turn)),
    Corruption(
        "the digests of two runs swapped in RUNS", "CKPT04", _list(RUNS_NAME, _swap_digests)
    ),
    Corruption(
        "a run listed twice", "CKPT06", _list(RUNS_NAME, lambda t: t + t.split("\n")[0] + "\n")
    ),
    Corruption(
        "a line of RUNS garbled", "CKPT01", _list(RUNS_NAME, lambda t: t.replace("run-2 ", "run-2"))
    ),
    Corruption("the root in CHECKPOINT changed", "CKPT02", _list(CHECKPOINT_NAME, _other_root)),
    Corruption("CHECKPOINT garbled", "CKPT07", _list(CHECKPOINT_NAME, lambda t: t[:-5])),
    Corruption("CHECKPOINT deleted", "CKPT07", lambda r: (r.data / CHECKPOINT_NAME).unlink()),
    Corruption("CHECKPOINT rolled back", "CKPT02", _roll_back(CHECKPOINT_NAME)),
    Corruption(
        "RUNS and CHECKPOINT rolled back, runs kept",
        "CKPT05",
        _roll_back(CHECKPOINT_NAME, RUNS_NAME),
    ),
)
