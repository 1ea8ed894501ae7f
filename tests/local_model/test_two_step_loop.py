"""A tool call, its result and an answer, with a real model: adapter, agent and command line.

The model is too small to choose: the first step must call, and the last one may not.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import trio

import trioloop
from tests.models.asking import make_request
from trioloop.chunks import Frame, TextDelta
from trioloop.errors import ModelFailure
from trioloop.events import AssistantMessageLogged, CallConfig, ToolDeclaration, ToolResultLogged
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import RequestProposal
from trioloop.ids import call_id
from trioloop.messages import Message, TextBlock, ToolResultMessage, text_of, user_message
from trioloop.models import OpenAIChat
from trioloop.stream.assemble import Assembled, assemble

QUESTION = "What is 17 + 25? Use the add tool."
ADD = ToolDeclaration(
    "add",
    "Add two numbers",
    msgspec.Raw(
        b'{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},'
        b'"required":["a","b"]}'
    ),
)


def model_at(base_url: str) -> OpenAIChat:
    return OpenAIChat("local", base_url=base_url, temperature=0, max_tokens=80)


async def answer(model: OpenAIChat, choice: str, *messages: Message) -> Assembled:
    config = CallConfig(
        provider=model.provider, model="local", tool_choice=choice, parallel_tool_calls=False
    )
    call = await model.prepare(config)
    request = make_request(*messages, tools=[ADD], config=call.config)
    frames = []
    async with call.stream(request) as stream:
        async for batch in stream:
            frames.append(Frame(0, tuple(batch)))  # noqa: PERF401 - hides the stream
    return assemble(
        frames,
        provider=model.provider,
        model="local",
        call_id=lambda index: call_id(1, 1, index),
        used_wire_ids=(),
    )


async def test_the_adapter_calls_and_answers_in_two_steps(local_model: str) -> None:
    model = model_at(local_model)
    asked = user_message(QUESTION)
    first = await answer(model, "required", asked)
    assert first.finish is not None
    assert first.finish.reason == "tool_calls"
    (call,) = first.message.calls
    assert call.name == "add"
    assert json.loads(call.arguments) == {"a": 17, "b": 25}
    assert call.wire_id
    assert first.usage is not None
    assert first.usage.input_tokens
    result = ToolResultMessage(call.call, call.wire_id, (TextBlock("42"),))
    second = await answer(model, "none", asked, first.message, result)
    assert second.finish is not None
    assert second.finish.reason in {"stop", "length"}
    assert "42" in second.message.text
    await model.aclose()


async def test_equal_requests_have_equal_answers(local_model: str) -> None:
    model = model_at(local_model)
    answers = [await answer(model, "required", user_message(QUESTION)) for _ in range(2)]
    assert len({answer.message.calls[0].arguments for answer in answers}) == 1
    await model.aclose()


async def test_a_request_that_is_too_long_is_told_with_its_numbers(local_model: str) -> None:
    model = model_at(local_model)
    with pytest.raises(ModelFailure, match=r"tokens: prompt \d+, limit \d+") as caught:
        await answer(model, "none", user_message("word " * 9_000))
    assert caught.value.code == "CONTEXT_WINDOW_EXCEEDED"
    await model.aclose()


async def test_a_cancel_in_the_middle_frees_the_server_at_once(
    local_model: str, busy_slots: Callable[[], int]
) -> None:
    model = OpenAIChat("local", base_url=local_model, max_tokens=2_000, extra={"ignore_eos": True})
    call = await model.prepare(CallConfig(provider=model.provider, model="local"))
    request = make_request(user_message("Tell a long story."), config=call.config)
    with trio.CancelScope() as scope:
        async with call.stream(request) as stream:
            async for batch in stream:
                if any(isinstance(chunk, TextDelta) for chunk in batch):
                    assert await trio.to_thread.run_sync(busy_slots) == 1
                    scope.cancel()
    assert scope.cancelled_caught
    with trio.fail_after(5):
        while await trio.to_thread.run_sync(busy_slots):  # noqa: ASYNC110 - it can only be asked
            await trio.sleep(0.02)
    await model.aclose()


async def test_an_agent_calls_and_answers_in_one_turn(local_model: str) -> None:
    @trioloop.tool(effects="read-only")
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def call_first(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        choice = "required" if proposal.step == 1 else "none"
        return msgspec.structs.replace(await next(), tool_choice=choice, parallel_tool_calls=False)

    model = model_at(local_model)
    async with trioloop.open_runtime(model=model, tools=[add], strict=True) as runtime:
        runtime.hooks.request.add(call_first)
        agent = await runtime.create_agent("adder")
        settled = await agent.ask(QUESTION)
        events = [event.data for event in agent.session.events()]
    await model.aclose()
    assert settled.reason in {"completed", "max-tokens"}
    results = [event for event in events if isinstance(event, ToolResultLogged)]
    assert [text_of(result.content) for result in results] == ["42"]
    answers = [event for event in events if isinstance(event, AssistantMessageLogged)]
    assert len(answers) == 2
    assert "42" in answers[-1].message.text


def test_the_command_line_runs_the_same(local_model: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text(
        "import trioloop\n\n\n"
        '@trioloop.tool(effects="read-only")\n'
        "def add(a: int, b: int) -> int:\n"
        '    """Add two numbers."""\n'
        "    return a + b\n"
    )
    command = [
        sys.executable,
        "-m",
        "trioloop",
        "run",
        "--model",
        "local",
        "--tool-choice",
        "first",
    ]
    command += ["--base-url", local_model, "--tools", str(tools), "--temperature", "0"]
    done = subprocess.run(
        [*command, QUESTION], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "42" in done.stdout
