"""Corruptions with hashes made anew, so that only git, signatures and sources can tell."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

from audit.signature import Subject, allowed_signers_at, signatures_at
from records.checkpoint import RUNS_NAME
from tests import sealed_run
from tests.audit.tamper.corruption import Corruption, covered_up, every, first, put
from tests.audit.tamper.healthy import Event, Repository, make_key


def _faster(events: list[Event]) -> None:
    """Every chunk of the first batch a little earlier: nothing in the run contradicts it."""
    for request in first(events, "window.requests")["value"]["requests"]:
        request["chunk_ns"][-1] -= 1_000


def _shrink(events: list[Event]) -> None:
    """The plan cut to its first block, and all that came later cut with it."""
    started = events[0]["value"]
    started["plan"]["blocks"] = 1
    boots = [e["value"] for e in events if e["type"] == "boot.started" and e["value"]["planned"]]
    late = {b["boot"] for b in boots if not b["planned"].startswith("b01")}
    events[:] = [e for e in events if e["value"].get("boot") not in late]
    ended = first(events, "run.ended")["value"]
    ended["completed"], ended["failed"] = 2, 0
    from records.decode import from_object
    from records.plan import Plan

    started["plan_digest"] = str(from_object(Plan, started["plan"]).digest)


def _resealed(repository: Repository) -> None:
    repository.rewrite(_faster)
    repository.reseal()


def _relisted(repository: Repository) -> None:
    _resealed(repository)
    repository.relist()


def _committed(repository: Repository) -> None:
    _relisted(repository)
    repository.commit("tidy up")


def _remove(repository: Repository) -> None:
    shutil.rmtree(repository.run("run-2"))
    repository.relist()
    repository.commit("remove a bad run")


def _remove_and_restore(repository: Repository) -> None:
    repository.log().unlink()
    repository.commit("remove")
    repository.git("checkout", "-q", "HEAD~1", "--", "records")
    repository.commit("restore")


def _measured_again(repository: Repository) -> None:
    shutil.rmtree(repository.run())
    plan = sealed_run.small_plan(blocks=2, requests=4)
    sealed_run.make_run(repository.run(), plan, sealed_run.Shape(scale_ppm=900_000))
    repository.relist()
    repository.commit("a better run")


def _shrunk(repository: Repository) -> None:
    repository.rewrite(_shrink, "run-2")
    for path in [*repository.run("run-2").glob("*/b02*")]:
        path.unlink()
    repository.reseal("run-2")
    repository.relist()
    repository.commit("the plan as it was meant")


def _reordered(repository: Repository) -> None:
    repository.relist(list(reversed(repository.leaves)))
    repository.commit("sort")


def _checkpoint_alone(repository: Repository) -> None:
    path = repository.data / RUNS_NAME
    kept = path.read_bytes()
    path.write_bytes(kept.splitlines(keepends=True)[0])
    repository.commit("half")
    path.write_bytes(kept)
    repository.commit("whole")


def _new_history(keep_published: bool) -> Any:
    def apply(repository: Repository) -> None:
        _relisted(repository)
        repository.rewrite_history(keep_published)

    return apply


def _undone_in_a_merge(repository: Repository) -> None:
    """A removal on a side branch that the merge takes back: the tree shows nothing."""
    repository.git("checkout", "-q", "-b", "side")
    repository.log().unlink()
    repository.commit("remove")
    repository.git("checkout", "-q", "main")
    repository.commit("meanwhile")
    repository.git("merge", "-q", "--no-ff", "-s", "ours", "side", "-m", "merge")


def _grafted(repository: Repository) -> None:
    """A run removed, and git told that the commit which removed it has no parent."""
    _remove(repository)
    grafts = repository.root / ".git" / "info" / "grafts"
    grafts.parent.mkdir(exist_ok=True)
    grafts.write_text(repository.git("rev-parse", "HEAD") + "\n")


def _configured(repository: Repository) -> None:
    """A removal in a merge, and a configuration of git that would leave it out of the answer."""
    _undone_in_a_merge(repository)
    for setting in (
        "color.ui=always",
        "color.diff=always",
        "diff.orderFile=/nowhere",
        "log.diffMerges=first-parent",
        "log.follow=true",
        "log.showRoot=false",
        "log.showSignature=true",
        "gpg.program=/bin/false",
        "core.fsmonitor=/bin/false",
    ):
        repository.git("config", *setting.split("=", 1))


def _other_signer(repository: Repository) -> None:
    key: Path = repository.root.parent / "next"
    make_key(key)
    public = key.with_suffix(".pub").read_text().split()[:2]
    allowed_signers_at(repository.data).write_text(f"owner {' '.join(public)}\n")
    repository.commit("a new key")


def _poisoned(repository: Repository) -> None:
    cache = repository.root / ".kit" / "audit-cache.json"
    cache.parent.mkdir()
    cache.write_text('{"format": 1, "clean": []}\n')
    repository.commit("a cache, to save time")


def _signature(name: str) -> Any:
    return lambda repository: signatures_at(repository.data) / name


def _by_a_stranger(repository: Repository) -> None:
    key = repository.root / "stranger"
    make_key(key)
    repository.sign(Subject("run-1"), key)


def _of_another_run(repository: Repository) -> None:
    folder = signatures_at(repository.data)
    shutil.copy(folder / "run-1.seal.sig", folder / "run-2.seal.sig")


def _unsigned(repository: Repository) -> None:
    (signatures_at(repository.data) / "CHECKPOINT.3.sig").unlink()
    repository.rewrite_history()


def _oversized(repository: Repository) -> None:
    folder = signatures_at(repository.data)
    (folder / "CHECKPOINT.3.sig").rename(folder / "CHECKPOINT.4.sig")


def _own_key(repository: Repository) -> None:
    """A tamperer's own key among the allowed, and everything signed anew with it."""
    _relisted(repository)
    key: Path = repository.root.parent / "own"
    make_key(key)
    public = key.with_suffix(".pub").read_text().split()[:2]
    allowed_signers_at(repository.data).write_text(f"owner {' '.join(public)}\n")
    for subject in (Subject("run-1"), Subject("run-2"), Subject(size=3)):
        repository.sign(subject, key)
    repository.commit("new key")


