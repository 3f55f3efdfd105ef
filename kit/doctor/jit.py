"""What FlashInfer's compilation at run time wants from a host without an image. Report: vllm#42291.

Inside the image compiler, ninja and headers are there; in a pod they may not be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kit.doctor.topic import DOCKER, PASS, WARN, Needs, Probe, Seen, Topic, Verdict

_PROBES = (
    Probe("nvcc", ("nvcc", "--version")),
    Probe("ninja", ("ninja", "--version")),
    Probe("g++", ("g++", "--version")),
)


def _check(seen: Seen, needs: Needs) -> Iterator[Verdict]:
    if not needs.gpu or needs.runtime == DOCKER:
        return
    missing = [probe.name for probe in _PROBES if not seen.text(probe.name)]
    if missing:
        yield Verdict(
            "jit",
            WARN,
            f"no {', '.join(missing)}",
            "FlashInfer compiles kernels on the host: an arm that uses it would fail to boot",
            "install the CUDA toolkit of the driver's version, ninja-build and g++",
        )
        return
    match = re.search(r"release (\d+\.\d+)", seen.text("nvcc"))
    yield Verdict("jit", PASS, f"nvcc {match[1] if match else 'unreported'}, ninja, g++")


JIT = Topic(_PROBES, _check)
