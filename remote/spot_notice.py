"""Hear a cloud's notice that it takes the machine back, and stop in order before it does.

Invariant: the metadata service is asked only on a machine whose firmware says that it has one; an
answer that is no notice, or none at all, changes nothing.

AWS: docs.aws.amazon.com, "Spot Instance interruption notices" (two minutes), read through IMDSv2.
GCP: cloud.google.com, "Spot VMs", `instance/preempted` (30 seconds).
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

Explain = Callable[[str], None]
AWS, GCP = "AWS", "GCP"
ADDRESS = ("169.254.169.254", 80)
_PERIOD_S = 5.0
_TIMEOUT_S = 2
_TTL = {"X-aws-ec2-metadata-token-ttl-seconds": "21600"}
_TOKEN = "X-aws-ec2-metadata-token"  # noqa: S105 - the name of a header
_FLAVOR = {"Metadata-Flavor": "Google"}


def cloud(root: Path = Path("/")) -> str:
    """Whose machine this is, by its firmware: AWS, GCP, or "" for any other."""
    texts = []
    for name in ("sys_vendor", "product_name"):
        try:
            texts.append((root / "sys/class/dmi/id" / name).read_text(encoding="utf-8"))
        except OSError:  # not there, or not for this user: then nothing is known
            texts.append("")
    if texts[0].startswith("Amazon"):
        return AWS
    return GCP if texts[1].startswith("Google Compute Engine") else ""


def watch(
    explain: Explain,
    of: str,
    address: tuple[str, int] = ADDRESS,
    period_s: float = _PERIOD_S,
) -> None:
    """Ask in the background until a notice comes; then `explain` it and end as SIGTERM does."""
    if of:
        arguments = (explain, of, address, period_s)
        threading.Thread(target=_ask_until_told, args=arguments, daemon=True).start()


def notice(of: str, address: tuple[str, int]) -> str:
    """What the cloud announces now; "" for nothing."""
    try:
        return _aws(address) if of == AWS else _gcp(address)
    except (OSError, http.client.HTTPException):
        return ""


def parse_aws(status: int, body: bytes) -> str:
    """The answer of spot/instance-action: 404 while nothing is planned."""
    if status != http.HTTPStatus.OK:
        return ""
    try:
        told = json.loads(body)
        return f"{told['action']} at {told['time']}"
    except (ValueError, KeyError, TypeError):
        return ""


def parse_gcp(status: int, body: bytes) -> str:
    """The answer of instance/preempted: TRUE or FALSE."""
    return "preempted" if status == http.HTTPStatus.OK and body.strip() == b"TRUE" else ""


def _ask_until_told(explain: Explain, of: str, address: tuple[str, int], period_s: float) -> None:
    pause = threading.Event()
    while not (told := notice(of, address)):
        pause.wait(period_s)
    explain(f"preempted: {of} takes the machine back ({told})")
    os.kill(os.getpid(), signal.SIGTERM)


def _aws(address: tuple[str, int]) -> str:
    status, token = _request(address, "PUT", "/latest/api/token", _TTL)
    headers = {_TOKEN: token.decode("ascii", "replace")} if status == http.HTTPStatus.OK else {}
    return parse_aws(*_request(address, "GET", "/latest/meta-data/spot/instance-action", headers))


def _gcp(address: tuple[str, int]) -> str:
    path = "/computeMetadata/v1/instance/preempted"
    return parse_gcp(*_request(address, "GET", path, _FLAVOR))


def _request(
    address: tuple[str, int], method: str, path: str, headers: dict[str, str]
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=_TIMEOUT_S)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(1 << 16)
    finally:
        connection.close()
