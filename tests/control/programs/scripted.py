"""A served runtime whose model follows a script, for browsers and other foreign clients.

    python -m tests.control.programs.scripted PORT STORE TOKEN

What the model does depends on the last message: `lanes`, `ask`, `slow`, or anything else.
"""

import sys

import trio

from trioloop import Request, open_runtime, tool
from trioloop.control import Tokens, serve
from trioloop.hooks import Ask, CallRequest, Hooks, Next
from trioloop.hooks.points import PrePolicy
from trioloop.messages import SystemMessage, ToolResultMessage, text_of
from trioloop.models.scripted import Entry
from trioloop.plugins import Approvals
from trioloop.testing import Reasoning, ScriptedModel, Text, ToolCall, Wait

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


@tool(effects="read-only")
async def look_up(topic: str, seconds: float = 1.0) -> str:
    """Look something up.

    Args:
        topic: what.
        seconds: how long that takes.
    """
    await trio.sleep(seconds)
    return f"All there is to know about {topic}."


@tool(effects="once")
async def write_down(text: str, seconds: float = 1.0) -> str:
    """Write something down.

    Args:
        text: what.
        seconds: how long that takes.
    """
    await trio.sleep(seconds)
    return f"Written: {text}"


def answer(request: Request) -> Entry:
    """What the model does next."""
    *_, last = request.messages
    if isinstance(last, ToolResultMessage):
        return [Wait(0.1), Text("That is "), Wait(0.1), Text("what the tools said.")]
    assert not isinstance(last, SystemMessage)
    words = text_of(last.content)
    if "lanes" in words:
        return [
            Reasoning("Several things can be looked up at once; writing has to wait."),
            Text("I look things up side by side, then write."),
            ToolCall("look_up", topic="weather", seconds=2.4),
            ToolCall("look_up", topic="trains", seconds=1.0),
            ToolCall("look_up", topic="museums", seconds=1.6),
            ToolCall("write_down", text="a plan", seconds=1.2),
            ToolCall("look_up", topic="restaurants", seconds=1.5),
            ToolCall("look_up", topic="hotels", seconds=60 if "long" in words else 0.8),
        ]
    if "ask" in words:
        call = ToolCall("write_down", text="secret plan", seconds=0.3)
        return [Text("I need your word for that."), call]
    if "slow" in words:
        parts = [part for number in range(60) for part in (Text(f"word{number} "), Wait(0.1))]
        return [Text("Slowly: "), *parts]
    return [part for word in POEM.split(" ") for part in (Text(word + " "), Wait(0.01))]


def asks(hooks: Hooks) -> None:
    """Ask a person before anything secret is written."""

    @hooks.pre_execute
    async def ask(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        if "secret" in str(request.arguments):
            return Ask("May it write the secret plan down?")
        return await next()


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
            hooks=[asks],
            approver=Approvals(),
        ) as runtime,
        serve(runtime, listen=f"127.0.0.1:{port}", tokens=tokens) as endpoint,
    ):
        print(endpoint.url, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]), sys.argv[2], sys.argv[3])
