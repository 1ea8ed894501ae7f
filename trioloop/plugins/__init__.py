"""Policies, each made with public hooks, tools and events alone.

Each is an async context manager over a runtime: `open_runtime(plugins=[retry])`, or
`async with retry(runtime):` where it needs options.
"""

from trioloop.plugins.approval import Approvals
from trioloop.plugins.asking import Rule, approval
from trioloop.plugins.compaction import compaction
from trioloop.plugins.limits import Budget, Price, limits
from trioloop.plugins.plan_mode import plan_mode
from trioloop.plugins.pruning import pruning
from trioloop.plugins.retry import retry
from trioloop.plugins.spill import spill
from trioloop.plugins.subagents import Delegate, subagents

__all__ = [
    "Approvals",
    "Budget",
    "Delegate",
    "Price",
    "Rule",
    "approval",
    "compaction",
    "limits",
    "plan_mode",
    "pruning",
    "retry",
    "spill",
    "subagents",
]
