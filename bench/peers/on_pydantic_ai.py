"""pydantic-ai: an `Agent` on a `FunctionModel`, its model for tests."""

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from bench.peers.turns import Answers, Turn, Work, measure

TOKENS = RequestUsage(input_tokens=10, output_tokens=5)  # else it counts the words of each message


def prepare(work: Work) -> Turn:
    """An agent with one tool."""
    answers = Answers(work)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls = [
            ToolCallPart("noop", {"index": number}, tool_call_id=f"call_{number}")
            for number in answers.next_calls()
        ]
        return ModelResponse(parts=calls or [TextPart("done")], usage=TOKENS)

    agent = Agent(FunctionModel(answer), tools=[work.noop])
    unlimited = UsageLimits(request_limit=None)
    return lambda: agent.run("go", usage_limits=unlimited)


if __name__ == "__main__":
    measure(prepare)
