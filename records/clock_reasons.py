"""The words for why a GPU's clock is what it is: those that a harness writes into a window's facts.

Invariant: a name once written stays; what a reader makes of it is the reader's.
"""

from __future__ import annotations

# A card at its own power limit (nvmlClocksEventReasonSwPowerCap). A large model brings it there by
# itself, which a plan may declare, within a bound; other reasons are faults of the host.
POWER_CAP = "software power cap"
# nvml.h, nvmlClocksEventReason*: bits of clocks_event_reasons.active
BITS = (
    (0x0000000000000001, "idle"),
    (0x0000000000000002, "applications clocks setting"),
    (0x0000000000000004, POWER_CAP),
    (0x0000000000000008, "hardware slowdown"),
    (0x0000000000000010, "sync boost"),
    (0x0000000000000020, "software thermal slowdown"),
    (0x0000000000000040, "hardware thermal slowdown"),
    (0x0000000000000080, "hardware power brake slowdown"),
    (0x0000000000000100, "display clock setting"),
)
# Where nvidia-smi told none; and, before their mask, bits that have no name here.
UNREPORTED = "unreported"
UNKNOWN = "unknown "
