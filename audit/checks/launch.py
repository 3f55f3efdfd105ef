"""Each boot started the engine as its arm asks, and so the engine did: attempts, options, facts.

Invariant: only what the harness had to redact may differ from the plan, and only where it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from audit.finding import Check, Code, Finding
from audit.journal_scan import JournalScan
from audit.repository import RepositoryView
from records.plan import Arm
from records.schema import BootStarted, EngineDecided, WindowEnded

ATTEMPT = Code(
    "LAUNCH01",
    "error",
    "attempts at a boot are not counted from 1 without a gap",
    "Each attempt at a planned boot is recorded, an interrupted one too. A gap is an attempt whose "
    "result somebody left out.",
    "restore the journal from git or from the host",
)
OPTIONS = Code(
    "LAUNCH02",
    "error",
    "the engine was not started with the options of its arm",
    "boot.started.argv ends with the name of the served model, the arm's args and its "
    "speculative_config: no option more, none less.",
    "the run cannot stand: measure again",
)
VARIABLES = Code(
    "LAUNCH03",
    "error",
    "the engine was not started with the variables of its arm",
    "boot.started.env holds every variable of the arm's env with its value.",
    "the run cannot stand: measure again",
)
VERSION = Code(
    "ENGINE05",
    "error",
    "the engine says that it is another version than the plan's",
    "engine.decided holds the version from the engine's own log. The harness stops a boot of any "
    "other version than that of the plan.",
    "the run cannot stand: measure again",
)

OTHERWISE = Code(
    "ENGINE06",
    "error",
    "the engine did something else than its arm asks for",
    "What the engine logged of itself, and the counters of its windows, follow from the arm's "
    "options: an arm without speculation drafts nothing, and an FP8 cache is one. Where they do "
    "not, boots or windows stand under the name of another arm.",
    "the run cannot stand: measure again",
)

_NAME, _SPECULATIVE = "--served-model-name", "--speculative-config"
# What the harness writes for paths and secrets (remote/context.py, remote/engine/redact.py).
_MARK = re.compile(r"<(?:engine|models|scratch|redacted)>")


def check(repository: RepositoryView) -> Iterator[Finding]:
    """Hold each boot against its arm, and the engine's version against the plan."""
    for run, scan in repository.readable():
        if scan.started is None:
            continue
        shown = repository.show(run.directory.events)
        plan = scan.started.plan
        arms = {arm.id: arm for arm in plan.arms}
        attempts: dict[str, int] = {}
        for event in scan.of(BootStarted):
            boot: BootStarted = event.value
            if boot.planned:
                want = attempts[boot.planned] = attempts.get(boot.planned, 0) + 1
                if boot.attempt != want:
                    message = f"boot {boot.planned}: {ATTEMPT.title}"
                    yield ATTEMPT.at(shown, event.line, message, str(boot.attempt), str(want))
            if boot.arm in arms and not scan.started.synthetic:
                yield from _launched(shown, event.line, boot, arms[boot.arm])
        for event in () if scan.started.synthetic else scan.of(EngineDecided):
            got, version = event.value.version, plan.engine.version
            if got != version:
                yield VERSION.at(shown, event.line, "", got, f"{version} (the plan)")
        if not scan.started.synthetic:
            yield from _decided(shown, scan)


def _launched(shown: str, line: int, boot: BootStarted, arm: Arm) -> Iterator[Finding]:
    if not _as_asked(boot.argv, arm):
        got = " ".join(_options(boot.argv)) or "none"
        want = " ".join((*arm.args, arm.speculative_config)).strip() or "none"
        yield OPTIONS.at(shown, line, f"boot {boot.boot}: {OPTIONS.title}", got, want)
    declared = boot.compile_cache.get("declared")  # "warm, carried": filled before the run
    if declared is not None and str(declared).partition(",")[0] != arm.cache:
        message = f"boot {boot.boot}, compile cache: {OTHERWISE.title}"
        yield OTHERWISE.at(shown, line, message, str(declared), arm.cache)
    if arm.cache == "cold" and boot.compile_cache.get("files", 0) != 0:
        message = f"boot {boot.boot}, compile cache: {OTHERWISE.title}"
        yield OTHERWISE.at(shown, line, message, f"{boot.compile_cache['files']} files", "none")
    for name, value in sorted(arm.env.items()):
        got = boot.env.get(name, "")
        if name not in boot.env or not _same(got, value):
            message = f"boot {boot.boot}, {name}: {VARIABLES.title}"
            yield VARIABLES.at(shown, line, message, got or "not set", value)


