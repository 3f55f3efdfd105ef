"""Claims over verified records: what they are, what they read, where they are cited."""
