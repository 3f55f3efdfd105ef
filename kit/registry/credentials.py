"""Who to be at a registry: from Docker's own configuration file, or from two variables.

Invariant: a secret is held in memory for the requests that need it; its text is in no repr and no
message. Credential helpers are programs and are not called: log in without one, or set the two
variables.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from records.errors import RegistryError

USER, PASSWORD = "KIT_REGISTRY_USER", "KIT_REGISTRY_PASSWORD"
# Docker's own key for its hub, and the name that image references use for it.
_HUB_KEY, HUB = "https://index.docker.io/v1/", "docker.io"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and what proves it."""

    user: str
    password: str = field(repr=False)

    def basic(self) -> str:
        """The value of an Authorization header (RFC 7617)."""
        pair = f"{self.user}:{self.password}".encode()
        return "Basic " + base64.b64encode(pair).decode("ascii")


def find(registry: str, environ: Mapping[str, str]) -> Credentials | None:
    """What this user has for a registry; None: ask anonymously.

    RegistryError where Docker's file cannot be read, so that nobody is anonymous by mistake.
    """
    if environ.get(USER) and environ.get(PASSWORD):
        return Credentials(environ[USER], environ[PASSWORD])
    directory = environ.get("DOCKER_CONFIG") or str(Path(environ.get("HOME", "/")) / ".docker")
    path = Path(directory) / "config.json"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RegistryError(f"{path}: {error.strerror}", _remedy(registry)) from error
    return parse(text, registry, str(path))


def parse(text: str, registry: str, name: str = "config.json") -> Credentials | None:
    """The credentials that a Docker configuration file holds for this registry."""
    keys = (_HUB_KEY, HUB) if registry == HUB else (registry, f"https://{registry}")
    try:
        auths = json.loads(text).get("auths", {})
        found = next((auths[key]["auth"] for key in keys if auths.get(key, {}).get("auth")), None)
        if found is None:
            return None
        user, colon, password = base64.b64decode(found, validate=True).decode().partition(":")
    except (ValueError, AttributeError, TypeError, RecursionError, binascii.Error):
        raise RegistryError(
            f"{name} is not a configuration file of Docker", _remedy(registry)
        ) from None
    if not colon or not user:
        raise RegistryError(f"{name}: no user and password for {registry}", _remedy(registry))
    return Credentials(user, password)


def _remedy(registry: str) -> str:
    return f"docker login {registry}, or set {USER} and {PASSWORD}"
