"""The local tool: plans, locks, provisioning, launch, fetch, and the `kit` command."""
