"""`trioloop run`: one prompt, one turn."""

import trio

from trioloop.agent.agent import Agent
from trioloop.agent.notifications import Settled
from trioloop.cli.console import Output
from trioloop.cli.exits import ABORTED, ExitCode, code_of, why
from trioloop.cli.interrupts import Interrupts, cause_of, interruptible
from trioloop.cli.setup import Setup, opened
from trioloop.cli.watching import shown


async def run_turn(setup: Setup, prompt: str, output: Output) -> ExitCode:
    """Ask once, show what happens, and say how it ended."""
    settled: Settled | None = None
    async with interruptible() as interrupts, opened(setup) as agent:
        output.introduce(setup, agent.name)
        async with shown(agent, output.display(trio.current_time()), animated=output.is_animated):
            settled = await _ask(agent, prompt, interrupts)
    if interrupts.exit_code is not None:
        output.complain(f"{interrupts.word}; the turn is closed")
        return interrupts.exit_code
    if settled is None:
        return ABORTED
    if (told := why(settled)) is not None:
        output.complain(told)
    return code_of(settled)


async def _ask(agent: Agent, prompt: str, interrupts: Interrupts) -> Settled | None:
    """The outcome of the prompt; None where a signal withdrew it before it had one."""
    with trio.CancelScope() as asking:

        def withdraw(number: int) -> bool:
            if asking.cancel_called:
                return False
            agent.cancel(cause_of(number))
            asking.cancel()
            return True

        interrupts.react = withdraw
        return await agent.ask(prompt)
    await agent.wait_idle()
    return None
