"""Why a registry cannot be reached at all, told apart from what may pass within seconds.

Invariant: pure. A name that does not resolve, a refused or unroutable address and a certificate
that is not trusted are as they are until somebody changes them; so is a proxy's refusal. Timeouts,
connections that break and bodies cut short may pass, and are asked again.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator

import httpx

_MIRROR = "use a mirror: --mirror HOST"
_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})
# ssl.SSLError.reason of a server that speaks no TLS.
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
_NETWORK = f"check this machine's network, and HTTPS_PROXY where there is a proxy; or {_MIRROR}"


def reason(failure: BaseException) -> tuple[str, str] | None:
    """The cause and what helps; None where asking again within seconds may."""
    if isinstance(failure, httpx.ProxyError) and str(failure)[:3] not in ("429", "407"):
        refused = str(failure)[:1] == "4"
        return (f"the proxy refuses: {failure}", _NETWORK) if refused else None
    for cause in _chain(failure):
        found = _of(cause)
        if found is not None:
            return found
    return None


def _of(cause: BaseException) -> tuple[str, str] | None:
    if isinstance(cause, socket.gaierror):
        said = cause.strerror or str(cause)
        return f"the name does not resolve: {said}", f"check the name; {_NETWORK}"
    if isinstance(cause, UnicodeError):  # a part of the name is empty, or longer than names may be
        return "no such name can be", "check the name"
    if isinstance(cause, ConnectionRefusedError):
        said = "connection refused: nothing listens there, or at the proxy on the way"
        return said, f"check name and port; {_NETWORK}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted here: {cause.verify_message}",
            "check the clock (date), and name the authority's certificate: SSL_CERT_FILE=FILE",
        )
    if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
        return "it speaks no TLS", f"check name and port; or {_MIRROR}"
    if isinstance(cause, httpx.TooManyRedirects):
        return "it redirects in circles", f"check the name; or {_MIRROR}"
    if isinstance(cause, OSError) and cause.errno in _NO_WAY:
        return f"there is no way there: {cause.strerror}", _NETWORK
    return None


def _chain(failure: BaseException) -> Iterator[BaseException]:
    """The failure and what it was made of, as httpx and httpcore raise one from the other."""
    found: BaseException | None = failure
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__
