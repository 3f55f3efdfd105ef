"""Statistics over boots: dispersion, equivalence, resampling, nesting, power.

Invariant: pure functions; whatever draws random numbers takes a seed and returns it.
"""
