"""One module a check: pure functions from the repository to findings."""
