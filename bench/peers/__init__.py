"""The same work on other runtimes, each in an environment of its own.

`environments` makes those; `compare` is the benchmark; `turns` is the work. Each `on_` module does
it on one runtime, as its documentation shows, and imports nothing that its environment hasn't.
"""
