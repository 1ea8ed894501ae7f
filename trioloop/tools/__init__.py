"""Tools: defining them, which of them a step has, and running their calls.

`trioloop.tools.pool` runs calls without an agent, and `trioloop.tools.workspace` has ready-made
tools for the files of a project; both are imported from there.
"""

from trioloop.ports import ToolOutcome
from trioloop.tools.context import NestedCall, ToolContext
from trioloop.tools.registry import ResolvedToolSet, ToolConditionContext, ToolRegistry
from trioloop.tools.tool import Tool, tool

__all__ = [
    "NestedCall",
    "ResolvedToolSet",
    "Tool",
    "ToolConditionContext",
    "ToolContext",
    "ToolOutcome",
    "ToolRegistry",
    "tool",
]
