"""Admission: the one synchronous block that commits a step, or what changed before a retry.

Nothing of a step is in the log before it, and nothing here awaits. What leads up to it is in
`step`; which system nodes changed is decided in `prompt`.
"""

from collections.abc import Sequence
from typing import Literal

import attrs

from trioloop.agent.resources import Resources
from trioloop.events import (
    EventData,
    RequestContextLogged,
    RequestHeaderLogged,
    StepStarted,
    SystemMessageLogged,
    ToolDeclaration,
    UserMessageLogged,
)
from trioloop.hooks.points import SectionText
from trioloop.log.rebuild import Request, request_of
from trioloop.messages import UserMessage
from trioloop.ports import PreparedCall
from trioloop.prompt import reconcile

HeaderReason = Literal["initial", "resume", "change", "series"]


@attrs.frozen
class Proposal:
    """A step as it will be committed.

    Attributes:
        turn: the open turn's number.
        step: the number that the step gets, or has.
        messages: what joins the history.
        sections: the system prompt as it reads now.
        tools: the declarations of the step's tool set.
        starts_series: the cached prefix is given up.
    """

    turn: int
    step: int
    messages: tuple[UserMessage, ...]
    sections: tuple[SectionText, ...]
    tools: tuple[ToolDeclaration, ...]
    starts_series: bool


def admit(resources: Resources, proposal: Proposal, prepared: PreparedCall) -> Request:
    """Commit a step, or in an open step what changed since its last attempt (P11).

    Returns:
        The request as the log now tells it, frozen.
    """
    session = resources.session
    turn = session.state.turn
    opens_step = turn is not None and turn.step is None
    if not opens_step and proposal.starts_series:
        proposal = attrs.evolve(proposal, starts_series=False)  # the first admission has (E2)
    system = _system(resources, proposal, prepared)
    facts: list[EventData] = [*system]
    if opens_step:
        started = StepStarted(proposal.turn, proposal.step)
        facts = [started, *system, *map(UserMessageLogged, proposal.messages)]
    why = _header_reason(resources, proposal, prepared, system)
    if why is not None:
        facts.append(RequestHeaderLogged(prepared.config, proposal.tools, why))
    context = _context(prepared)
    if context != session.state.context:
        facts.append(context)
    session.append(*facts)
    session.hold_history()
    return request_of(session.state)


def _system(
    resources: Resources, proposal: Proposal, prepared: PreparedCall
) -> tuple[SystemMessageLogged, ...]:
    return reconcile(
        resources.session.state.surface,
        proposal.sections,
        update=prepared.capabilities.system_update,
        starts_series=proposal.starts_series,
    )


def _header_reason(
    resources: Resources,
    proposal: Proposal,
    prepared: PreparedCall,
    system: Sequence[SystemMessageLogged],
) -> HeaderReason | None:
    header = resources.session.state.header
    if header is None:
        return "initial"
    if proposal.starts_series or any(node.placement == "head" for node in system):
        return "series"
    if not resources.session.has_own_header:
        return "resume"
    if header.config != prepared.config or header.tools != proposal.tools:
        return "change"
    return None


def _context(prepared: PreparedCall) -> RequestContextLogged:
    config = prepared.config
    return RequestContextLogged(config.provider, config.model, prepared.capabilities.context_window)
