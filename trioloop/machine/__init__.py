"""The decisions of the loop, without I/O: inbox, turns, tool plans, retry delays."""
