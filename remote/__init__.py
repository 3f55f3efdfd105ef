"""What runs on the measured host: the harness, its client and the reference server."""
