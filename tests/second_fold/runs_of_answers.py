"""Runs that answer, fail, retry and change what the model is told."""

from functools import partial

import msgspec
import trio

from tests.second_fold.recording import Recording, Run
from trioloop import CallConfig, ImageBlock, TextBlock, tool, user_message
from trioloop.events import UserMessageLogged
from trioloop.hooks import (
    AttemptFailed,
    Enter,
    Next,
    PreStep,
    Reject,
    RequestProposal,
    Retry,
    TurnStopping,
)
from trioloop.hooks.points import Decision
from trioloop.plugins.retry import retry
from trioloop.ports import Capabilities, RetryPolicy
from trioloop.prompt import Section
from trioloop.testing import Answer, Fail, Reasoning, Refusal, Stall, Text, ToolCall, Wait

IN_HISTORY = Capabilities(system_update="in-history")


async def plain_answers(recording: Recording) -> None:
    """Words of every kind, an empty answer among them; system text and settings of all sorts."""
    script = [
        Text("Hi, “you” \u2028 é\x7f\t\x01 😀 </script>"),
        [Reasoning("hm"), Text("a"), Reasoning("well"), Text("b")],
        Refusal("no"),
        Answer([]),
        Answer([Text("cut")], finish="length"),
        Answer([Text("filtered")], finish="content_filter", usage=None),
    ]
    config = CallConfig(
        provider="scripted",
        model="scripted",
        max_tokens=100,
        temperature=0.1,
        extra={"z": [1, {"b": None, "a": 1.5}], "a": True},
    )
    async with recording.runtime(script, system="Be “terse”.\n", config=config) as runtime:
        agent = await runtime.create_agent("plain")
        for number in range(5):
            await agent.ask(f"question {number}")
        await agent.ask([TextBlock("look"), ImageBlock("image/png", "aGk=")])


async def pauses(recording: Recording) -> None:
    """The model pauses, and is asked on."""
    script = [Answer([Text("one")], finish="pause"), Answer([], finish="pause"), Text("two")]
    async with recording.runtime(script) as runtime:
        await (await runtime.create_agent("pauses")).ask("go")


async def retried_attempts(recording: Recording) -> None:
    """Attempts fail at once or half-way, and are tried again in their step."""
    script = [
        Fail("SERVER"),
        [Reasoning("half"), Text("a thought"), Fail("UNKNOWN")],
        Text("there"),
        Fail("RATE_LIMIT", retry_after=2, status=429),
        [ToolCall("nothing"), Fail("SERVER")],
        [ToolCall("nothing")],
        Fail("OVERLOADED"),
        Text("here"),
        Fail("AUTH"),
    ]
    async with recording.runtime(script, plugins=[retry], system="s") as runtime:
        agent = await runtime.create_agent("retried")
        for text in ("one", "two", "three"):
            await agent.ask(text)


async def given_up(recording: Recording) -> None:
    """The failures of a chain are more than its policy allows."""
    script = [Fail("SERVER"), Text("in between"), *[Fail("SERVER")] * 3, Text("again")]
    model = recording.model(script, retry_policy=RetryPolicy(retries_max=2))
    async with recording.runtime(model=model, plugins=[retry]) as runtime:
        agent = await runtime.create_agent("given-up")
        for text in ("one", "two", "three"):
            await agent.ask(text)


async def retry_turns(recording: Recording) -> None:
    """A failure is answered with turns that repeat the turn; input comes between."""

    async def afresh(attempt: AttemptFailed, next: Next[Retry | None]) -> Retry:
        if len(attempt.earlier) == 1:
            agent.steer("by the way")
        return Retry(1, fresh_turn=len(attempt.earlier) != 2)

    script = [*[Fail("SERVER")] * 4, Text("at last"), Text("more"), *[Fail("SERVER")] * 9]
    async with recording.runtime(script, hooks=[lambda h: h.request_error.add(afresh)]) as runtime:
        agent = await runtime.create_agent("retry-turns")
        agent.inject("context")
        for text in ("one", "two", "three"):
            await agent.ask(text)


