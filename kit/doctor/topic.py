"""What a topic of the examination is made of: probes, needs, verdicts.

Invariant: a probe is a fixed command without a shell that changes nothing on the host; a topic
reads outputs and decides, and touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kit.hosts.host import NOT_FOUND, TIMED_OUT, Done
from records.plan import Requirements

PASS, WARN, FAIL = "pass", "warn", "fail"
DOCKER, WHEELS = "docker", "wheels"


@dataclass(frozen=True, slots=True)
class Probe:
    """One command, run once.

    `{root}` in it is where Docker keeps images, `{home}` the kit's place there, `{image}` the
    plan's image; one whose place is not known is not asked.
    """

    name: str
    argv: tuple[str, ...]
    timeout_s: int = 30


@dataclass(frozen=True, slots=True)
class Needs:
    """What is to run there. `layers_bytes` and `requires_cuda` are the image's, 0 and "" without.

    `runtime`: "docker", "wheels", or "" where the host decides. `image`: by digest, "" without;
    `python`: the interpreter in it. `present_bytes`: what of engine and models is there already.
    """

    requirements: Requirements
    runtime: str = ""
    layers_bytes: int = 0
    requires_cuda: str = ""
    models_bytes: int = 0
    image: str = ""
    python: str = "python3"
    present_bytes: int = 0

    @property
    def gpu(self) -> bool:
        """Whether the plan needs a GPU at all."""
        return self.requirements.compute_capability > 0 or self.requirements.gpu_memory_mib > 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the table; `cause` and `remedy` where the status is not pass."""

    check: str
    status: str
    found: str
    cause: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the probes printed. `clock_ns`: this machine's real time before and after the clock."""

    outputs: Mapping[str, Done]
    clock_ns: tuple[int, int] = (0, 0)

    def there(self, name: str) -> bool:
        """Whether the program was found, whatever it said."""
        return self.outputs[name].status != NOT_FOUND

    def is_silent(self, name: str) -> bool:
        """Whether the command did not answer in its time, or was not asked for such a one."""
        return self.outputs[name].status == TIMED_OUT

    def text(self, name: str) -> str:
        """What a successful command printed; "" of one that failed."""
        done = self.outputs[name]
        return done.stdout.strip() if done.status == 0 else ""

    def complaint(self, name: str) -> str:
        """What a failed command said, on one line."""
        done = self.outputs[name]
        return " ".join((done.stderr or done.stdout).split())[:200] if done.status else ""


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject: what to ask, and what the answers mean."""

    probes: tuple[Probe, ...]
    check: Callable[[Seen, Needs], Iterator[Verdict]]
