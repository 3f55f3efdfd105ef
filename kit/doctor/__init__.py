"""Look at a host before anything is put on it: one topic a file, each probes and a pure reading."""
