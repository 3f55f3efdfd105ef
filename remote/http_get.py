"""One GET of the engine's control plane on loopback."""

from __future__ import annotations

import http.client

from records.errors import EngineBootError

_TIMEOUT_S = 30


def get(listen: tuple[str, int], path: str) -> bytes:
    """The body of a 200 response; EngineBootError for anything else, since the engine is unfit."""
    connection = http.client.HTTPConnection(*listen, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise EngineBootError(f"GET {path}: {error}") from error
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise EngineBootError(f"GET {path}: HTTP {response.status}")
    return body
