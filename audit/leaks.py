"""Find what must not be published in a block of bytes: secrets, people, machines, places.

Invariant: linear in the block, and fast on journals, which are nearly all digits: every pattern
begins with a byte that is rare there. What was found is described, never repeated.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leak:
    """Where something begins (offset in the block), what kind it is, and how it may be shown."""

    offset: int
    kind: str
    shown: str


# The documented prefixes of Hugging Face, GitHub, GitLab, OpenAI-style, NVIDIA, Slack and AWS keys;
# PEM (RFC 7468). One pattern a prefix: a literal is searched ten times faster than an alternation.
_SECRETS: tuple[tuple[bytes, re.Pattern[bytes]], ...] = (
    (b"hf_", re.compile(rb"\bhf_[A-Za-z0-9]{30,}")),
    (b"gh", re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36,}")),
    (b"github_pat_", re.compile(rb"\bgithub_pat_[A-Za-z0-9_]{30,}")),
    (b"glpat-", re.compile(rb"\bglpat-[A-Za-z0-9_-]{20,}")),
    (b"sk-", re.compile(rb"\bsk-[A-Za-z0-9_-]{32,}")),
    (b"nvapi-", re.compile(rb"\bnvapi-[A-Za-z0-9_-]{40,}")),
    (b"xox", re.compile(rb"\bxox[abprs]-[A-Za-z0-9-]{20,}")),
    (b"AKIA", re.compile(rb"\bAKIA[0-9A-Z]{16}\b")),
    (b"PRIVATE KEY-----", re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
)
_HOMES: tuple[tuple[bytes, re.Pattern[bytes]], ...] = (
    (b"/home/", re.compile(rb"/home/[A-Za-z0-9._-]+")),
    (b"/Users/", re.compile(rb"/Users/[A-Za-z0-9._-]+")),
    (b"/root/", re.compile(rb"(?<![\w.~>-])/root/")),
)
_HOSTS: tuple[tuple[bytes, re.Pattern[bytes]], ...] = (
    (b".internal", re.compile(rb"\b[A-Za-z0-9-]+\.internal\b")),
    (b".lan", re.compile(rb"\b[A-Za-z0-9-]*[0-9-][A-Za-z0-9-]*\.lan\b")),
    (b".local", re.compile(rb"\b[A-Za-z0-9-]*[0-9-][A-Za-z0-9-]*\.local\b")),
    (b".localdomain", re.compile(rb"\b(?!localhost)[A-Za-z0-9-]+\.localdomain\b")),
    (b".corp.", re.compile(rb"\b[A-Za-z0-9-]+\.corp\.[a-z]+\b")),
    (b".amazonaws.com", re.compile(rb"\b[A-Za-z0-9.-]+\.compute(?:-1)?\.amazonaws\.com\b")),
    (b"ip-", re.compile(rb"\bip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}\b")),
)
_MAIL = re.compile(rb"@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b")
_MAIL_NAME = re.compile(rb"[A-Za-z0-9._%+-]+\Z")
# RFC 2606 names, and accounts of services that are nobody.
_NOBODY = re.compile(rb"(?:^git@|^noreply@|@(?:.*\.)?(?:example\.(?:com|net|org)|invalid|test)$)")
_V4_TAIL = re.compile(rb"\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w.]*\d)(?![A-Za-z_])")
_V4_HEAD = re.compile(rb"(?<![\w.-])\d{1,3}\Z")
# Four numbers after these are a version of something.
_VERSIONS = (b"==", b"version ", b'version":"', b"version=", b"v")
_V6 = re.compile(rb":(?::|[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:)")
_V6_LEFT = re.compile(rb"(?<![\w:.])[0-9A-Fa-f:]*\Z")
_V6_RIGHT = re.compile(rb"[0-9A-Fa-f:]*(?![\w])")
_HARDWARE = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")
_AROUND = 80


def leaks(block: bytes) -> Iterator[Leak]:
    """Everything in a block that looks like a secret or names a person, machine or place."""
    for kind, patterns in (("secret", _SECRETS), ("home directory", _HOMES), ("host name", _HOSTS)):
        for head, pattern in patterns:
            if head in block:
                for match in pattern.finditer(block):
                    yield Leak(match.start(), kind, _shown(match[0]))
    if b"@" in block:
        yield from _mail(block)
    yield from _v4(block)
    yield from _v6(block)


def _mail(block: bytes) -> Iterator[Leak]:
    for match in _MAIL.finditer(block):
        name = _MAIL_NAME.search(block, max(0, match.start() - _AROUND), match.start())
        if name and not _NOBODY.search(name[0] + match[0]):
            yield Leak(name.start(), "e-mail address", _shown(name[0] + match[0]))


def _v4(block: bytes) -> Iterator[Leak]:
    for match in _V4_TAIL.finditer(block):
        left = max(0, match.start() - _AROUND)
        head = _V4_HEAD.search(block, left, match.start())
        if head is None or block[left : head.start()].endswith(_VERSIONS):
            continue
        if _is_somebody((head[0] + match[0]).decode()):
            yield Leak(head.start(), "address", _shown(head[0] + match[0]))


def _v6(block: bytes) -> Iterator[Leak]:
    done = 0
    for match in _V6.finditer(block):
        if match.start() < done:
            continue
        left = _V6_LEFT.search(block, max(0, match.start() - _AROUND), match.start())
        right = _V6_RIGHT.match(block, match.end())
        if left is None or right is None:
            continue
        done = right.end()
        text = block[left.start() : right.end()]
        word = text.decode("ascii")
        if _HARDWARE.fullmatch(word):
            yield Leak(left.start(), "hardware address", _shown(text))
        elif word.count(":") >= 3 and _is_somebody(word):
            yield Leak(left.start(), "address", _shown(text))


def _is_somebody(text: str) -> bool:
    """Whether an address can be anybody's: not loopback, unspecified, reserved or documentation."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or address.is_reserved:
        return False
    return not any(address in network for network in _DOCUMENTATION)


# RFC 5737, RFC 3849; netmasks begin with 255, which is_reserved covers.
_DOCUMENTATION = tuple(
    ipaddress.ip_network(text)
    for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)


def _shown(found: bytes) -> str:
    return f"{found[:4].decode('utf-8', 'replace')}… ({len(found)} characters)"