def _decided(shown: str, scan: JournalScan) -> Iterator[Finding]:
    """What the engine told and counted, against the options of the boot's arm."""
    for event in scan.events:
        value = event.value
        if not isinstance(value, (EngineDecided, WindowEnded)):
            continue
        arm = scan.arm_of(value.boot)
        if arm is None:
            continue
        if isinstance(value, EngineDecided):
            found = _against(arm, value.facts)
        else:
            drafted = value.counters.drafts > 0 and not arm.speculative_config
            found = [("drafts", str(value.counters.drafts), "none")] if drafted else []
        for name, got, want in found:
            message = f"boot {value.boot}, arm {arm.id}, {name}: {OTHERWISE.title}"
            yield OTHERWISE.at(shown, event.line, message, got, want)


def _against(arm: Arm, facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(decision, got, want) where a fact that was logged contradicts an option that was given."""
    config = json.loads(arm.speculative_config) if arm.speculative_config else {}
    asked = dict(pairwise((*arm.args, "")))
    told = facts.get("target")
    kv = str(told.get("kv_cache_dtype", "")) if isinstance(told, dict) else ""
    wanted_kv = asked.get("--kv-cache-dtype", "auto")
    method, tokens = facts.get("spec_method"), facts.get("spec_tokens")
    wanted_tokens = config.get("num_speculative_tokens", 0)
    pairs = [
        ("speculation", method in (None, "none") or bool(config), method, "none"),
        ("speculation", method != "none" or not config, method, config.get("method")),
        ("tokens a step", tokens in (None, -1, wanted_tokens), tokens, wanted_tokens),
        ("KV cache", not kv or kv.startswith("fp8") == wanted_kv.startswith("fp8"), kv, wanted_kv),
        (
            "eager mode",
            "--enforce-eager" not in arm.args or facts.get("enforce_eager") in (None, "true"),
            facts.get("enforce_eager"),
            "true",
        ),
    ]
    return [(name, str(got), str(want)) for name, fits, got, want in pairs if not fits]


def _options(argv: Sequence[str]) -> Sequence[str]:
    """What follows the name of the served model, which is the harness's own last option."""
    return argv[argv.index(_NAME) + 2 :] if _NAME in argv else ()


def _as_asked(argv: Sequence[str], arm: Arm) -> bool:
    options = _options(argv)
    if _NAME not in argv:
        return False
    if arm.speculative_config:
        *options, name, text = options if len(options) > 1 else ("", "", "")
        if name != _SPECULATIVE or not _same_config(text, json.loads(arm.speculative_config)):
            return False
    return len(options) == len(arm.args) and all(map(_same, options, arm.args))


def _same_config(text: str, want: dict[str, Any]) -> bool:
    """The same JSON, but for the model: the plan has its name, the command its path."""
    try:
        got = json.loads(text)
    except ValueError:
        return False
    return (
        isinstance(got, dict)
        and got.keys() == want.keys()
        and all(key == "model" or got[key] == value for key, value in want.items())
    )


def _same(got: str, want: str) -> bool:
    """Equal, but for what was redacted."""
    parts = _MARK.split(got)
    return re.fullmatch(".*".join(map(re.escape, parts)), want, re.DOTALL) is not None


CHECK = Check(
    "launch",
    "Each boot started the engine as its arm asks, and it did so: attempts, options, facts.",
    (ATTEMPT, OPTIONS, VARIABLES, VERSION, OTHERWISE),
    check,
    scope="meaning",
    kind="conduct",
)
