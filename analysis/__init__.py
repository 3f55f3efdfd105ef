"""Records to runs read, metrics, statistics, claims and tables."""
