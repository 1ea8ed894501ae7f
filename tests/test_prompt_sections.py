"""Which sections a prompt has, in which order, and what of them must be told anew (E1)."""

from typing import cast

import pytest
import trio

from trioloop.errors import HookMisuseError, InvalidInputError
from trioloop.events import SystemMessageLogged
from trioloop.handles import AgentHandle
from trioloop.hooks.dispatch import Next, Waterfall
from trioloop.hooks.points import Assembly, SectionText
from trioloop.log.surface import Surface
from trioloop.prompt import Prompt, Section, assemble, reconcile

AGENT = cast(AgentHandle, object())
Assembling = Waterfall[Assembly, tuple[SectionText, ...]]


async def texts(*prompts: Prompt, hook: Assembling | None = None) -> list[str]:
    """The texts of an assembly."""
    sections = await assemble(prompts, [] if hook is None else [hook], AGENT)
    return [section.text for section in sections]


def prompt(*sections: Section) -> Prompt:
    """A prompt of these sections."""
    made = Prompt()
    for section in sections:
        made.add(section)
    return made


async def test_sections_stand_by_order_then_by_name() -> None:
    made = prompt(
        Section("b", "b0"), Section("z", "z-1", -1), Section("a", "a0"), Section("c", "c2", 2)
    )
    assert await texts(made) == ["z-1", "a0", "b0", "c2"]


async def test_a_source_may_be_text_or_a_function_plain_or_async() -> None:
    async def later(agent: AgentHandle) -> str:
        await trio.lowlevel.checkpoint()
        assert agent is AGENT
        return "async"

    made = prompt(Section("a", "text"), Section("b", lambda agent: "plain"), Section("c", later))
    assert await texts(made) == ["text", "plain", "async"]


async def test_a_section_without_text_is_left_out() -> None:
    made = prompt(Section("a", ""), Section("b", lambda agent: None), Section("c", "c"))
    assert await texts(made) == ["c"]


async def test_a_later_scope_shadows_by_name() -> None:
    wide = prompt(Section("a", "wide a"), Section("b", "wide b"))
    assert await texts(wide, prompt(Section("a", "own a", 5))) == ["wide b", "own a"]
    assert await texts(wide, prompt(Section("a", ""))) == ["wide b"]


def test_a_name_stands_once_in_a_scope_until_it_is_closed() -> None:
    made = Prompt()
    registration = made.section("a", "one")
    with pytest.raises(InvalidInputError):
        made.section("a", "two")
    registration.close()
    with made.section("a", "two"):
        assert [one.source for one in made.sections] == ["two"]
    assert made.sections == ()


async def test_a_listener_sees_the_ordered_sections_and_its_answer_is_ordered_again() -> None:
    hook = Assembling("system_prompt.assemble")

    @hook
    async def listener(
        payload: Assembly, next: Next[tuple[SectionText, ...]]
    ) -> tuple[SectionText, ...]:
        assert await next() == payload.sections
        assert [one.name for one in payload.sections] == ["a", "b"]
        return (SectionText("z", "last", 9), SectionText("y", "first", -9), *payload.sections)

    made = prompt(Section("b", "b"), Section("a", "a"))
    assert await texts(made, hook=hook) == ["first", "a", "b", "last"]


@pytest.mark.parametrize("answer", [("text",), (SectionText("a", "1"), SectionText("a", "2"))])
async def test_an_answer_that_is_no_prompt_is_refused(answer: object) -> None:
    hook = Assembling("system_prompt.assemble")

    @hook
    async def listener(
        payload: Assembly, next: Next[tuple[SectionText, ...]]
    ) -> tuple[SectionText, ...]:
        return cast(tuple[SectionText, ...], answer)

    with pytest.raises(HookMisuseError):
        await texts(prompt(Section("a", "a")), hook=hook)


async def test_braces_in_a_text_are_left_as_they_are() -> None:
    assert await texts(prompt(Section("a", "{name} {{x}}"))) == ["{name} {{x}}"]


# What must be told anew


def seen(*heads: SystemMessageLogged) -> Surface:
    """A surface on which the model has seen these."""
    surface = Surface()
    for seq, head in enumerate(heads):
        surface.set_system(seq, head)
    return surface


OLD = SystemMessageLogged("a", 0, "head", "old")


def test_an_unchanged_section_is_not_told_again() -> None:
    sections = [SectionText("a", "old")]
    assert reconcile(seen(OLD), sections, update="replace", starts_series=False) == ()


@pytest.mark.parametrize(("update", "placement"), [("replace", "head"), ("in-history", "tail")])
def test_a_changed_section_alone_is_told_where_the_model_takes_it(
    update: str, placement: str
) -> None:
    sections = [SectionText("a", "new"), SectionText("b", "old")]
    surface = seen(OLD, SystemMessageLogged("b", 0, "head", "old"))
    (told,) = reconcile(surface, sections, update=update, starts_series=False)  # type: ignore[arg-type]
    assert (told.node, told.placement, told.text) == ("a", placement, "new")


def test_a_section_that_is_gone_is_told_as_removed() -> None:
    (told,) = reconcile(seen(OLD), [], update="replace", starts_series=False)
    assert (told.node, told.placement, told.text) == ("a", "head", None)


def test_the_first_prompt_stands_in_the_head_whatever_the_model_takes() -> None:
    (told,) = reconcile(
        Surface(), [SectionText("a", "x")], update="in-history", starts_series=False
    )
    assert told.placement == "head"


def test_a_series_brings_the_head_up_to_what_was_told_in_the_history() -> None:
    surface = seen(OLD, SystemMessageLogged("a", 0, "tail", "new"))
    sections = [SectionText("a", "new")]
    assert reconcile(surface, sections, update="in-history", starts_series=False) == ()
    (told,) = reconcile(surface, sections, update="in-history", starts_series=True)
    assert (told.placement, told.text) == ("head", "new")


@pytest.mark.parametrize("between", ["new", None])
def test_a_series_tells_anew_a_section_that_reads_again_as_in_the_head(between: str | None) -> None:
    surface = seen(OLD, SystemMessageLogged("a", 0, "tail", between))
    (told,) = reconcile(surface, [SectionText("a", "old")], update="in-history", starts_series=True)
    assert (told.placement, told.text) == ("head", "old")
