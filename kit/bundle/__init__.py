"""Bundles for hosts without a network: chosen, downloaded by hash, cut into parts, here."""