def _source(text: str) -> Any:
    return lambda repository: (repository.root / "remote" / "main.py").write_text(text)


def _modules(names: list[str]) -> Any:
    return covered_up(put("run.ended", "modules", to=names))


def _token_in_a_log(repository: Repository) -> None:
    log = repository.log()
    log.write_bytes(gzip.compress(b"token hf_" + b"a" * 34 + b"\n", mtime=0))
    from records.digest import Digest

    name = f"logs/{log.name}"

    def edit(events: list[Event]) -> None:
        for value in every(events, "boot.ended"):
            if name in value["logs"]:
                value["logs"][name] = str(Digest.of(log.read_bytes()))

    repository.cover_up(edit)


def _detail(text: str) -> Any:
    return covered_up(put("boot.ended", "detail", to=text))


ALL = (
    Corruption("a record edited, chain and seal made anew", "CKPT04", _resealed),
    Corruption("a record edited, lists made anew too", "HIST02", _relisted),
    Corruption("a record edited, all made anew and committed", "HIST04", _committed),
    Corruption("a run measured again under its old name", "HIST04", _measured_again),
    Corruption("a run removed, lists made anew, committed", "HIST04", _remove),
    Corruption(
        "a record removed in one commit and restored in the next", "HIST01", _remove_and_restore
    ),
    Corruption("a removal hidden on a merged branch", "HIST01", _undone_in_a_merge),
    Corruption("the plan shrunk to hide a failed boot, all made anew", "HIST04", _shrunk),
    Corruption("RUNS reordered, CHECKPOINT made anew, committed", "HIST04", _reordered),
    Corruption("a commit whose CHECKPOINT does not cover RUNS", "HIST05", _checkpoint_alone),
    Corruption(
        "history rewritten over an edit, others have the old one", "HIST06", _new_history(True)
    ),
    Corruption(
        "history rewritten over an edit, nobody has the old one", "SIGN01", _new_history(False)
    ),
    Corruption("history thrown away", "HIST03", lambda r: shutil.rmtree(r.root / ".git")),
    Corruption("a signature deleted", "HIST01", lambda r: _signature("run-1.seal.sig")(r).unlink()),
    Corruption("a signature copied from another run", "SIGN01", _of_another_run),
    Corruption("a seal signed by a stranger", "SIGN01", _by_a_stranger),
    Corruption(
        "a seal signed for another purpose",
        "SIGN01",
        lambda r: r.sign(Subject("run-1"), namespace="file"),
    ),
    Corruption(
        "the allowed signers deleted", "SIGN02", lambda r: allowed_signers_at(r.data).unlink()
    ),
    Corruption("a signature over more runs than there are", "SIGN03", _oversized),
    Corruption("the signature over CHECKPOINT lost with history", "SIGN05", _unsigned),
    Corruption("a tamperer's key allowed, everything signed anew", "HIST02", _own_key),
    Corruption("a removal cut off by a graft", "HIST01", _grafted),
    Corruption("a removal that git is configured not to tell", "HIST01", _configured),
    Corruption("a signer's key replaced by another", "HIST02", _other_signer),
    Corruption("a cache for incremental audits committed", "HIST09", _poisoned),
    Corruption("the harness imports the engine", "ENGINE01", _source("import torch\n")),
    Corruption(
        "the harness imports the engine under an alias",
        "ENGINE01",
        _source("from importlib import import_module as load\n\nload('vllm')\n"),
    ),
    Corruption(
        "the harness runs the engine in an interpreter of its own",
        "ENGINE01",
        _source("import sys\n\nARGV = [sys.executable, '-c', 'import vllm; vllm.LLM()']\n"),
    ),
    Corruption("a source of the harness broken", "ENGINE03", _source("def f(:\n")),
    Corruption(
        "a harness that had the engine loaded", "ENGINE02", _modules(["records", "remote", "torch"])
    ),
    Corruption("the harness's list of modules emptied", "ENGINE04", _modules([])),
    Corruption(
        "the harness's digest swapped",
        "HARN01",
        covered_up(put("run.started", "harness_digest", to="sha256:" + "1" * 64)),
    ),
    Corruption("a token in a packed log, all made anew", "HYGIENE01", _token_in_a_log),
    Corruption("a home directory in a record", "HYGIENE02", _detail("File /home/someone/x.py")),
    Corruption(
        "an e-mail address in a record", "HYGIENE02", _detail("by someone@lab.university.edu")
    ),
    Corruption("a private address in a record", "HYGIENE02", _detail("bound to 10.11.12.13:8000")),
    Corruption("a public IPv6 address in a record", "HYGIENE02", _detail("at 2a01:4f8:c17:b0f::2")),
    Corruption(
        "an internal host name in a record", "HYGIENE02", _detail("ip-10-1-2-3.ec2.internal")
    ),
    Corruption(
        "the licence of the data removed", "LICENCE01", lambda r: (r.root / "LICENSE-DATA").unlink()
    ),
    Corruption(
        "the licence of the data for something else",
        "LICENCE02",
        lambda r: (r.root / "LICENSE-DATA").write_text("SPDX-License-Identifier: CC-BY-4.0\n"),
    ),
)
