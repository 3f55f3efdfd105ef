"""Checks over records, tables and the repository; each a pure function returning findings."""
