"""What a session's events mean: grammar, state, what the model sees. Pure functions of events."""
