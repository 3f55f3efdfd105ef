"""The host as found: facts, samples during a window, and the GPUs it has."""
