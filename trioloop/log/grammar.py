"""The log's grammar as a state machine: what may follow what."""

import enum


class Phase(enum.IntEnum):
    """Where in the grammar a log stands."""

    NEW = 0
