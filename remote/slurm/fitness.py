"""Whether the node that Slurm gave has the GPU that the plan needs.

Invariant: a plan without such a need fits everywhere; what nvidia-smi does not tell is no fit.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from records.errors import FormatError, HostUnfitError
from records.plan import Requirements
from remote.host import gpu

_ASK = ("--query-gpu=compute_cap,memory.total", "--format=csv,noheader,nounits")
_REMEDY = "name the right nodes in slurm.toml, below [constraint], or another partition"


def require_fit(need: Requirements) -> None:
    """HostUnfitError where no GPU of this node will do."""
    if not need.compute_capability and not need.gpu_memory_mib:
        return
    if not gpu.available():
        raise HostUnfitError("the plan needs a GPU, and this node shows none", _REMEDY)
    found = parse(gpu.ask(_ASK))
    if not any(c >= need.compute_capability and m >= need.gpu_memory_mib for c, m in found):
        shown = ", ".join(f"{capability} with {memory} MiB" for capability, memory in found)
        raise HostUnfitError(
            f"the plan needs compute capability {need.compute_capability} with "
            f"{need.gpu_memory_mib} MiB, this node has {shown or 'none'}",
            _REMEDY,
        )


def parse(text: str) -> list[tuple[Decimal, int]]:
    """Compute capability and memory in MiB of each GPU, from `8.9, 23034`."""
    found = []
    for line in text.splitlines():
        capability, _, memory = (part.strip() for part in line.partition(","))
        try:
            found.append((Decimal(capability), int(memory)))
        except (InvalidOperation, ValueError):
            raise FormatError(f"nvidia-smi says {line!r}: no capability and memory") from None
    return found
