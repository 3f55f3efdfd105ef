"""How boots may be distributed: the shapes under which intervals are tried.

Invariant: every shape has mean 0 and variance 1, exactly; what is drawn follows from the generator
alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from analysis.statistics.samples import Floats

# Boots of one group differ a fifth as much as all boots together: the groups do not overlap.
_WITHIN = 0.2


@dataclass(frozen=True, slots=True)
class Shape:
    """A distribution by name. `slow`: share of boots in the slow of two groups, 0: one group.

    `tail` is the shape parameter of a gamma distribution that runs out to the slow side, 0: normal.
    """

    name: str
    slow: float = 0.0
    tail: float = 0.0

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
        """Standardised values; below 0 is slow."""
        if self.tail:
            return -(rng.gamma(self.tail, 1.0, size) - self.tail) / math.sqrt(self.tail)
        if not self.slow:
            return rng.normal(size=size)
        apart = math.sqrt((1 - _WITHIN**2) / (self.slow * (1 - self.slow)))
        group = np.where(rng.random(size) < self.slow, self.slow - 1, self.slow)
        return apart * group + _WITHIN * rng.normal(size=size)


NORMAL = Shape("normal")
EVEN = Shape("two even groups", slow=1 / 2)
QUARTER = Shape("one boot in four slow", slow=1 / 4)
EIGHTH = Shape("one boot in eight slow", slow=1 / 8)
TAIL = Shape("slow tail", tail=2.0)
SHAPES = (NORMAL, EVEN, QUARTER, EIGHTH, TAIL)
