"""A model is made from its name and the environment; a mistake is told in one clear error."""

import subprocess
import sys

import pytest

import trioloop.models
from tests.models.asking import failure_of
from tests.models.serving import Connection, loopback
from trioloop.errors import InvalidInputError
from trioloop.models import (
    SERVICES,
    Anthropic,
    DemonstrationModel,
    OpenAIChat,
    OpenAIResponses,
    from_name,
)


def test_a_name_finds_its_service_and_key() -> None:
    model = from_name("openai:gpt-x", environment={"OPENAI_API_KEY": "k"})
    assert isinstance(model, OpenAIChat)
    assert (model.provider, model.name) == ("openai", "gpt-x")
    assert repr(model) == "<OpenAIChat 'gpt-x' at api.openai.com>"


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())
def test_every_service_has_a_key_of_its_own(service: trioloop.models.Service) -> None:
    model = from_name(f"{service.name}:m:x", environment={service.key_variable: "k"})
    assert (model.provider, model.name) == (service.provider, "m:x")
    with pytest.raises(InvalidInputError, match=f"set {service.key_variable}"):
        from_name(f"{service.name}:m", environment={})


@pytest.mark.parametrize(
    ("name", "adapter", "variable", "host"),
    [
        ("anthropic:m", Anthropic, "ANTHROPIC_API_KEY", "api.anthropic.com"),
        ("openai-responses:m", OpenAIResponses, "OPENAI_API_KEY", "api.openai.com"),
        ("qwen:m", OpenAIChat, "DASHSCOPE_API_KEY", "dashscope-intl.aliyuncs.com"),
    ],
)
def test_a_service_has_the_adapter_and_the_variable_that_people_know(
    name: str, adapter: type, variable: str, host: str
) -> None:
    model = from_name(name, environment={variable: "k"})
    assert type(model) is adapter
    assert repr(model) == f"<{adapter.__name__} 'm' at {host}>"


TOKEN = {"ANTHROPIC_AUTH_TOKEN": "a-token"}
KEY = {"ANTHROPIC_API_KEY": "a-key"}


@pytest.mark.parametrize(
    ("environment", "sent", "not_sent"),
    [
        (TOKEN, b"authorization: bearer a-token", b"x-api-key"),
        (KEY, b"x-api-key: a-key", b"authorization"),
        (TOKEN | KEY, b"x-api-key: a-key", b"authorization"),
    ],
)
async def test_a_bearer_token_goes_in_the_place_of_a_key(
    environment: dict[str, str], sent: bytes, not_sent: bytes
) -> None:
    async def refuse(connection: Connection) -> None:
        await connection.request()
        await connection.head(status=b"401 Unauthorized")
        await connection.end()

    async with loopback(refuse) as server:
        address = {"ANTHROPIC_BASE_URL": server.base_url}
        model = from_name("anthropic:m", environment=environment | address)
        failure = await failure_of(model)
        await model.aclose()  # type: ignore[attr-defined]  # an adapter has it
    assert failure.code == "AUTH"
    (head,) = server.heads
    assert sent in head
    assert not_sent not in head


def test_a_token_is_found_for_its_own_service_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "t\n")  # which no header can hold
    Anthropic("m", base_url="https://other.test")
    Anthropic("m", api_key="k")
    with pytest.raises(InvalidInputError, match="authorization"):
        Anthropic("m")


def test_the_address_of_a_messages_server_may_end_in_v1_or_not() -> None:
    for address in ("http://127.0.0.1:8899", "http://127.0.0.1:8899/v1/"):
        model = from_name("anthropic:local", environment={"ANTHROPIC_BASE_URL": address})
        assert (model.provider, model.name) == ("127.0.0.1", "local")


def test_another_server_needs_no_key() -> None:
    at_home = {"OPENAI_BASE_URL": "http://127.0.0.1:8899/v1"}
    for model in (
        from_name("openai:local", environment=at_home),
        from_name("openai:local", base_url=at_home["OPENAI_BASE_URL"], environment={}),
    ):
        assert (model.provider, model.name) == ("127.0.0.1", "local")


def test_the_demonstration_model_needs_nothing() -> None:
    assert isinstance(from_name("demonstration", environment={}), DemonstrationModel)


@pytest.mark.parametrize("name", ["gpt-x", "openai", "openai:", "nobody:m", "", ":m"])
def test_an_unknown_name_is_told_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInputError, match="names no model: use one of openai:MODEL"):
        from_name(name, environment={"OPENAI_API_KEY": "k"})


def test_a_key_is_found_for_its_own_service_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k\n")  # which no header can hold
    OpenAIChat("m", base_url="https://other.test/v1")
    with pytest.raises(InvalidInputError, match="authorization"):
        OpenAIChat("m")
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(InvalidInputError, match="set OPENAI_API_KEY, or give api_key="):
        OpenAIChat("m")


def test_each_name_of_the_package_can_be_loaded() -> None:
    for name in trioloop.models.__all__:
        assert getattr(trioloop.models, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = trioloop.models.Nothing


def test_importing_the_package_loads_no_http_client() -> None:
    script = (
        "import sys, trioloop.models\n"
        "from trioloop.models import ScriptedModel, from_name\n"
        "assert not {'httpx', 'httpcore', 'h11'} & sys.modules.keys(), 'too much is loaded'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
