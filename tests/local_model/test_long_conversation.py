"""A real model counts its tokens, and writes the summary that stands for what it has answered."""

import trioloop
from tests.agent.reading import facts
from tests.local_model.asking import model_of
from trioloop.events import AsideEnded
from trioloop.plugins import compaction
from trioloop.plugins.compaction import CompactionEnded, CompactionStarted
from trioloop.testing import check_session

PAGE = " ".join(f"Cat number {number} is red." for number in range(20))
WINDOW = 400


async def test_a_filling_window_is_relieved_by_the_model_s_own_summary(local_model: str) -> None:
    model = model_of("chat", local_model, max_tokens=20)
    async with (
        trioloop.open_runtime(model=model, strict=True) as runtime,
        compaction(runtime, window_tokens=WINDOW, keep=0),
    ):
        agent = await runtime.create_agent("reader")
        settled = [await agent.ask(f"{PAGE} Say yes.") for _ in range(3)]
        check_session(agent.session)
    await model.aclose()
    assert {one.reason for one in settled} <= {"completed", "max-tokens"}
    assert {start.why for start in facts(agent, CompactionStarted)} == {"pressure"}
    assert "replaced" in {end.outcome for end in facts(agent, CompactionEnded)}
    for aside in facts(agent, AsideEnded):
        assert aside.usage is not None
        assert 100 < (aside.usage.input_tokens or 0) < 2 * WINDOW
    last = settled[-1].usage
    assert (last.input_tokens or 0) < WINDOW
