"""Hook listeners that do what a script says, at every hook there is.

Each passes two waits before it passes on and two behind, the second of which hands over a value.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any

import attrs
import msgspec
import trio

from tests.simulation.deeds import ScriptedError, do, message
from tests.simulation.script import HookScript
from trioloop.chunks import Chunk, Finish, TextDelta
from trioloop.events import CallConfig
from trioloop.hooks import (
    Accept,
    Allow,
    Ask,
    AttemptFailed,
    Deny,
    Enter,
    Next,
    PreStep,
    Reject,
    Replace,
    Retry,
    Withhold,
)
from trioloop.hooks.points import Hooks, PostExecution, SectionText
from trioloop.messages import UserMessage, user_message
from trioloop.ports import ChunkStream, ToolOutcome

if TYPE_CHECKING:
    from tests.simulation.world import World

DOES: dict[str, tuple[str, ...]] = {
    "assemble": ("add", "drop", "alone"),
    "pre_step": ("edit", "add", "drop", "empty", "reject", "series", "series", "alone"),
    "request": ("temperature", "temperature", "switch", "switch", "nobody"),
    "request_error": ("retry", "later", "fresh"),
    "turn_stopping": (),
    "stream": ("wrap", "shorten", "alone", "break"),
    "pre_execute": ("deny", "ask", "change", "misuse"),
    "execute": ("alone", "tell"),
    "post_execute": ("replace", "withhold", "contexts", "misuse"),
}
"""What a listener of each hook may do; besides, all may `pass`, `raise`, `leak` and `twice`."""


@attrs.define(eq=False)
class Listener:
    """One listener; `calls` counts how often it was asked."""

    world: "World"
    script: HookScript
    calls: int = 0

    def register(self, hooks: Hooks) -> None:
        """Join the hook of the script in some scope."""
        serial = self.script.place == "turn_stopping"
        function = self._serve if serial else self._wrap
        hook: Any = getattr(hooks, self.script.place)  # Any: one of nine, of different types
        hook.add(function, timeout_s=self.script.timeout_s)

    async def _serve(self, payload: Any) -> None:
        async def nothing() -> None:
            pass

        await self._wrap(payload, nothing)

    async def _wrap(self, payload: Any, next: Next[Any]) -> Any:  # Any: of any hook
        does = self.script.does if self.calls in self.script.on else "pass"
        acts = self.calls in self.script.on
        self.calls += 1
        await self.world.pass_waits(self.script.before_s)
        if acts and self.script.deed is not None:
            do(self.world, self.script.deed, f"listener of {self.script.place}")
        if does == "raise":
            raise ScriptedError(f"listener of {self.script.place}")
        if does == "leak":
            raise await self.world.stray_cancelled()
        answer = None if does == "alone" else await next()
        if does == "twice":
            await next()
        await self.world.pass_waits(self.script.after_s)
        if does in ("pass", "twice"):
            return answer
        if does == "misuse":
            return "none of the answers"
        return _ANSWERS[self.script.place](self.world, does, payload, answer)


# What they answer: (world, does, payload, the answer of next()) -> answer


def _assemble(world: "World", does: str, payload: Any, answer: Any) -> tuple[SectionText, ...]:
    if does == "alone":
        return payload.sections[:1]  # type: ignore[no-any-return]
    if does == "drop":
        return answer[1:]  # type: ignore[no-any-return]
    return (*answer, SectionText("added", f"now it is {trio.current_time():g}", 1))


def _pre_step(world: "World", does: str, payload: PreStep, answer: Any) -> Any:
    messages = payload.messages if does == "alone" else getattr(answer, "messages", ())
    if does == "reject":
        return Reject("the script says so")
    edited = [user_message("edited", id=one.id) for one in messages[:1]]
    entered: dict[str, Sequence[UserMessage]] = {
        "edit": (*edited, *messages[1:]),
        "add": (*messages, user_message("added")),
        "drop": messages[1:],
        "empty": (),
    }
    return Enter(entered.get(does, messages), starts_request_series=does == "series")


def _request(world: "World", does: str, payload: Any, answer: CallConfig) -> CallConfig:
    if does == "temperature":
        return msgspec.structs.replace(answer, temperature=payload.attempt / 10)
    if does == "switch":
        return msgspec.structs.replace(answer, model="other", provider="second")
    return msgspec.structs.replace(answer, provider="nobody")


def _request_error(world: "World", does: str, payload: AttemptFailed, answer: Any) -> Retry:
    return Retry(1.5 if does == "later" else 0, fresh_turn=does == "fresh")


def _stream(world: "World", does: str, payload: Any, answer: ChunkStream) -> ChunkStream:
    if does == "alone":
        return _told([(TextDelta("alone", 0),), (Finish("stop"),)], world)
    return _wrapped(answer, does, world)


async def _told(reads: Sequence[Sequence[Chunk]], world: "World") -> AsyncIterator[Sequence[Chunk]]:
    for read in reads:
        await world.pass_waits()
        yield read


async def _wrapped(
    stream: ChunkStream, does: str, world: "World"
) -> AsyncIterator[Sequence[Chunk]]:
    reads = 0
    async with AsyncExitStack() as stack:
        if isinstance(stream, AsyncGenerator):  # a wrapper inside this one
            await stack.enter_async_context(aclosing(stream))
        async for read in stream:
            await world.pass_waits()
            reads += 1
            if reads > 1 and does == "shorten":
                return
            if reads > 1 and does == "break":
                raise ScriptedError("wrapped stream")
            yield read


def _pre_execute(world: "World", does: str, payload: Any, answer: Any) -> Any:
    if does == "deny":
        return Deny("the script says so")
    if does == "ask":
        return Ask("may it?")
    return Allow({"wide": not payload.arguments.get("wide", False)})


def _execute(world: "World", does: str, payload: Any, answer: Any) -> ToolOutcome:
    if does == "tell":
        outcome: ToolOutcome = attrs.evolve(answer, meta={"told": True})
        return outcome
    return ToolOutcome(content="in its place")


def _post_execute(world: "World", does: str, payload: PostExecution, answer: Any) -> Any:
    if does == "replace":
        return Replace("other content")
    if does == "withhold":
        return Withhold("withheld")
    return Accept((message(world),))


def _turn_stopping(world: "World", does: str, payload: Any, answer: Any) -> None:
    """All that it does is its deed."""


_ANSWERS: dict[str, Callable[["World", str, Any, Any], Any]] = {
    "assemble": _assemble,
    "pre_step": _pre_step,
    "request": _request,
    "request_error": _request_error,
    "turn_stopping": _turn_stopping,
    "stream": _stream,
    "pre_execute": _pre_execute,
    "execute": _execute,
    "post_execute": _post_execute,
}