async def changed_prompt(recording: Recording, name: str, update: Capabilities) -> None:
    """Sections change, come, go and come back; then a series, settings and another tool."""
    texts = {"a": "a1", "b": "b1", "c": ""}
    sections = [
        Section("b", lambda _: texts["b"], order=1),
        Section("c", lambda _: texts["c"]),
        Section("a", lambda _: texts["a"], order=1),
    ]
    model = recording.model(lambda _: Text("yes"), capabilities=update)
    async with recording.runtime(model=model, system=sections) as runtime:
        agent = await runtime.create_agent(name)
        changes = [{}, {"a": "a2"}, {"c": "c1"}, {"b": ""}, {}, {"b": "b2", "a": "a3"}, {"c": ""}]
        for number, change in enumerate(changes):
            texts.update(change)
            await agent.ask(f"turn {number}")
        with agent.hooks.pre_step.add(_starts_series):
            await agent.ask("a series")
        texts.update({"a": "a4", "b": ""})
        with agent.hooks.pre_step.add(_starts_series):
            await agent.ask("a series of changes")
        texts.update({"a": "a5"})
        with agent.hooks.request.add(_warmer), runtime.tools.register(nothing):
            await agent.ask("other settings")
        texts.update(dict.fromkeys(texts, ""))
        await agent.ask("no prompt at all")
        await agent.ask("still none")
        texts.update({"a": "a6"})
        await agent.ask("one again")


async def prompt_in_head(recording: Recording) -> None:
    """Changes replace the head."""
    await changed_prompt(recording, "in-head", Capabilities(system_update="replace"))


async def prompt_in_history(recording: Recording) -> None:
    """Changes are appended to the history."""
    await changed_prompt(recording, "in-history", IN_HISTORY)


