"""Windows too large to hold: their requests in batches, the same figures from them."""
