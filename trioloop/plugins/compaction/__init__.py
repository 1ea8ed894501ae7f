"""Replacing the older part of a history with a summary when the context window fills.

The model that the agent asks writes the summary, in an aside. The whole stays in the log: a bracket
of `compaction/start`, `compaction/summary` and `compaction/end` tells what happened, and a
`user/message` that replaces a range is what the model sees of it from then on.
"""

from trioloop.plugins.compaction.events import (
    CompactionEnded,
    CompactionStarted,
    CompactionState,
    CompactionSummarised,
    compaction_state,
)
from trioloop.plugins.compaction.policy import compaction
from trioloop.plugins.compaction.summary import INSTRUCTIONS, SummaryError

__all__ = [
    "INSTRUCTIONS",
    "CompactionEnded",
    "CompactionStarted",
    "CompactionState",
    "CompactionSummarised",
    "SummaryError",
    "compaction",
    "compaction_state",
]
