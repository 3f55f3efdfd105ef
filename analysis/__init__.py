"""Records to frames, metrics, statistics, claims and tables."""
