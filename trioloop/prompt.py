"""The system prompt: sections, their assembly, and what of it must be told anew (E1).

A section is a text or a function of the agent; the log keeps one node per section. Which sections
there are is the application's; the waterfall around the assembly is in `hooks/`.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Literal, TypeAlias

import attrs

from trioloop.errors import InvalidInputError
from trioloop.events import SystemMessageLogged
from trioloop.handles import AgentHandle
from trioloop.hooks.checks import is_place, is_text, is_word
from trioloop.hooks.dispatch import Registration, Waterfall, ask_waterfall, misuse
from trioloop.hooks.points import Assembly, SectionText
from trioloop.log.surface import Surface

SectionSource: TypeAlias = str | Callable[[AgentHandle], "str | Awaitable[str | None] | None"]


def _is_source(owner: object, field: "attrs.Attribute[SectionSource]", value: object) -> None:
    if not callable(value):
        is_text(owner, field, value)


@attrs.frozen
class Section:
    """A part of the system prompt.

    Attributes:
        name: its node in the log.
        source: its text, or a function of the agent, plain or async, asked once per proposed step;
            an empty text or None leaves the section out.
        order: sections stand in this order; those of equal order in order of their names.

    Raises:
        InvalidInputError: one of them is none.
    """

    name: str = attrs.field(validator=is_word)
    source: SectionSource = attrs.field(validator=_is_source)
    order: int = attrs.field(default=0, validator=is_place)


class Prompt:
    """The sections of one scope: a runtime's, or an agent's, which shadow those by name."""

    __slots__ = ("_sections",)

    def __init__(self) -> None:
        self._sections: tuple[Section, ...] = ()

    @property
    def sections(self) -> tuple[Section, ...]:
        """The registered sections."""
        return self._sections

    def section(self, name: str, source: SectionSource, *, order: int = 0) -> Registration:
        """Register a section.

        Raises:
            InvalidInputError: the scope has a section of that name.
        """
        return self.add(Section(name, source, order))

    def add(self, section: Section) -> Registration:
        """Register a section that exists already, as `section` does."""
        if any(known.name == section.name for known in self._sections):
            raise InvalidInputError(f"there is a section {section.name!r} already: close that one")
        self._sections = (*self._sections, section)

        def remove() -> None:
            self._sections = tuple(kept for kept in self._sections if kept is not section)

        return Registration(remove)


async def assemble(
    prompts: Sequence[Prompt],
    hooks: Sequence[Waterfall[Assembly, tuple[SectionText, ...]]],
    agent: AgentHandle,
) -> tuple[SectionText, ...]:
    """The sections as they read now, after the waterfall, in their final order.

    Args:
        prompts: those of each scope, the widest first; a later one shadows by name.
        hooks: `system_prompt.assemble` of each scope.
        agent: whose prompt.

    Raises:
        HookMisuseError: a listener answered something else than sections of different names.
        Exception: whatever a section's function or a listener raised.
    """
    chosen = {section.name: section for prompt in prompts for section in prompt.sections}
    texts = [SectionText(one.name, await _text(one, agent), one.order) for one in chosen.values()]
    payload = Assembly(agent, _ordered(texts))

    async def unchanged() -> tuple[SectionText, ...]:
        return payload.sections

    answered = await ask_waterfall(hooks, payload, unchanged)
    if answered.by is None:
        return payload.sections
    return _ordered(_checked(answered.answer, answered.by))


async def _text(section: Section, agent: AgentHandle) -> str:
    if isinstance(section.source, str):
        return section.source
    text = section.source(agent)
    return (await text if isawaitable(text) else text) or ""


def _ordered(sections: Iterable[SectionText]) -> tuple[SectionText, ...]:
    present = (section for section in sections if section.text)
    return tuple(sorted(present, key=lambda section: (section.order, section.name)))


def _checked(answer: Iterable[SectionText], by: str) -> tuple[SectionText, ...]:
    if not isinstance(answer, Iterable):
        raise misuse(f"system_prompt.assemble answers sections, not {answer!r}", by)
    sections = tuple(answer)
    for section in sections:
        if not isinstance(section, SectionText):
            raise misuse(f"system_prompt.assemble answers sections, not {section!r}", by)
    if len({section.name for section in sections}) != len(sections):
        raise misuse("system_prompt.assemble answered two sections of the same name", by)
    return sections


def reconcile(
    surface: Surface,
    sections: Sequence[SectionText],
    *,
    update: Literal["replace", "in-history"],
    starts_series: bool,
) -> tuple[SystemMessageLogged, ...]:
    """What must be logged so that the model sees these sections: changed nodes only (E1).

    Args:
        surface: what the model sees now.
        sections: what it shall see, in order.
        update: how a change reaches this model.
        starts_series: the cached prefix is given up anyway, so that changes go into the head.
    """
    wanted = {section.name: section.text for section in sections}
    in_head = {head.node: head.text for head in surface.heads}
    seen = surface.sections()
    into_head = starts_series or not surface.heads or (update == "replace" and wanted != seen)
    there = in_head if into_head else seen
    placement: Literal["head", "tail"] = "head" if into_head else "tail"
    removed = [
        SystemMessageLogged(node, 0, placement, None) for node in there if node not in wanted
    ]
    # A head node that reads as it should is told anew where the history said otherwise since.
    changed = [
        SystemMessageLogged(section.name, section.order, placement, section.text)
        for section in sections
        if not there.get(section.name) == section.text == seen.get(section.name)
    ]
    return (*removed, *changed)
