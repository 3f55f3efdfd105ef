"""The docker runtime: an unmodified image, named by digest, with the harness mounted into it."""
