"""Which model is asked: the one named, one whose key is there, or the demonstration model."""

import pytest

from trioloop.cli.exits import CommandError
from trioloop.cli.model_choice import choose_model
from trioloop.errors import InvalidInputError


def test_without_anything_it_is_the_demonstration_model_and_says_so() -> None:
    choice = choose_model(None, None, {})
    assert choice.is_demonstration
    assert choice.note is not None
    assert "demonstration" in choice.note


def test_a_model_that_was_named_needs_no_note() -> None:
    assert choose_model("demonstration", None, {}).note is None


def test_a_key_in_the_environment_chooses_its_service_and_says_so() -> None:
    choice = choose_model(None, None, {"OPENAI_API_KEY": "k"})
    assert choice.model.provider == "openai"
    assert choice.note == f"OPENAI_API_KEY is set: asking openai:{choice.model.name}"


def test_an_empty_key_is_no_key() -> None:
    assert choose_model(None, None, {"OPENAI_API_KEY": ""}).is_demonstration


def test_an_address_takes_any_model_name_and_needs_no_key() -> None:
    choice = choose_model("local", "http://127.0.0.1:8899/v1", {})
    assert (choice.model.name, choice.model.provider) == ("local", "127.0.0.1")


def test_an_address_and_a_service_go_together() -> None:
    assert choose_model("openai:local", "http://127.0.0.1:8899/v1", {}).model.name == "local"


@pytest.mark.parametrize(("name", "error"), [("gpt", InvalidInputError), (None, CommandError)])
def test_what_names_no_model_is_refused(name: str | None, error: type[Exception]) -> None:
    address = "http://127.0.0.1:9" if name is None else None
    with pytest.raises(error):
        choose_model(name, address, {})
