"""A tool call, its result and an answer, with a real model: agent and command line.

The model is too small to choose: the first step must call, and the last one may not.
"""

import subprocess
import sys
from pathlib import Path

import msgspec

import trioloop
from tests.local_model.asking import QUESTION, answer, model_of
from trioloop.events import AssistantMessageLogged, CallConfig, ToolResultLogged
from trioloop.hooks.dispatch import Next
from trioloop.hooks.points import RequestProposal
from trioloop.messages import text_of, user_message


async def test_equal_requests_have_equal_answers(local_model: str) -> None:
    model = model_of("chat", local_model)
    answers = [await answer(model, "required", user_message(QUESTION)) for _ in range(2)]
    assert len({answer.message.calls[0].arguments for answer in answers}) == 1
    await model.aclose()


async def test_an_agent_calls_and_answers_in_one_turn(local_model: str) -> None:
    @trioloop.tool(effects="read-only")
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def call_first(proposal: RequestProposal, next: Next[CallConfig]) -> CallConfig:
        choice = "required" if proposal.step == 1 else "none"
        return msgspec.structs.replace(await next(), tool_choice=choice, parallel_tool_calls=False)

    model = model_of("chat", local_model)
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
