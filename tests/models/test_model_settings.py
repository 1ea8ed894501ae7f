"""How a Chat Completions model is made and prepared, and what is refused there."""

import msgspec
import pytest

from tests.models.serving import ANSWER, mocked, streaming
from trioloop.errors import InvalidInputError, ModelFailure
from trioloop.events import CallConfig
from trioloop.models import ConnectionLimits, Deadlines, OpenAIChat

CONFIG = CallConfig(provider="api.test", model="m")


async def test_settings_are_filled_in_where_a_request_leaves_them_open() -> None:
    model, _ = mocked(
        streaming(ANSWER), temperature=0.0, max_tokens=5, extra={"seed": 1, "top_k": 2}
    )
    config = msgspec.structs.replace(CONFIG, max_tokens=9, extra={"seed": 3})
    call = await model.prepare(config)
    assert call.config == msgspec.structs.replace(
        config, temperature=0.0, max_tokens=9, extra={"seed": 3, "top_k": 2}
    )


async def test_settings_for_another_provider_are_refused() -> None:
    model, _ = mocked(streaming(ANSWER))
    with pytest.raises(ModelFailure, match="'elsewhere'") as caught:
        await model.prepare(CallConfig(provider="elsewhere", model="m"))
    assert caught.value.code == "UNSUPPORTED"


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="temprature"):
        mocked(temprature=1)


def test_a_key_that_no_header_can_hold_is_refused_without_being_told() -> None:
    with pytest.raises(InvalidInputError, match="'authorization'") as caught:
        mocked(api_key="secret\n")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "base_url", ["api.test/v1", "ftp://api.test", "https://", "http://h:port", "http://[::1"]
)
def test_an_address_that_is_none_is_refused(base_url: str) -> None:
    with pytest.raises(InvalidInputError):
        OpenAIChat("m", base_url=base_url, api_key="k")


def test_a_password_in_an_address_is_refused_without_being_told() -> None:
    with pytest.raises(InvalidInputError) as caught:
        OpenAIChat("m", base_url="https://me:secret@api.test/v1", api_key="k")
    assert "secret" not in str(caught.value)


def test_deadlines_and_limits_are_greater_than_0() -> None:
    with pytest.raises(InvalidInputError, match="idle_bytes_s"):
        Deadlines(idle_bytes_s=0)
    with pytest.raises(InvalidInputError, match="connections_max"):
        ConnectionLimits(connections_max=-1)
