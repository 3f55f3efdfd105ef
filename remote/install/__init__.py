"""A bundle becomes an engine on a host without a network: verified, unpacked, installed."""
