"""Programs that call tools: what they may do, what comes back (PTC)."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from tests.ext.programs import double, nested, run, step_for
from trioloop.events import NestedCallStarted, NestedResultLogged
from trioloop.ext.code import ProgramLimits, run_code
from trioloop.hooks import Accept, CallRequest, Deny, Next, PostExecution, Replace
from trioloop.hooks.points import PostPolicy, PrePolicy
from trioloop.messages import Block, ImageBlock, TextBlock, text_of, user_message
from trioloop.tools import ToolOutcome, tool


async def test_output_and_value_come_back_as_one_result() -> None:
    step = step_for(double)
    await run(step, 'print("hi")\nnumber = await double(number=4)\n[number, {"x": None}]')
    assert step.texts == ['Printed:\nhi\n\nResult:\n[8,{"x":null}]']
    assert step.codes == [None]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("'text'", "text"),
        ("print('a')\nprint('b')", "a\nb"),
        ("x = 1", "The program ended and printed nothing."),
        ("{1, 2}", "{1, 2}"),
        ("(1, 2)", "[1,2]"),
        ("import json\njson.dumps({'a': 1})", '{"a": 1}'),
        ("'\\ud800' == ''", "false"),
        ("await double(3) + await double(number=1)", "8"),
        ("f = double\nawait f(5)", "10"),
        ("import asyncio\nasync def main():\n  return await double(7)\nasyncio.run(main())", "14"),
    ],
)
async def test_what_a_program_comes_to(code: str, text: str) -> None:
    step = step_for(double)
    await run(step, code)
    assert (step.texts, step.codes) == ([text], [None])


async def test_calls_that_are_gathered_overlap_and_keep_their_order() -> None:
    together = trio.Event()
    running: list[int] = []

    async def meet(number: int) -> int:
        """Wait until all three are here."""
        running.append(number)
        if len(running) == 3:
            together.set()
        await together.wait()
        await trio.sleep(0.02 * (3 - number))
        return number * 10

    step = step_for(meet)
    code = "import asyncio\nawait asyncio.gather(meet(0), meet(1), meet(2))"
    with trio.fail_after(20):
        await run(step, code)
    assert step.texts == ["[0,10,20]"]
    assert nested(step) == ["call meet"] * 3 + ["result None"] * 3
    results = [fact.call for fact in step.facts if isinstance(fact, NestedResultLogged)]
    assert results == [f"call_1_1_0_{index}" for index in range(3)]


async def test_a_gathered_window_respects_the_limit() -> None:
    running = 0
    most = 0

    async def work() -> None:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(0.01)
        running -= 1

    step = step_for(work, calls_max=2)
    await run(step, "import asyncio\nawait asyncio.gather(*[work() for _ in range(7)])\n'done'")
    assert step.texts == ["done"]
    assert most == 2


async def test_under_a_limit_of_one_a_program_lends_its_place() -> None:
    step = step_for(double, calls_max=1)
    with trio.fail_after(20):
        await run(step, "import asyncio\nsum(await asyncio.gather(double(1), double(2)))")
    assert step.texts == ["6"]


async def test_a_barrier_runs_alone_among_the_calls_of_a_program() -> None:
    step = step_for(double)
    alone: list[bool] = []

    @tool
    async def write(text: str) -> None:
        """Write."""
        alone.append(nested(step)[-2:] == ["result None", "call write"])

    step.tools.register(write)
    await run(step, "import asyncio\nawait asyncio.gather(double(1), write('x'), double(2))")
    assert alone == [True]
    names = ["double", "write", "double"]
    assert nested(step) == [told for name in names for told in (f"call {name}", "result None")]


async def test_a_program_has_no_run_code_of_its_own() -> None:
    step = step_for(double)
    result = await run(step, "await run_code(code='1')")
    assert result.code == "CODE_RUN_FAILED"
    assert "NameError: name 'run_code' is not defined" in step.texts[0]
    assert nested(step) == []


async def test_unknown_names_are_undefined() -> None:
    step = step_for(double)
    await run(step, "try:\n  await duoble(1)\nexcept NameError as error:\n  print(error)")
    assert step.texts == ["name 'duoble' is not defined"]


@pytest.mark.parametrize(
    ("call", "raises"),
    [
        ("double('x')", "TypeError"),
        ("double()", "TypeError"),
        ("double(1, 2)", "TypeError"),
        ("double(1, number=2)", "TypeError"),
        ("double({1})", "TypeError"),
        ("double(number=float('nan'))", "TypeError"),
        ("denied()", "PermissionError"),
        ("slow()", "TimeoutError"),
        ("broken()", "RuntimeError"),
    ],
)
async def test_a_call_that_fails_raises_in_the_program(call: str, raises: str) -> None:
    async def denied() -> None:
        """Never runs."""

    async def broken() -> None:
        """Raise."""
        raise ValueError("oops")

    step = step_for(double, denied, broken)
    step.tools.register(tool(effects="read-only", timeout_s=0.01)(slow))
    step.tools.guard(lambda request: Deny("not you") if request.name == "denied" else None)
    code = f"try:\n  await {call}\nexcept Exception as error:\n  print(type(error).__name__)"
    await run(step, code)
    assert step.texts == [raises]
    started = [fact for fact in step.facts if isinstance(fact, NestedCallStarted)]
    assert len(started) == (0 if "double" in call else 1)


async def slow() -> None:
    """Take too long."""
    await trio.sleep_forever()


async def test_a_failure_that_the_program_lets_through_fails_it() -> None:
    async def broken() -> None:
        """Raise."""
        raise ValueError("oops")

    step = step_for(broken)
    result = await run(step, "print('before')\nawait broken()")
    assert result.is_error
    assert result.code == "CODE_RUN_FAILED"
    assert result.meta == {"error": "RuntimeError"}
    assert step.texts[0].startswith("Printed:\nbefore\n\nResult:\nTraceback")
    assert step.texts[0].endswith("RuntimeError: ValueError: oops")


async def test_policies_see_and_change_what_a_program_gets() -> None:
    step = step_for(double)
    seen: list[tuple[str, str | None]] = []

    @step.hooks.pre_execute
    async def before(request: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        seen.append((request.name, request.parent))
        if request.arguments.get("number") == 13:
            raise RuntimeError("policy broke")
        return await next()

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        if done.request.arguments.get("number") == 2:
            return Replace("withheld by policy", [user_message("noted")])
        return Accept()

    await run(
        step,
        "print(await double(2))\n"
        "try:\n  await double(13)\nexcept PermissionError as error:\n  print('denied')",
    )
    assert step.texts == ["withheld by policy\ndenied"]
    assert seen == [("run_code", None), ("double", "call_1_1_0"), ("double", "call_1_1_0")]
    assert [text_of(message.content) for message in step.contexts] == ["noted"]


async def test_images_are_added_to_the_result_unless_a_policy_removed_them() -> None:
    async def shot(name: str) -> Sequence[Block]:
        """A picture."""
        return [TextBlock(name), ImageBlock(media_type="image/png", data="aGk=")]

    step = step_for(shot)

    @step.hooks.post_execute
    async def after(done: PostExecution, next: Next[PostPolicy]) -> PostPolicy:
        if done.request.arguments.get("name") == "b":
            return Replace("no picture")
        return await next()

    result = await run(step, "import asyncio\nawait asyncio.gather(shot('a'), shot('b'))")
    assert [type(block).__name__ for block in result.content] == ["TextBlock", "ImageBlock"]
    assert text_of(result.content) == '["a","no picture"]'


@pytest.mark.parametrize("is_error", [False, True])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_conclusion_is_forwarded_from_success_alone(is_error: bool, fails: bool) -> None:
    async def finish() -> ToolOutcome:
        """Conclude the turn."""
        return ToolOutcome(content="bye", concludes_turn=True, is_error=is_error)

    step = step_for(finish)
    code = "try:\n  await finish()\nexcept RuntimeError:\n  pass\n" + ("1/0" if fails else "1")
    result = await run(step, code)
    assert result.concludes_turn is not (is_error or fails)


async def test_tools_with_names_that_python_cannot_write_are_bound() -> None:
    step = step_for()
    for name in ("get-it", "get_it", "1st", "class"):

        async def tell(name: str = name) -> str:
            """Tell the name."""
            return name

        step.tools.register(tool(name=name, effects="read-only")(tell))
    await run(step, "[await get_it(), await _1st(), await class_()]")
    assert step.texts == ['["get_it","1st","class"]']


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("1 +", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("while True: pass", "TimeoutError"),
        ("x = [0]\nwhile True: x = x + x", "MemoryError"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError"),
        ("open('/etc/passwd').read()", "PermissionError"),
        ("import socket", "ModuleNotFoundError"),
        ("import os\nos.environ['HOME']", "RuntimeError"),
        ("import time\ntime.time()", "RuntimeError"),
        ("import asyncio\nawait asyncio.sleep(1)", "RuntimeError"),
        ("for _ in range(9): await double(1)", "RuntimeError"),
    ],
)
async def test_a_program_is_held_within_its_limits(code: str, error: str) -> None:
    limits = ProgramLimits(
        run_s=0.2, memory_bytes_max=16 << 20, recursion_max=100, calls_max=5, printed_bytes_max=512
    )
    step = step_for(double, limits=limits)
    with trio.fail_after(30):
        result = await run(step, code)
    assert result.code == "CODE_RUN_FAILED"
    assert result.meta == {"error": error}
    assert error in step.texts[0] or error == "SyntaxError"


async def test_a_flood_of_output_is_cut_in_the_middle() -> None:
    step = step_for(limits=ProgramLimits(printed_bytes_max=512))
    await run(step, "print('first')\nfor i in range(100000): print(i)\nprint('last')")
    assert step.texts[0].startswith("first")
    assert step.texts[0].endswith("last")
    assert len(step.texts[0]) < 600


async def test_equal_programs_draw_equal_random_numbers() -> None:
    texts = []
    for _ in range(2):
        step = step_for()
        await run(step, "import random\nrandom.random()")
        texts += step.texts
    assert texts[0] == texts[1]


async def test_a_tool_that_is_removed_meanwhile_is_not_called() -> None:
    step = step_for()
    registration = step.tools.register(tool(effects="read-only")(double))

    @tool
    async def remove() -> None:
        """Remove a tool."""
        registration.close()

    step.tools.register(remove)
    await run(
        step,
        "await remove()\ntry:\n  await double(1)\nexcept NameError as error:\n  print(error)",
    )
    assert step.texts == ["There is no tool 'double' in this step."]


def test_limits_and_options_are_checked() -> None:
    with pytest.raises(ValueError, match="calls_max must be greater than 0"):
        ProgramLimits(calls_max=0)
    wrong: Any = "sometimes"
    with pytest.raises(ValueError, match="effects"):
        run_code(effects=wrong)
