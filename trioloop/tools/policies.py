"""Asks the policies of one call: before it runs, around its body, and about its outcome.

Nothing here records or runs anything. A policy that fails never lets a call through, and never
lets a result out (tools.md section 3).
"""

from collections.abc import Sequence

import attrs
import msgspec
import trio

from trioloop.errors import ArgumentsError, HookMisuseError, StoreError
from trioloop.hooks import (
    Accept,
    Allow,
    Ask,
    CallRequest,
    Deny,
    Hooks,
    PostExecution,
    Replace,
    Withhold,
)
from trioloop.hooks.dispatch import Next, anybody_listens, raised_by, run_waterfall
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.messages import UserMessage
from trioloop.ports import Approver, ToolOutcome
from trioloop.tools import failures
from trioloop.tools.isolation import first_of, without_cancelled
from trioloop.tools.registry import ResolvedToolSet
from trioloop.tools.tool import Tool


@attrs.frozen
class Admitted:
    """A call may run, with these arguments. `changed` is their text where a policy changed them."""

    request: CallRequest
    arguments: dict[str, object]
    changed: str | None = None
    by: str | None = None


class Policies:
    """The hooks around the calls of a batch, of every scope, and who answers what they ask.

    Args:
        hooks: of each scope, the widest first.
        approver: asks a person; None: nobody can be asked.
    """

    __slots__ = ("_after", "_approver", "_around", "_before")

    def __init__(self, hooks: Sequence[Hooks], approver: Approver | None) -> None:
        self._before = tuple(scope.pre_execute for scope in hooks)
        self._around = tuple(scope.execute for scope in hooks)
        self._after = tuple(scope.post_execute for scope in hooks)
        self._approver = approver

    @property
    def asks_before(self) -> bool:
        """Whether a pre-policy listens, in any scope."""
        return anybody_listens(self._before)

    @property
    def wraps(self) -> bool:
        """Whether anything wraps bodies."""
        return anybody_listens(self._around)

    @property
    def asks_after(self) -> bool:
        """Whether a post-policy listens."""
        return anybody_listens(self._after)

    async def ask_before(
        self, request: CallRequest, tool: Tool, arguments: dict[str, object]
    ) -> Admitted | ToolOutcome:
        """Ask the pre-policy whether a call may run, and a person where it says so.

        Returns:
            What it may run with, or the outcome of a call that may not.

        Raises:
            trio.Cancelled: it was cancelled, perhaps too late for the policy to notice.
        """
        try:
            answer = await run_waterfall(self._before, request, _allowed)
            if isinstance(answer, Ask):
                answer = await self._asked(answer, request)
        except BaseException as error:  # a policy may raise anything; it then lets nothing through
            return failures.denied_by_fault(raised_by(error), _own(error))
        await trio.lowlevel.checkpoint_if_cancelled()  # a last look, before the call may run (R8)
        if isinstance(answer, Deny):
            return failures.denied(answer.reason)
        if not isinstance(answer, Allow):
            return failures.denied_by_fault(None, _misuse("tools.pre_execute", answer))
        if answer.arguments is None:
            return Admitted(request, arguments)
        return self._with_arguments(answer.arguments, request, tool)

    async def _asked(self, ask: Ask, request: CallRequest) -> PrePolicy:
        if self._approver is None:
            return Deny(f"it needs an approval, and nobody is here to be asked: {ask.question}")
        answer = await self._approver.ask(request.agent, request.call, ask.question)
        if answer is True:
            return Allow(ask.arguments)
        return Deny(answer or f"the approval was refused: {ask.question}")

    def _with_arguments(
        self, changed: dict[str, object], request: CallRequest, tool: Tool
    ) -> Admitted | ToolOutcome:
        by = ", ".join(one.name for hook in self._before for one in hook.listeners)
        try:
            text = msgspec.json.encode(changed).decode()
            arguments = tool.decode(text)
        except ArgumentsError as error:
            return failures.invalid_arguments(f"{tool.name}, as {by} changed them", error.faults)
        except (TypeError, ValueError, RecursionError) as error:
            return failures.denied_by_fault(by, error)
        return Admitted(attrs.evolve(request, arguments=json_object(text)), arguments, text, by)

    async def run_around(self, request: CallRequest, body: Next[ToolOutcome]) -> ToolOutcome:
        """Run a body inside what wraps it.

        Returns:
            What the outermost listener answered; the failure of the one that raised.

        Raises:
            trio.Cancelled: it was cancelled.
            StoreError: the body met the failure of a store.
        """
        try:
            outcome = await run_waterfall(self._around, request, body)
        except StoreError:
            raise
        except BaseException as error:  # a wrapper may raise anything; that is the call's failure
            return failures.raised(_own(error))
        if not isinstance(outcome, ToolOutcome):
            return failures.raised(_misuse("tools.execute", outcome))
        return outcome

    async def ask_after(
        self, request: CallRequest, outcome: ToolOutcome, bytes_max: int
    ) -> tuple[ToolOutcome, Sequence[UserMessage]]:
        """Ask the post-policy about an outcome.

        Returns:
            The outcome to record, and the messages that join next-step. Where a policy failed or
            said so, nothing of the outcome is left.

        Raises:
            trio.Cancelled: it was cancelled.
        """
        payload = PostExecution(request, outcome, bytes_max)
        try:
            answer = await run_waterfall(self._after, payload, _accepted)
        except BaseException as error:  # a policy may raise anything; it then lets nothing out
            who = raised_by(error) or "that reads results"
            return failures.withheld(
                f"The result is withheld: the policy {who} failed.", _own(error)
            ), ()
        if isinstance(answer, Accept):
            return outcome, tuple(answer.contexts)
        if isinstance(answer, Replace):
            return attrs.evolve(outcome, content=answer.content, value=None), tuple(answer.contexts)
        if isinstance(answer, Withhold):
            return failures.withheld(answer.feedback), tuple(answer.contexts)
        misuse = _misuse("tools.post_execute", answer)
        return failures.withheld("The result is withheld: a policy gave no answer.", misuse), ()


async def _allowed() -> PrePolicy:
    return _ALLOW


async def _accepted() -> PostPolicy:
    return _ACCEPT


_ALLOW = Allow()
_ACCEPT = Accept()


def ask_guards(tools: ResolvedToolSet, request: CallRequest) -> ToolOutcome | None:
    """Ask the guards about a call's final arguments; None: they let it run."""
    try:
        denial = tools.denied(request)
    except Exception as error:
        return failures.denied_by_fault("of a guard", error)
    return None if denial is None else failures.denied(denial.reason)


def json_object(text: str) -> dict[str, object]:
    """The JSON object of some arguments that were decoded before; empty where there are none."""
    found = msgspec.json.decode(text) if text.strip() else {}
    return found if isinstance(found, dict) else {}


def _own(error: BaseException) -> BaseException:
    """A policy's own error. What isn't its own is raised: a cancel, or Ctrl-C."""
    interrupt = first_of(error, KeyboardInterrupt)
    if interrupt is not None:
        raise interrupt
    rest = without_cancelled(error)
    if rest is None:
        raise error
    return rest


def _misuse(hook: str, answer: object) -> HookMisuseError:
    return HookMisuseError(
        f"a listener of {hook} answered {answer!r}, which is none of its answers"
    )
