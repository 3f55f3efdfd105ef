"""A figure's SVG as a data URI for an `img`, in which it can neither run nor load anything.

Invariant: the picture is the same at any size that a screen or paper shows; only what no eye can
see is left out: decimals of paths, comments, metadata.
"""

from __future__ import annotations

import re
from urllib.parse import quote

# What may stand as it is in a data URI within quotes (RFC 3986), and spaces, which browsers take.
_SAFE = " !$()*+,-./:;=?@_~"
_PATH = re.compile(r'(?<= d=")[^"]*')
# Beyond a hundredth of a point; outlines of glyphs are in units still smaller.
_DECIMALS = re.compile(r"(\.[0-9]{2})[0-9]+")
_UNSEEN = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->|(?<=>)\s+(?=<)", re.DOTALL)
_BLANK = re.compile(r"\s+")


def svg_uri(svg: bytes) -> str:
    """`data:image/svg+xml,…` of an SVG in UTF-8."""
    text = _UNSEEN.sub("", svg.decode())
    text = _PATH.sub(lambda match: _DECIMALS.sub(r"\1", match[0]), text)
    return "data:image/svg+xml," + quote(_BLANK.sub(" ", text), safe=_SAFE)
