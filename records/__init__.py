"""The record format: digests, plans, canonical encoding, hash chain, journal, checkpoint."""
