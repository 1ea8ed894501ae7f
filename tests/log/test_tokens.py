"""Tokens of the next request: what a provider counted, and a guess beyond."""

import pytest

from trioloop import ByteEstimator, context_tokens, user_message
from trioloop.chunks import Usage
from trioloop.events import UserMessageLogged
from trioloop.messages import ImageBlock, SystemMessage, TextBlock
from trioloop.testing import Answer, ScriptedModel, Text, open_test_runtime

PLAIN = ByteEstimator(message_tokens=0)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本語", 3), ("😀", 1)]
)
def test_texts_are_guessed_by_their_bytes(text: str, tokens: int) -> None:
    assert PLAIN.estimate([SystemMessage("s", text)]) == tokens


def test_images_and_frames_have_a_price_of_their_own() -> None:
    message = user_message([TextBlock("abcd"), ImageBlock("image/png", "A" * 100_000)])
    assert ByteEstimator().estimate([message]) == 1 + 1_600 + 4
    assert ByteEstimator(image_tokens=7).estimate([message, message]) == 2 * (1 + 7 + 4)


async def test_what_a_provider_counted_is_taken_over_and_the_rest_guessed() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=50)
    model = ScriptedModel([Answer([Text("one")], usage=None), Answer([Text("two")], usage=usage)])
    async with open_test_runtime(model=model, system="abcd" * 10) as runtime:
        agent = await runtime.create_agent("a")
        session = agent.session
        assert context_tokens(session, estimator=PLAIN) == 0
        await agent.ask("abcd")
        assert context_tokens(session, estimator=PLAIN) == 10 + 1 + 1
        await agent.ask("abcd" * 100)
        assert context_tokens(session, estimator=PLAIN) == 1_050
        joining = [user_message("abcd" * 3)]
        tokens = context_tokens(session, joining=joining, estimator=PLAIN)
        assert tokens == 1_053


async def test_a_count_of_what_was_replaced_since_is_worth_nothing() -> None:
    model = ScriptedModel([Text("one"), Text("two")])
    async with open_test_runtime(model=model) as runtime:
        agent = await runtime.create_agent("a")
        await agent.ask("abcd" * 100)
        session = agent.session
        (first, _), (last, _) = session.state.surface.nodes
        session.append(UserMessageLogged(user_message("abcd"), replaces=(first, last)))
        assert context_tokens(session, estimator=PLAIN) == 1
