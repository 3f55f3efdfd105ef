"""Runs in forms that others read: Parquet, CSV, RO-Crate, in-toto, Zenodo.

Invariant: an export has the same bytes whenever it is made from the same run, and a synthetic run
says in each that it is one. Nothing is exported that is not in the records.
"""
