"""Calls that a process left open when it died, and that are run again (D4).

A call that had been dispatched may run again if neither it nor any call that it had made can do
harm by it: each of their tools is read-only or idempotent. It goes on under the `tool/call` that it
has, with the arguments that its policies let through, and with the same `ToolContext.key`. Every
other call gets the result that repair would have given it.
"""

from collections.abc import Callable

import msgspec

from trioloop.log.repair import lost_result
from trioloop.log.state import OpenCall
from trioloop.messages import ToolCallBlock
from trioloop.ports import Mode, ToolOutcome
from trioloop.tools import failures, policies
from trioloop.tools.batch import BatchRun
from trioloop.tools.call import RunningCall
from trioloop.tools.job import CallScope
from trioloop.tools.tool import Tool


def may_run_again(call: OpenCall, find: Callable[[str], Tool | None]) -> bool:
    """Whether a call that a process left open may be run again.

    Args:
        call: as the log has it.
        find: the tool of a name, as tools are now; None: there is none.
    """
    nested = (call.nested or {}).values()
    names = [call.block.name, *(one.name for one in nested if one.dispatched)]
    return call.dispatched and all(_is_repeatable(find(name)) for name in names)


def _is_repeatable(tool: Tool | None) -> bool:
    return tool is not None and tool.effects != "once"


class RepeatedCall(RunningCall):
    """A call that a process left open: run again where it may be, else known to be lost.

    Args:
        run: what it shares with the others.
        call: as the log has it.
    """

    __slots__ = ("_left",)

    def __init__(self, run: BatchRun, call: OpenCall) -> None:
        super().__init__(run, _final_block(call))
        self._left = call
        self._call_seq = call.call_seq
        self.nested = len(call.nested or ())  # ids go on behind those of its first run

    def mode(self) -> Mode | None:
        """Its mode; None: it doesn't run again."""
        mode = super().mode()
        return mode if self._runs else None

    def start(self, scope: CallScope | None) -> bool:
        """It goes on. It has started already, so nothing is logged, and no policy is asked."""
        self._body.enter(scope)
        if not self._runs or self._is_denied():
            self._lose()
        return False

    def skip(self) -> None:
        """The turn was cancelled before it could run again."""
        super().skip()
        self._lose()

    @property
    def _runs(self) -> bool:
        """Whether it may run again, as far as the tools are now and nobody has stopped it."""
        if self._body.cause is not None or self._tool is None or self._faults:
            return False
        return may_run_again(self._left, self._batch.tools.lookup)

    def _is_denied(self) -> bool:
        tools = self._batch.tools
        return tools.has_guards and policies.ask_guards(tools, self._as_request()) is not None

    def _stop_short(self, cause: failures.Cause) -> None:
        super()._stop_short(cause)
        if not self._body.started:
            self._lose()

    def _lose(self) -> None:
        """Let it come to what repair says of it, which no policy is asked about."""
        lost = lost_result(self._left)
        self.outcome = ToolOutcome(content=lost.content, is_error=True, code=lost.code)
        self._skips_post = True


def _final_block(call: OpenCall) -> ToolCallBlock:
    """What a call was let through with."""
    if call.changed is None:
        return call.block
    return msgspec.structs.replace(call.block, arguments=call.changed)
