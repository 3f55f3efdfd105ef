"""The bench as a picture: the stamp errors of each client and case, on a log axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Protocol

WIDTH, LEFT, ROW, TOP = 900, 330, 18, 40
LOW_MS, HIGH_MS = 0.001, 10_000.0


class Shown(Protocol):
    """What a row must say."""

    client: str
    streams: int
    mode: str
    offered: int
    rate: int
    p50_ms: float
    p99_ms: float


def svg(rows: Sequence[Shown]) -> str:
    """One line a row, from the median (hollow) to the 99th percentile (full)."""
    height = TOP + ROW * (len(rows) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">',
        "<style>text { font: 12px sans-serif }</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="10" y="20">Stamp error of each client, ms: p50 (hollow) to p99 (full)</text>',
    ]
    for exponent in range(-3, 5):
        ms = 10.0**exponent
        x = _x(ms)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{TOP - 8}" y2="{height - 25}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{height - 8}" text-anchor="middle">{ms:g}</text>')
    for number, row in enumerate(rows):
        y = TOP + ROW * number + ROW // 2
        name = f"{row.client}, {row.streams} streams {row.mode}, {row.offered}/s"
        parts.append(f'<text x="{LEFT - 20}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        if not row.rate:
            parts.append(f'<text x="{LEFT}" y="{y + 4}" fill="#a00">failed</text>')
            continue
        colour = "#06c" if row.client == "ours" else "#777"
        a, b = _x(row.p50_ms), _x(row.p99_ms)
        parts.append(f'<line x1="{a}" x2="{b}" y1="{y}" y2="{y}" stroke="{colour}"/>')
        parts.append(f'<circle cx="{a}" cy="{y}" r="4" fill="white" stroke="{colour}"/>')
        parts.append(f'<circle cx="{b}" cy="{y}" r="4" fill="{colour}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(ms: float) -> float:
    share = math.log(min(max(ms, LOW_MS), HIGH_MS) / LOW_MS) / math.log(HIGH_MS / LOW_MS)
    return round(LEFT + share * (WIDTH - LEFT - 40), 1)
