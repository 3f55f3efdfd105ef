"""Clouds through SkyPilot, an extra: pip install .[sky]."""
