"""A model hub's token: where it may stand, and that no process which measures is given it.

Invariant: it goes to the process that downloads alone, by that one's standard input; it is in no
argument, no file of the kit, no log, no record, and no message of an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from records.errors import ProvisionError

# Where the hub's own tools look for a token (huggingface_hub, "Environment variables").
# kit/ssh/detach_on_host.py, which travels alone, has the same list.
TOKEN_NAMES = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HUGGINGFACE_TOKEN",
    "HF_TOKEN_FILE",
    "HF_TOKEN_PATH",
)
_FILES = frozenset({"HF_TOKEN_FILE", "HF_TOKEN_PATH"})
# huggingface_hub/constants.py: where `hf auth login` leaves it.
_DEFAULT_FILE = ".cache/huggingface/token"


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that is to know no token."""
    return {name: value for name, value in environ.items() if name not in TOKEN_NAMES}


def find_token(environ: Mapping[str, str]) -> str:
    """The token of this environment, or of the file it names; "" where there is none.

    ProvisionError: a file that cannot be read, or what stands there is no token.
    """
    for name in TOKEN_NAMES:
        if environ.get(name) and name not in _FILES:
            return _checked(environ[name], name)
    for name in sorted(_FILES):
        if environ.get(name):
            return _of_file(Path(environ[name]).expanduser(), name)
    default = Path(environ.get("HOME", "/nonexistent")) / _DEFAULT_FILE
    return _of_file(default, str(default)) if default.is_file() else ""


def _of_file(path: Path, what: str) -> str:
    try:
        return _checked(path.read_text(encoding="utf-8"), what)
    except (OSError, UnicodeDecodeError) as error:
        raise ProvisionError(
            f"{what}: {path} holds no token that can be read: {type(error).__name__}",
            "put the token alone into the file, or unset the variable",
        ) from error


def _checked(text: str, what: str) -> str:
    token = text.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ProvisionError(f"{what}: what stands there is no token", "copy it from the hub again")
    return token
