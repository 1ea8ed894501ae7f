"""The pipeline of one call (tools.md section 3).

decode -> pre-policy -> guards -> durable gate -> body, inside what wraps it -> bounding ->
post-policy -> recorded. When a call does which of these is up to the pool.
"""

import functools
import math
from collections.abc import Sequence

import attrs
import trio

from trioloop.errors import ArgumentsError, EventEncodingError, StoreError
from trioloop.events import EventData, ToolCallStarted, ToolDispatched, ToolResultLogged
from trioloop.hooks import CallRequest
from trioloop.messages import ToolCallBlock, UserMessage
from trioloop.ports import Mode, ToolOutcome
from trioloop.tools import failures, policies
from trioloop.tools.batch import BatchRun, BodyEnded
from trioloop.tools.body import Body
from trioloop.tools.context import ToolContext
from trioloop.tools.given import Given
from trioloop.tools.isolation import first_of, without_cancelled
from trioloop.tools.job import CallScope
from trioloop.tools.places import Place
from trioloop.tools.result import bounded, encoding_failed
from trioloop.tools.tool import Tool


class RunningCall:
    """One call of a batch, from the answer that asks for it to its result.

    Attributes:
        id: the call's id.
        batch_run: what it shares with the other calls of its batch.
        root: the call of the answer that it belongs to: itself, or the one that made it.
        nested: how many calls were made under it, if it is a root.
        given: what its body is given, and what that says through it.
        fault: what its own calls' pool failed with (P21).
        outcome: what it came to, once that is known.
        contexts: messages that it adds to next-step (T7), once it is recorded.
        recorded: whether its result is in the log.
    """

    __slots__ = (
        "_arguments",
        "_batch",
        "_block",
        "_body",
        "_call_seq",
        "_faults",
        "_request",
        "_skips_post",
        "_tool",
        "batch_run",
        "contexts",
        "fault",
        "given",
        "id",
        "nested",
        "outcome",
        "recorded",
        "root",
    )

    def __init__(self, run: BatchRun, block: ToolCallBlock, key: str | None = None) -> None:
        batch = run.batch
        self.id = block.call
        self.root: RunningCall = self
        self.nested = 0
        self.fault: BaseException | None = None
        self.outcome: ToolOutcome | None = None
        self.contexts: list[UserMessage] = []
        self.recorded = False
        self.batch_run = run
        self._batch = batch
        self._block = block
        self._body = Body(block, batch.limits, run.alarms, batch.threads)
        self._tool: Tool | None = None
        self._arguments: dict[str, object] = {}
        self._faults: tuple[str, ...] = ()
        self._request: CallRequest | None = None
        self._call_seq: int | None = None
        self.given = Given(batch, block.call, key)
        self._skips_post = False

    # Stopping it

    @property
    def cause(self) -> failures.Cause | None:
        """Why it was told to stop; None: it wasn't."""
        return self._body.cause

    @property
    def _cut_by(self) -> failures.Cause:
        """What cut it off: its own cause, or the turn's if nobody has told it yet."""
        return self._body.cause or "aborted"

    async def look(self) -> None:
        """Raise a cancel that its body was told of and that something inside it has swallowed."""
        await self._body.look()

    def cancel(self) -> None:
        """Cancel this call alone (T12): at once if it runs, when its turn comes if it waits."""
        self.stop("cancelled")

    def stop(self, cause: failures.Cause) -> None:
        """Tell it to stop; only the first cause counts, and none after its end."""
        if not self.given.closed:
            self._body.stop(cause)

    # Starting, as the pool asks

    def mode(self) -> Mode | None:
        """Its mode as the tools are now (T1); None: there is nothing to run."""
        if self._body.cause is not None:
            return None
        tool = self._batch.tools.lookup(self._block.name)
        if tool is not self._tool:
            self._tool = tool
            if tool is not None:
                self._decode(tool)
        if tool is None or self._faults:
            return None
        return tool.mode_of(self._arguments)

    def _decode(self, tool: Tool) -> None:
        raw = self._block.arguments
        bytes_max = self._batch.limits.arguments_bytes_max
        self._faults = ()
        if len(raw) > bytes_max:
            self._faults = (f"they have {len(raw)} characters; {bytes_max} bytes are allowed",)
            return
        try:
            self._arguments = tool.decode(raw)
        except ArgumentsError as error:
            self._faults = error.faults

    def start(self, scope: CallScope | None) -> bool:
        """It starts (T5), unless it's known by now that it can't run."""
        self._body.enter(scope)
        self.outcome = self._refusal()
        if self.outcome is not None:
            return False
        asks = self.batch_run.policies.asks_before
        if not asks and self._batch.tools.has_guards:
            self.outcome = policies.ask_guards(self._batch.tools, self._as_request())
        fact = self._start(not asks and self.outcome is None)
        self._call_seq = self._batch.session.append(fact)[0].seq
        return asks

    def _start(self, dispatched: bool) -> EventData:
        """The fact that it starts."""
        return ToolCallStarted(self.id, self._block.name, self._block.arguments, dispatched)

    def _refusal(self) -> ToolOutcome | None:
        """The outcome of a call that can't even start."""
        if self._body.cause is not None:
            self._skips_post = True
            return failures.stopped(self._body.cause, ran=False)
        if self._tool is None:
            name = self._block.name
            return failures.unknown_tool(name, self._batch.tools.near(name))
        if self._faults:
            return failures.invalid_arguments(self._tool.name, self._faults)
        return None

    def _as_request(self) -> CallRequest:
        if self._request is None:
            known = self._tool is not None and not self._faults
            self._request = CallRequest(
                agent=self._batch.agent,
                call=self.id,
                name=self._block.name,
                arguments=policies.json_object(self._block.arguments) if known else {},
                effects=self._tool.effects if self._tool is not None else "once",
                parent=None if self.root is self else self.root.id,
            )
        return self._request

    async def admit(self) -> bool:
        """Ask the pre-policy, then the guards; `tool/dispatch` tells that they let it run."""
        tool = self._tool
        assert tool is not None
        answer = await self.batch_run.policies.ask_before(self._as_request(), tool, self._arguments)
        if isinstance(answer, policies.Admitted):
            tools = self._batch.tools
            denial = policies.ask_guards(tools, answer.request) if tools.has_guards else None
            if denial is None:
                return self._dispatch(answer)
            answer = denial
        self.outcome = answer
        return False

    def _dispatch(self, admitted: policies.Admitted) -> bool:
        assert self._call_seq is not None
        self._request = admitted.request
        self._arguments = admitted.arguments
        self._batch.session.append(ToolDispatched(self._call_seq, admitted.changed, admitted.by))
        return True

    # Running

    async def run(self, fence: trio.CancelScope, place: Place | None) -> None:
        """Run the body, behind the durable gate and inside what wraps it."""
        tool = self._tool
        self.given.place = place
        if self.outcome is not None:
            return
        if tool is None:  # it was removed while the policy was asked
            self.outcome = self._refusal()
            return
        if tool.effects != "read-only":
            await self._batch.session.gate()
        if self.batch_run.policies.wraps:
            self.outcome = await self.batch_run.policies.run_around(
                self._as_request(), lambda: self._run_wrapped(tool, fence)
            )
        else:
            self.outcome = await self._body.run(tool, self._arguments, self._context, fence)

    async def _run_wrapped(self, tool: Tool, fence: trio.CancelScope) -> ToolOutcome:
        await trio.lowlevel.checkpoint_if_cancelled()  # what wraps it may have waited (R8)
        return await self._body.run(tool, self._arguments, self._context, fence)

    def _context(self, nursery: trio.Nursery | None) -> ToolContext:
        return self.given.context(
            nursery, lambda: self.cause is not None, functools.partial(self.batch_run.nest, self)
        )

    @property
    def _bytes_max(self) -> int:
        own = None if self._tool is None else self._tool.result_bytes_max
        return own or self._batch.limits.result_bytes_max

    # Its end

    def end(self, error: BaseException | None) -> BaseException | None:
        """It has ended; what stopped it, if anything, decides what it came to."""
        self.given.closed = True
        if self._body.started:
            self._batch.notify(BodyEnded(self.id))
        if self.fault is not None:
            self.outcome = failures.internal()
            return self.fault
        if error is None and self.outcome is not None and not self._body.abandoned:
            return None
        interrupt = first_of(error, KeyboardInterrupt)
        if interrupt is not None:
            self._stop_short("aborted")
            return interrupt
        store = first_of(error, StoreError)
        if store is not None:
            return self._end_by_store(store)
        if self._body.abandoned:
            self.outcome = failures.abandoned()
        elif error is not None:
            self._end_by(error)
        elif self.outcome is None:  # its fence swallowed the cancel of a thread that came in time
            self._stop_short(self._cut_by)
        return None

    def _end_by(self, error: BaseException) -> None:
        rest = without_cancelled(error)
        if rest is not None:  # bodies and policies give outcomes, so the fence itself raised this
            self.outcome = failures.left_open(rest)
        elif self._body.cause is not None or trio.current_effective_deadline() == -math.inf:
            self._stop_short(self._cut_by)
        else:
            self.outcome = failures.leaked()

    def _end_by_store(self, error: BaseException) -> BaseException | None:
        """Its own store's failure is nobody's result (D3); another's is the body's affair."""
        if self._body.started and self._batch.session.failure is None:
            self.outcome = failures.raised(error)
            return None
        self._stop_short("aborted")
        return error

    def _stop_short(self, cause: failures.Cause) -> None:
        ran = self._body.started
        if ran and self._body.ended and self._body.completed:
            self.outcome = failures.withheld(
                "The tool ran, but what wraps it was stopped before it was through with the result."
            )
            return
        self.outcome = (
            failures.internal() if self.batch_run.failed else failures.stopped(cause, ran=ran)
        )
        self._skips_post = cause == "aborted"

    def skip(self) -> None:
        """It never started, and won't: the turn was cancelled."""
        self.given.closed = True
        if self.batch_run.failed:
            self.outcome = failures.internal()
        else:
            self.outcome = failures.stopped(self._cut_by, ran=False)
        self._skips_post = True

    # Recording

    @property
    def waits_for_policy(self) -> bool:
        """Whether a post-policy reads its outcome."""
        return not self._skips_post and self.batch_run.policies.asks_after

    async def post(self) -> BaseException | None:
        """Ask the post-policy. Cut off by a cancel, it is asked again, for `post_s` at most (T9).

        The cancel isn't lost: it goes up when the batch is recorded.
        """
        try:
            if not await self._ask_post():
                began = trio.current_time()
                # Bounded by what the batch's policies have left of `post_s` after a cancel.
                with trio.move_on_after(max(self.batch_run.post_left_s, 0), shield=True):
                    await self._ask_post()
                self.batch_run.post_left_s -= trio.current_time() - began
        except KeyboardInterrupt as interrupt:
            return interrupt
        finally:
            if not self._skips_post:
                self.outcome = failures.withheld(
                    "The result is withheld: the turn was cancelled before a policy had read it."
                )
                self._skips_post = True
        return None

    async def _ask_post(self) -> bool:
        """Ask once.

        Returns:
            Whether it's through.
        """
        assert self.outcome is not None
        try:
            outcome, contexts = await self.batch_run.policies.ask_after(
                self._as_request(), self.outcome, self._bytes_max
            )
        except BaseException as error:  # only a cancel, a stray one included, or Ctrl-C comes here
            if without_cancelled(error) is not None:
                raise
            return False
        self.outcome = self._vetted(outcome, contexts)
        self._skips_post = True
        return True

    def _vetted(self, outcome: ToolOutcome, contexts: Sequence[UserMessage]) -> ToolOutcome:
        """A vetted outcome, with all that joins next-step: the body's own, then the policy's."""
        if outcome.code == "TOOL_RESULT_WITHHELD":
            self.given.contexts.clear()
        if not contexts:
            return outcome
        return attrs.evolve(outcome, additional_contexts=(*outcome.additional_contexts, *contexts))

    def record(self) -> None:
        """Record its one result."""
        self.given.closed = True
        outcome = self.outcome if self.outcome is not None else failures.internal()
        self.contexts = [*self.given.contexts, *outcome.additional_contexts]
        try:
            outcome = bounded(outcome, self._bytes_max)
            self._log(outcome)
        except EventEncodingError as error:
            outcome = encoding_failed(error)
            self._log(outcome)
        self.outcome = outcome
        self.recorded = True
        self._batch.running.pop(self.id, None)

    def _log(self, outcome: ToolOutcome) -> None:
        self._batch.session.append(
            ToolResultLogged(
                call=self.id,
                content=outcome.content,
                is_error=outcome.is_error,
                code=outcome.code,
                meta=outcome.meta,
                call_seq=self._call_seq,
                concludes_turn=outcome.concludes_turn and not outcome.is_error,
            )
        )
