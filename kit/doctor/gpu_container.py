"""Start a container with the GPU request of a run: what the daemon lists proves little.

Invariant: nothing is pulled. What is started has neither network nor rights, reads its image only,
has `_TRIAL_S` to end, and is removed by its id, however it ended. Where a run's container is at
work nothing is started beside it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kit.docker.request import LABEL as RUN_LABEL
from kit.doctor.docker_engine import GPU_CONTAINERS
from kit.doctor.gpu_words import CUDA_PROGRAM, cannot_look, cuda_answer, of_cuda, of_smi, refusal
from kit.doctor.topic import FAIL, PASS, WARN, Verdict
from kit.hosts.host import TIMED_OUT, Done, Host
from records.errors import HostUnfitError

LABEL = "spec-fp8-reproduction-kit.doctor"
NOT_TRIED = "gpu-trial"
SMI = "nvidia-smi"
# nvidia-smi and cuInit take seconds a GPU where no persistence daemon runs; a broken driver lets
# them hang.
_TRIAL_S = 90
_COMMAND_S = _REMOVE_S = 30
_LEFT_AFTER = "10m"
_OTHER_IMAGES = 3
_SIGNALLED = 128  # as a shell, and docker wait, tell a program that a signal ended


@dataclass(frozen=True, slots=True)
class _Look:
    """An image that is there, and the command that looks for GPUs in it."""

    image: str
    shown: str
    command: tuple[str, ...]


def require_gpu(host: Host, image: str, python: str) -> None:
    """HostUnfitError where a container of this image, which is there, gets no GPU."""
    found = try_gpu(host, image, python, is_there=True)
    if found.status == FAIL:
        raise HostUnfitError(f"{host.name}: {found.cause} ({found.found})", found.remedy)


def try_gpu(host: Host, image: str, python: str, *, is_there: bool) -> Verdict:
    """How it went; under `NOT_TRIED` where nothing could be tried, or nothing was learned.

    `image`: the plan's, by digest, and whether the host has it; `python`: the interpreter in it.
    """
    at_work = _docker(host, ("ps", "-q", "--filter", f"label={RUN_LABEL}"))
    if at_work.status == TIMED_OUT:
        return _not_tried("the daemon does not answer any more", "sudo systemctl restart docker")
    if at_work.stdout.split():
        return _not_tried(
            "a run's container is at work, which this would disturb", "kit doctor again after it"
        )
    # Of an examination that was killed; older than any that may be under way.
    old = ("--filter", f"label={LABEL}", "--filter", f"until={_LEFT_AFTER}")
    _docker(host, ("container", "prune", "--force", *old))
    learned = "no image is there yet"
    for look in _looks(host, image if is_there else "", python):
        found = _try(host, look)
        if found.check == GPU_CONTAINERS:
            return found
        learned = found.cause
    return _not_tried(
        f"{learned}: whether a container gets the GPU shows only when one is started",
        "kit doctor again once the plan's image is there (kit reproduce tries, too, after it has "
        "pulled it); before: docker pull any image with a C library, as debian",
    )


def _looks(host: Host, image: str, python: str) -> Iterator[_Look]:
    """The plan's own image, whose Python asks CUDA; else others, in which the toolkit's tool does.

    The toolkit mounts nvidia-smi and the driver's libraries into any container that gets a GPU.
    """
    if image:
        yield _Look(image, "the plan's image", (python, "-I", "-S", "-c", CUDA_PROGRAM))
        return
    listed = _docker(host, ("image", "ls", "-q", "--no-trunc"))
    for number in list(dict.fromkeys(listed.stdout.split()))[:_OTHER_IMAGES]:
        yield _Look(number, f"image {number[:19]}", (SMI, "-L"))


def _try(host: Host, look: _Look) -> Verdict:
    """Create, start, wait, read, remove. Every step may be repeated if a line drops."""
    name = f"kit-doctor-{secrets.token_hex(8)}"
    created = _docker(host, _create(name, look, _user(host)))
    # By its name where the answer was lost with the line, and the second attempt met the first.
    shown = _docker(host, ("container", "inspect", "--format", "{{.Id}}", name))
    number = shown.stdout.strip()
    if not number:
        return _refused(look, created)
    try:
        found = _started(host, look, number)
    finally:
        removed = _docker(host, ("container", "rm", "--force", number), _REMOVE_S)
    if removed.status != 0:  # held by what hangs; the daemon goes on removing it
        there = f"{found.found}; container {number[:12]} is still there"
        return replace(found, found=there, remedy=f"{found.remedy}; docker rm -f {number[:12]}")
    return found


def _started(host: Host, look: _Look, number: str) -> Verdict:
    started = _docker(host, ("container", "start", number), _TRIAL_S)
    if started.status != 0:
        return _refused(look, started)
    ended = _docker(host, ("container", "wait", number), _TRIAL_S)
    logs = _docker(host, ("container", "logs", number))
    printed = f"{logs.stdout}\n{logs.stderr}".strip()
    if ended.status == TIMED_OUT:
        return _failed(
            f"no end after {_TRIAL_S} s in {look.shown}",
            "the driver hangs when a container asks it",
            "reboot the host, or rent another",
        )
    return _read(look, ended.stdout.strip(), printed)


def _read(look: _Look, status: str, printed: str) -> Verdict:
    """What the program in the container found."""
    if look.command[0] == SMI:
        gpus = [line for line in printed.splitlines() if line.startswith("GPU ")]
        if status == "0" and gpus:
            return _passed(len(gpus), look)
        return _failed(f"{_line(printed)} in {look.shown}", *of_smi(printed))
    answer = cuda_answer(printed)
    if answer is None and status.isdecimal() and int(status) > _SIGNALLED:
        return _failed(
            f"ended by signal {int(status) - _SIGNALLED} in {look.shown}",
            "asking CUDA for GPUs ends the program",
            "reboot the host, or rent another",
        )
    if answer is None:
        return _not_tried(f"{look.shown} cannot look ({_line(printed)})", "kit images verify HOST")
    cuda, devices, words = answer
    cause, remedy = of_cuda(cuda, devices)
    if not cause:
        return _passed(devices, look)
    return _failed(f"CUDA error {cuda}, {words} in {look.shown}", cause, remedy)


def _refused(look: _Look, done: Done) -> Verdict:
    """The daemon did not create or start it."""
    said = (done.stderr or done.stdout).removeprefix("Error response from daemon: ")
    said = said.partition("\nError: failed to start containers")[0]  # the client's own summary
    if cannot_look(said, look.command[0]):
        return _not_tried(f"{look.shown} has no program to look with", "")
    if done.status == TIMED_OUT:
        cause = "the daemon, or the toolkit that it calls, hangs"
        return _failed(_line(said), cause, "sudo systemctl restart docker; else reboot the host")
    return _failed(_line(said), *refusal(said))


def _user(host: Host) -> str:
    """uid:gid, as a run's container has it: devices may be closed to some; root's where unknown."""
    numbers = [host.run(("id", flag)).stdout.strip() for flag in ("-u", "-g")]
    return ":".join(numbers) if all(n.isdecimal() for n in numbers) else "0:0"


def _create(name: str, look: _Look, user: str) -> tuple[str, ...]:
    """As kit/docker/request.py asks for a run's container."""
    program, *words = look.command
    return (
        "container", "create", "--pull", "never", "--name", name, "--label", LABEL,
        "--gpus", "all", "--network", "none", "--read-only", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--restart", "no", "--user", user,
        "--entrypoint", program, look.image, *words,
    )  # fmt: skip


def _docker(host: Host, words: Sequence[str], timeout_s: int = _COMMAND_S) -> Done:
    return host.run(("docker", *words), timeout_s=timeout_s)


def _passed(gpus: int, look: _Look) -> Verdict:
    number = f"{gpus} GPU{'s' if gpus > 1 else ''}"
    return Verdict(GPU_CONTAINERS, PASS, f"started one: {number} in {look.shown}")


def _failed(found: str, cause: str, remedy: str) -> Verdict:
    return Verdict(GPU_CONTAINERS, FAIL, found, f"a container gets no GPU: {cause}", remedy)


def _not_tried(cause: str, remedy: str) -> Verdict:
    return Verdict(NOT_TRIED, WARN, "not tried", cause, remedy)


def _line(text: str) -> str:
    return " ".join(text.split())[:300] or "it says nothing"
