"""The hub's token: read from the environment or a file, given to the download step alone.

Invariant: a token is never on a command line and never in the environment of a process that
measures; what shows one is text that was redacted first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from records.errors import PlanError

# Names under which the hub's own tools look for a token (huggingface_hub, "Environment variables").
TOKEN_NAMES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "HF_TOKEN_FILE")


def hub_token(environ: Mapping[str, str]) -> str:
    """HF_TOKEN, or what the file HF_TOKEN_FILE holds; "" where neither is given.

    PlanError where the file cannot be read.
    """
    for name in TOKEN_NAMES[:-1]:
        if environ.get(name):
            return environ[name].strip()
    file = environ.get(TOKEN_NAMES[-1], "")
    if not file:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise PlanError("the file that HF_TOKEN_FILE names cannot be read", "correct it") from None


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that is to know no token."""
    return {name: value for name, value in environ.items() if name not in TOKEN_NAMES}
