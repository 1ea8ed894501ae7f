"""Many agents: the runtime that owns their nursery, store, models, tools and hooks."""
