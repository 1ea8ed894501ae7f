"""Questions that a person answers: list, answer, forget.

The first answer counts, also across a restart.
"""

from trioloop.control import parameters
from trioloop.control.faults import WireError
from trioloop.control.results import Answered, Approvals, Done
from trioloop.control.service import Service
from trioloop.errors import InvalidInputError
from trioloop.plugins.approval import ApprovalAnswered, UnknownApprovalError, decided
from trioloop.plugins.asking import MEMORY


async def list_approvals(service: Service, asked: parameters.Nothing) -> Approvals:
    """The questions that wait."""
    return Approvals(approvals=service.open_approvals())


async def answer(service: Service, asked: parameters.Answer) -> Answered:
    """Answer a question; answered the same way before, it gives the first outcome."""
    if service.approvals is None:
        raise WireError("not_found")
    agent = await service.live(asked.approval.partition(".")[0])
    try:
        given = service.approvals.answer(
            asked.approval, allow=asked.allow, reason=asked.reason, remember=asked.remember
        )
    except InvalidInputError:  # it says of no further call what it is about
        raise WireError("invalid_params", field="remember") from None
    except UnknownApprovalError:
        found = decided(agent.session.events(), asked.approval)
        if found is None:
            raise WireError("not_found") from None
        if not _is_same(found, asked):
            raise WireError("already_decided", facts={"outcome": found.outcome}) from None
        given = found
    await agent.session.checkpoint()
    return Answered(approval=given.approval, allow=given.allow, remember=given.remember)


async def forget(service: Service, asked: parameters.Forgetting) -> Done:
    """Take back answers that hold; nothing is logged where none does."""
    if service.approvals is None:
        raise WireError("not_found")
    agent = await service.live(asked.agent)
    held = agent.session.folded(MEMORY).answers
    if not held or (asked.about is not None and asked.about not in held):
        return Done(changed=False)
    service.approvals.forget(agent, asked.about)
    await agent.session.checkpoint()
    return Done()


def _is_same(found: ApprovalAnswered, asked: parameters.Answer) -> bool:
    mine = (asked.allow, asked.reason, asked.remember)
    theirs = (found.allow, found.reason, found.remember)
    return found.outcome == "answered" and theirs == mine
