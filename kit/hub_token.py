"""Names under which a model hub's token may stand in an environment.

Invariant: no process that measures is started with one. Every model of the lock is downloaded
without a token, so the kit itself reads none.
"""

from __future__ import annotations

from collections.abc import Mapping

# Where the hub's own tools look for a token (huggingface_hub, "Environment variables").
# kit/detach_on_host.py, which travels alone, has the same list.
TOKEN_NAMES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_FILE")


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that is to know no token."""
    return {name: value for name, value in environ.items() if name not in TOKEN_NAMES}
