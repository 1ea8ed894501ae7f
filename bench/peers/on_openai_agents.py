"""openai-agents: an `Agent` that a `Runner` runs, with a `Model` of ours; tracing is off."""

from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from bench.peers.turns import Answers, Turn, Work, measure


class Prepared(Model):
    """A model that answers in-process."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    async def get_response(self, *arguments: Any, **settings: Any) -> ModelResponse:
        """The next answer."""
        calls: list[Any] = [_call(number) for number in self._answers.next_calls()]
        return ModelResponse(output=calls or [_done()], usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **settings: Any) -> AsyncIterator[Any]:
        """Their interface wants it; `Runner.run`, which is measured, never asks for a stream."""
        raise AssertionError("the run that is measured asked for a stream")


def _call(number: int) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call",
        name="noop",
        call_id=f"call_{number}",
        arguments=f'{{"index": {number}}}',
    )


def _done() -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text="done", annotations=[])
    return ResponseOutputMessage(
        id="done", type="message", role="assistant", status="completed", content=[text]
    )


def prepare(work: Work) -> Turn:
    """An agent with one tool."""
    agent = Agent(
        name="bench",
        model=Prepared(Answers(work)),
        tools=[function_tool(work.noop, name_override="noop")],
    )
    settings = RunConfig(tracing_disabled=True)
    return lambda: Runner.run(agent, "go", max_turns=work.steps + 1, run_config=settings)


if __name__ == "__main__":
    measure(prepare)
