"""Verdicts: records held against published figures, or against other records.

Invariant: what may not be compared is told as such, with the reason; it never enters a number.
"""
