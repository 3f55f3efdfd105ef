"""What the paper takes from the records besides the values of claims: provenance, verdicts, runs.

Invariant: bytes of LaTeX that depend on records and paper sources alone; each number in them leads
to what it was made of.
"""
