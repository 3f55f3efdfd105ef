"""Container registries over HTTP: every byte hashed here, nothing taken on a registry's word."""
