"""One agent: its handle, its driver, and the turn, step and attempt that the driver runs."""
