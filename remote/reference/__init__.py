"""The reference server: an OpenAI-compatible stream of known schedule and known send times."""
