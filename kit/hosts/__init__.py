"""Where a run may happen: the Protocol of a host, this machine, machines reached otherwise."""
