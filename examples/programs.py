"""A model that writes a program: many calls, one result, each call under the application's policy.

An accountant's model writes a program that looks up twelve invoices at once and adds up those that
are overdue. Two of them are confidential: a guard denies those calls, and the program goes on
without. No key is needed: the model is scripted. Needs `pip install 'trioloop[code]'`.

    python examples/programs.py
"""

import trio

import trioloop
from trioloop.events import NestedCallStarted, NestedResultLogged, ToolResultLogged
from trioloop.ext.code import ProgramLimits, run_code
from trioloop.hooks import CallRequest, Deny
from trioloop.messages import text_of
from trioloop.testing import ScriptedModel, Text, ToolCall

PROGRAM = """
import asyncio

async def look_up(number):
    try:
        return await invoice(number=number)
    except PermissionError:
        print(f"invoice {number} is confidential")

found = await asyncio.gather(*[look_up(number) for number in range(1, 13)])
sum(one["amount"] for one in found if one and one["overdue"])
"""


@trioloop.tool(effects="read-only")
async def invoice(number: int) -> dict[str, object]:
    """An invoice: its amount, and whether it is overdue.

    Args:
        number: from 1 on.
    """
    await trio.sleep(0.1)
    return {"amount": 100 * number, "overdue": number % 3 == 0}


def confidential(request: CallRequest) -> Deny | None:
    """Deny some calls, whoever makes them."""
    if request.name == "invoice" and request.arguments["number"] in (6, 7):
        return Deny("it is confidential")
    return None


async def main() -> None:
    """Ask once, and show what the log has of it."""
    model = ScriptedModel([[ToolCall("run_code", code=PROGRAM)], Text("2400 are overdue.")])
    tools = [invoice, run_code(limits=ProgramLimits(run_s=5, calls_max=100), timeout_s=30)]
    async with trioloop.open_runtime(model=model, tools=tools) as runtime:
        runtime.tools.guard(confidential)
        agent = await runtime.create_agent("accountant")
        began = trio.current_time()
        settled = await agent.ask("How much is overdue?")
        took = trio.current_time() - began
        facts = [event.data for event in agent.session.events()]
    (result,) = [fact for fact in facts if isinstance(fact, ToolResultLogged)]
    print(text_of(result.content))
    print(f"\nthe model: {settled.text}")
    made = [fact for fact in facts if isinstance(fact, NestedCallStarted)]
    denied = [fact for fact in facts if isinstance(fact, NestedResultLogged) and fact.code]
    print(f"{len(made)} calls in {len(model.requests)} requests, {len(denied)} of them denied")
    print("they overlapped" if took < 1 else "they ran one by one")


if __name__ == "__main__":
    trio.run(main)
