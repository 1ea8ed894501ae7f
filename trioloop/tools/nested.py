"""A call that a running call makes: the same pipeline, logged under the call of the answer."""

from trioloop.errors import EventEncodingError
from trioloop.events import EventData, NestedCallStarted, NestedResultLogged
from trioloop.ids import nested_call_id
from trioloop.messages import ToolCallBlock
from trioloop.ports import Mode, ToolOutcome
from trioloop.tools import failures
from trioloop.tools.call import RunningCall
from trioloop.tools.context import NestedCall
from trioloop.tools.job import CallScope
from trioloop.tools.strict import written
from trioloop.tools.tool import Tool


class RunningNestedCall(RunningCall):
    """One call that another call makes. What never starts leaves no trace in the log."""

    __slots__ = ("_own_scope", "_parent", "_unwritten")

    def __init__(self, parent: RunningCall, call: NestedCall) -> None:
        root = parent.root
        text, self._unwritten = _as_text(call)
        block = ToolCallBlock(nested_call_id(root.id, root.nested), "", call.name, text)
        super().__init__(parent.batch_run, block, parent.given.key_of(call.name, text))
        root.nested += 1
        self.root = root
        self._parent = parent
        self._own_scope: CallScope | None = None

    def mode(self) -> Mode | None:
        """Its mode as the tools are now (T1); None: there is nothing to run, as after a cancel."""
        if self._parent.cause is not None:
            self.stop(nested_cause(self._parent))
        return super().mode()

    def start(self, scope: CallScope | None) -> bool:
        """It starts, unless it's known by now that it can't run."""
        self._own_scope = scope
        return super().start(scope)

    def stop(self, cause: failures.Cause) -> None:
        """Tell it to stop, by its own scope: the turn's may be shut out by its parent's fence."""
        if not self.given.closed:
            super().stop(cause)
            if self._own_scope is not None:
                self._own_scope.cancel()

    @property
    def _cut_by(self) -> failures.Cause:
        return self.cause or nested_cause(self._parent)

    def _decode(self, tool: Tool) -> None:
        if self._unwritten is None:
            super()._decode(tool)
        else:
            self._faults = (self._unwritten,)

    def _start(self, dispatched: bool) -> EventData:
        return NestedCallStarted(
            self.id, self.root.id, self._block.name, self._block.arguments, dispatched
        )

    def _log(self, outcome: ToolOutcome) -> None:
        if self._call_seq is None:
            return
        self._batch.session.append(
            NestedResultLogged(
                call=self.id,
                parent=self.root.id,
                content=outcome.content,
                is_error=outcome.is_error,
                code=outcome.code,
            )
        )


def nested_cause(parent: RunningCall) -> failures.Cause:
    """Why the calls of a call stop that was itself told to, or whose turn was cancelled."""
    return "aborted" if parent.cause in (None, "aborted") else "cancelled"


def _as_text(call: NestedCall) -> tuple[str, str | None]:
    """The JSON text of a call's arguments, or what is wrong with them."""
    if isinstance(call.arguments, str):
        return call.arguments, None
    try:
        return written(dict(call.arguments), bytes_max=1 << 62)[0], None
    except EventEncodingError as error:
        return "", f"{error.path}: expected a JSON value, but {error.why}"
