"""A served runtime whose model follows a script, for browsers and other foreign clients.

    python -m tests.control.programs.scripted PORT STORE TOKEN

What the model does depends on the last message: `lanes`, `ask`, `slow`, or anything else.
"""

import sys
from pathlib import Path

import trio

from trioloop import Request, open_runtime, tool
from trioloop.control import Tokens, serve
from trioloop.hooks import Hooks, Next, StreamRequest
from trioloop.messages import SystemMessage, ToolResultMessage, text_of
from trioloop.models.scripted import Entry
from trioloop.plugins import Approvals, Rule, approval
from trioloop.ports import ChunkStream
from trioloop.testing import Reasoning, ScriptedModel, Text, ToolCall

POEM = """\
Here is what I would do, **step by step**:

- read the notes
- compare `a` with `b`
- write it down

```python
async with trio.open_nursery() as nursery:
    nursery.start_soon(write, "it down")
```

And then we are done."""


async def opened(gate: str) -> None:
    """Wait until whoever looks on has opened a gate: there is a file of that name."""
    while gate and not (Path(sys.argv[2]).parent / gate).exists():  # noqa: ASYNC110 - of a process
        await trio.sleep(0.02)


@tool(effects="read-only")
async def look_up(topic: str, gate: str = "") -> str:
    """Look something up.

    Args:
        topic: what.
        gate: what it waits for.
    """
    await opened(gate)
    return f"All there is to know about {topic}."


@tool(effects="once")
async def write_down(text: str, gate: str = "") -> str:
    """Write something down.

    Args:
        text: what.
        gate: what it waits for.
    """
    await opened(gate)
    return f"Written: {text}"


def answer(request: Request) -> Entry:
    """What the model does next."""
    *_, last = request.messages
    if isinstance(last, ToolResultMessage):
        return [Text("That is "), Text("what the tools said.")]
    assert not isinstance(last, SystemMessage)
    words = text_of(last.content)
    if "lanes" in words:
        return [
            Reasoning("Several things can be looked up at once; writing has to wait."),
            Text("I look things up side by side, then write."),
            ToolCall("look_up", topic="weather", gate="weather"),
            ToolCall("look_up", topic="trains"),
            ToolCall("look_up", topic="museums", gate="museums"),
            ToolCall("write_down", text="a plan", gate="plan"),
            ToolCall("look_up", topic="restaurants", gate="restaurants"),
            ToolCall("look_up", topic="hotels", gate="hotels"),
        ]
    if "ask" in words:
        call = ToolCall("write_down", text="secret plan")
        return [Text("I need your word for that."), call]
    if "slow" in words:
        return [Text("Slowly: "), *(Text(f"word{number} ") for number in range(60))]
    return [Text(word + " ") for word in POEM.split(" ")]


SECRET = Rule(
    tool="write_down",
    when=lambda arguments: "secret" in str(arguments),
    question="May it write the secret plan down?",
)
"""A person is asked before anything secret is written."""


def halts(hooks: Hooks) -> None:
    """Let slow answers wait in the middle until a gate is opened."""

    @hooks.stream
    async def halt(asked: StreamRequest, next: Next[ChunkStream]) -> ChunkStream:
        *_, last = asked.request.messages
        stream = await next()
        return halfway(stream) if "slow" in str(last) else stream

    async def halfway(stream: ChunkStream) -> ChunkStream:
        seen = 0
        async for chunks in stream:
            yield chunks
            seen += 1
            if seen == 12:
                await opened("rest")


async def main(port: int, store: str, token: str) -> None:
    """Serve until killed."""
    tokens = Tokens()
    tokens.issue("tests", "admin", token=token)
    async with (
        open_runtime(
            model=ScriptedModel(answer),
            tools=[look_up, write_down],
            system="You help with plans.",
            store=store,
            hooks=[halts],
            plugins=[lambda runtime: approval(runtime, SECRET)],
            approver=Approvals(),
        ) as runtime,
        serve(runtime, listen=f"127.0.0.1:{port}", tokens=tokens) as endpoint,
    ):
        print(endpoint.url, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]), sys.argv[2], sys.argv[3])
