"""Benchmarks: what things cost, each as a ratio to a baseline timed in the same run.

`python -m bench` runs all; `python -m bench --help` tells the rest.
"""
