"""trioloop: a new agent for each turn, with its log in memory.

Calls overlap as they do elsewhere. Nobody listens to the hooks, as the others have none.
"""

import trioloop
from bench.peers.turns import Answers, Turn, Work, measure
from bench.prepared_model import DONE, PreparedModel, Reads, calls_of


def prepare(work: Work) -> Turn:
    """A runtime with one tool; it is opened in each turn, as there is no longer block around."""
    answers = Answers(work)

    def answer(request: trioloop.Request) -> Reads:
        numbers = answers.next_calls()
        return calls_of("noop", len(numbers), numbers.start) if numbers else DONE

    tool = trioloop.tool(effects="read-only")(work.noop)

    async def turn() -> None:
        async with trioloop.open_runtime(model=PreparedModel(answer), tools=[tool]) as runtime:
            agent = await runtime.create_agent()
            settled = await agent.ask("go")
            assert settled.text == "done", settled

    return turn


if __name__ == "__main__":
    measure(prepare, backend="trio")
