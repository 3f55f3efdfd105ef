"""A host over SSH: configuration, keys, connection, files, processes that outlive the line."""
