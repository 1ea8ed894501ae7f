"""Plain anyio: the loop that one writes by hand, with a task for each call and no log."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from bench.peers.turns import Answers, Turn, Work, measure

Message = dict[str, Any]  # Any: a value of JSON
Tool = Callable[..., Awaitable[int]]
LIMIT = 10


def prepare(work: Work) -> Turn:
    """A model, one tool and a loop over both."""
    answers = Answers(work)
    tools: dict[str, Tool] = {"noop": work.noop}

    async def ask(messages: list[Message]) -> Message:
        await anyio.lowlevel.checkpoint()
        calls = [
            {"id": f"call_{number}", "name": "noop", "arguments": json.dumps({"index": number})}
            for number in answers.next_calls()
        ]
        return {"role": "assistant", "content": "" if calls else "done", "tool_calls": calls}

    async def turn() -> object:
        messages: list[Message] = [{"role": "user", "content": "go"}]
        while True:
            answer = await ask(messages)
            messages.append(answer)
            if not answer["tool_calls"]:
                return answer["content"]
            messages += await _run(tools, answer["tool_calls"])

    return turn


async def _run(tools: dict[str, Tool], calls: list[Message]) -> list[Message]:
    limiter = anyio.CapacityLimiter(LIMIT)
    results: list[Message] = [{} for _ in calls]

    async def one(place: int, call: Message) -> None:
        async with limiter:
            value = await tools[call["name"]](**json.loads(call["arguments"]))
        content = json.dumps(value)
        results[place] = {"role": "tool", "tool_call_id": call["id"], "content": content}

    async with anyio.create_task_group() as tasks:
        for place, call in enumerate(calls):
            tasks.start_soon(one, place, call)
    return results


if __name__ == "__main__":
    measure(prepare)
