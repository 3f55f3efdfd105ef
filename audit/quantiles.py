"""Quantiles of F and chi-square for the second computation of claims.

Invariant: without scipy or numpy, as audit/counted.py is without them: no mistake stands on both
sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_HALVINGS = 80


def f_alike(tail: float, free: int) -> float:
    """The ratio that F of as many degrees of freedom above as below exceeds with this chance.

    With F = tan^2 the chance is an integral of (sin cos)^(free - 1), by Simpson's rule.
    """
    scale = 2 * math.exp(math.lgamma(free) - 2 * math.lgamma(free / 2))
    steps = 2000

    def below(angle: float) -> float:
        at = [
            (math.sin(angle * i / steps) * math.cos(angle * i / steps)) ** (free - 1)
            for i in range(steps + 1)
        ]
        return (
            scale * angle / steps / 3 * (at[0] + 4 * sum(at[1::2]) + 2 * sum(at[2:-1:2]) + at[-1])
        )

    return math.tan(_where(below, 1 - tail, math.pi / 4, math.pi / 2)) ** 2


def chi_square(share: float, free: int) -> float:
    """What chi-square of so many degrees of freedom stays below with this chance.

    By the series of the incomplete gamma function: M. Abramowitz and I. A. Stegun, Handbook of
    Mathematical Functions, 1964, 6.5.29.
    """
    half = free / 2

    def below(value: float) -> float:
        x = value / 2
        term = total = 1 / half
        at = half
        while term > total * 1e-17:
            at += 1
            term *= x / at
            total += term
        return total * math.exp(half * math.log(x) - x - math.lgamma(half))

    return _where(below, share, 1e-12, 20.0 * free + 60)


def _where(rising: Callable[[float], float], value: float, low: float, high: float) -> float:
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return low
