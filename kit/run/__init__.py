"""One run from its job to its records at home: start, follow, resume, fetch."""
