"""Outside the container: keeps one running, and says from there what it is made of."""
