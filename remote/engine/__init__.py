"""The engine as a process: how to start it, what it said, what it counted, and that it is gone."""
