"""The report page: what was measured, how sure it is, and where each number comes from."""