async def prompt_of_a_retry(recording: Recording) -> None:
    """The prompt and the settings change between the attempts of a step, for another model."""
    texts = iter(["p1", "p1", "p2", "p3", "p4", "p5"])

    async def switch(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        config = await next()
        if proposal.attempt == 1:
            return config
        return msgspec.structs.replace(config, model=("tail", "scripted")[proposal.attempt % 2])

    models = [recording.model([Fail("SERVER"), Text("b")], name="tail", capabilities=IN_HISTORY)]
    script = [Text("a"), Fail("SERVER"), Fail("SERVER"), Text("c")]
    sections = [Section("p", lambda _: next(texts))]
    async with recording.runtime(
        script, models=models, system=sections, plugins=[retry]
    ) as runtime:
        agent = await runtime.create_agent("switching")
        with agent.hooks.request.add(switch):
            for number in range(3):
                await agent.ask(f"turn {number}")


async def edited_by_listeners(recording: Recording) -> None:
    """A listener edits, adds and drops messages; another rejects, and what it left is restored."""

    async def edit(step: PreStep, next: Next[Decision]) -> Decision:
        kept = [one for one in step.messages if one.source != "noise"]
        edited = [user_message("edited", id=one.id) for one in kept]
        return Enter((user_message("added"), *edited, user_message("more", id=f"more-{step.turn}")))

    async def reject(step: PreStep, next: Next[Decision]) -> Decision:
        return Reject("not now", "LATER")

    async def nothing_to_do(step: PreStep, next: Next[Decision]) -> Decision:
        return Enter(())

    async with recording.runtime(lambda _: Text("yes")) as runtime:
        agent = await runtime.create_agent("edited")
        agent.inject("some context")
        agent.inject(user_message("noise", source="noise"))
        with agent.hooks.pre_step.add(edit):
            await agent.ask("prompt")
        agent.inject("context")
        with agent.hooks.pre_step.add(reject):
            await agent.ask("rejected")
        with agent.hooks.pre_step.add(nothing_to_do):
            await agent.ask("dropped")
        agent.inbox.restore(2)
        agent.inbox.restore(3)
        agent.wake()
        await agent.wait_idle()


async def stopping_listeners(recording: Recording) -> None:
    """A listener steers as the turn is about to end, also after an answer that was cut."""

    async def once_more(stopping: TurnStopping) -> None:
        if len(asked) < 2:
            asked.append(agent.steer(f"again {len(asked)}"))

    asked: list[str] = []
    script = [Answer([Text("a")], finish="length"), Text("b"), Text("c")]
    async with recording.runtime(script) as runtime:
        agent = await runtime.create_agent("stopping")
        agent.hooks.turn_stopping.add(once_more)
        await agent.ask("go")


async def broken_listeners(recording: Recording) -> None:
    """Whatever a step needs before its admission fails."""

    def breaking(name: str) -> Run:
        async def broken(*_: object) -> None:
            raise ValueError(name)

        return broken

    async with recording.runtime(lambda _: Fail("SERVER")) as runtime:
        agent = await runtime.create_agent("broken")
        agent.inject("context")
        for name in ("pre_step", "request", "assemble", "request_error"):
            with getattr(agent.hooks, name).add(breaking(name)):
                await agent.ask(f"one with a broken {name}")


async def summaries(recording: Recording) -> None:
    """Parts of the history are replaced between turns, a tail of the prompt among them."""
    texts = iter(["s1", "s2", "s2", "s2", "s3", "s3", "s3", "s3"])
    model = recording.model(lambda _: Text("yes"), capabilities=IN_HISTORY)
    sections = [Section("s", lambda _: next(texts))]
    async with recording.runtime(model=model, system=sections) as runtime:
        agent = await runtime.create_agent("summaries")

        async def replace(first: int, last: int, text: str) -> None:
            seqs = [event.seq for event in agent.session.events() if event.type in IN_THE_HISTORY]
            message = user_message(text, id=f"summary-{text}", source="summary")
            agent.session.append(UserMessageLogged(message, (seqs[first], seqs[last])))

        for first, last in [(0, 1), (3, 4), (-2, -1), (-1, -1)]:
            await agent.ask(f"before {first}")
            await agent.run_maintenance(partial(replace, first, last, f"{first} to {last}"))
        await agent.ask("and now?")


IN_THE_HISTORY = ("user/message", "assistant/message")


async def cancelled_streams(recording: Recording) -> None:
    """Cancels before anything is visible, half-way, in calls, and while a retry waits."""
    script = [
        Stall(),
        [Reasoning("let me"), Text("think about"), Stall()],
        [Text("I call"), ToolCall("nothing"), Stall()],
        [ToolCall("nothing"), Stall()],
        Fail("SERVER", retry_after=9),
        [Text("abc"), Wait(0.5), Fail("SERVER", retry_after=9)],
    ]
    async with recording.runtime(script, plugins=[retry]) as runtime:
        agent = await runtime.create_agent("cancelled")
        for number in range(len(script)):
            agent.followup(f"turn {number}")
            await trio.sleep(1)
            agent.steer(f"steer {number}")
            agent.cancel()
            await agent.wait_idle()


async def cancelled_around_admission(recording: Recording) -> None:
    """Cancels in each hook before the admission, and right after it."""
    async with recording.runtime(lambda _: Text("yes")) as runtime:
        agent = await runtime.create_agent("admission")
        for kind in ("request/context", "turn/start", "user/message", "step/start", "step/end"):

            def cancel(event: object, kind: str = kind) -> None:
                if getattr(event, "type", None) == kind:
                    agent.cancel(kind)

            agent.inject(f"context of {kind}")
            with agent.session.observe(cancel):
                agent.followup(f"prompt of {kind}")
                await agent.wait_idle()
        for name in ("pre_step", "request", "assemble"):
            with getattr(agent.hooks, name).add(_never):
                agent.followup(f"prompt of {name}")
                await trio.sleep(1)
                agent.cancel(name)
                agent.followup(f"after {name}")
                await trio.sleep(1)
                agent.cancel(name, discard_inbox=name == "request")
                await agent.wait_idle()


async def _never(payload: object, next: Next[object]) -> object:
    await trio.sleep_forever()
    return await next()


async def _starts_series(step: PreStep, next: Next[Decision]) -> Decision:
    decision = await next()
    assert isinstance(decision, Enter)
    return Enter(decision.messages, starts_request_series=True)


async def _warmer(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
    return msgspec.structs.replace(await next(), temperature=1.0)


@tool(effects="read-only")
async def nothing(deep: dict[str, list[int]] | None = None) -> None:
    """Do nothing."""


RUNS: tuple[Run, ...] = (
    plain_answers,
    pauses,
    retried_attempts,
    given_up,
    retry_turns,
    prompt_in_head,
    prompt_in_history,
    prompt_of_a_retry,
    edited_by_listeners,
    stopping_listeners,
    broken_listeners,
    summaries,
    cancelled_streams,
    cancelled_around_admission,
)
