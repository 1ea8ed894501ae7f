"""The demonstration model's decision for one request: which calls to make, or what to say."""

from collections.abc import Sequence

import attrs

from trioloop.log.rebuild import Request
from trioloop.models.demonstration.answering import answer
from trioloop.models.demonstration.conversation import Called, Conversation, read_conversation
from trioloop.models.demonstration.declaration import DeclaredTool, read_tool
from trioloop.models.demonstration.planning import (
    PlannedCall,
    Step,
    Unserved,
    Waiting,
    forced_call,
    plan,
    settle,
)
from trioloop.models.demonstration.values import Reader

_FOLLOW_UPS = ("and ", "what about ", "how about ", "also ", "now ")


@attrs.frozen
class Decision:
    """What one answer holds: text, or calls. `words_read` counts the words of the question."""

    text: str
    calls: tuple[PlannedCall, ...]
    calls_before: int
    words_read: int


@attrs.frozen
class _Agenda:
    """What is still to be called, and what can't be."""

    pending: tuple[PlannedCall, ...]
    unserved: tuple[Unserved, ...]


def decide(request: Request, reader: Reader) -> Decision:
    """Decide from a request alone; the same request always gives the same decision."""
    conversation = read_conversation(request.history)
    tools = _tools(request)
    agenda = _agenda(conversation, tools, reader)
    pending = agenda.pending or _forced(request, conversation, tools, reader)
    if request.config.parallel_tool_calls is False:
        pending = pending[:1]
    words_read = sum(len(question.split()) for question in conversation.questions)
    before = len(conversation.called)
    if pending:
        return Decision("", pending, before, words_read)
    text = answer(
        conversation.called,
        agenda.unserved,
        [declaration.name for declaration in request.tools],
        introduce=conversation.is_first,
        may_call=request.config.tool_choice != "none",
    )
    return Decision(text, (), before, words_read)


def _tools(request: Request) -> list[DeclaredTool]:
    choice = request.config.tool_choice
    if choice == "none":
        return []
    tools = [read_tool(declaration) for declaration in request.tools]
    return [tool for tool in tools if tool.name == choice] or tools


def _agenda(conversation: Conversation, tools: Sequence[DeclaredTool], reader: Reader) -> _Agenda:
    """Walk the plan: calls that were made are passed, a step that waits stops where it must."""
    made = list(conversation.called)
    last: Called | None = None
    pending: list[PlannedCall] = []
    unserved: list[Unserved] = []
    for planned in _plan(conversation, tools, reader):
        step = planned
        if isinstance(step, Waiting):
            if pending or last is None:
                break
            step = settle(step, last.result, tools, reader)
        if isinstance(step, Unserved):
            unserved.append(step)
        elif made:
            last = made.pop(0)
        elif isinstance(step, PlannedCall):
            pending.append(step)
    return _Agenda(tuple(pending), tuple(unserved))


def _plan(conversation: Conversation, tools: Sequence[DeclaredTool], reader: Reader) -> list[Step]:
    return [
        step
        for question in conversation.questions
        for step in _plan_question(question, conversation, tools, reader)
    ]


def _plan_question(
    question: str, conversation: Conversation, tools: Sequence[DeclaredTool], reader: Reader
) -> list[Step]:
    steps = plan(question, tools, reader)
    if any(isinstance(step, PlannedCall) for step in steps):
        return steps
    opening = question.lower().lstrip()
    if opening.startswith(_FOLLOW_UPS):
        same = next((tool for tool in tools if tool.name == conversation.last_tool), None)
        call = forced_call(_rest(question), same, reader) if same is not None else None
        if call is not None:
            return [call]
    return steps


def _rest(question: str) -> str:
    """A follow-up without its opening: "and in Tokyo?" is "in Tokyo?"."""
    bare = question.strip()
    opening = next(opening for opening in _FOLLOW_UPS if bare.lower().startswith(opening))
    rest = bare[len(opening) :]
    return rest if rest.lower().startswith(("in ", "for ", "with ", "from ")) else f"for {rest}"


def _forced(
    request: Request, conversation: Conversation, tools: Sequence[DeclaredTool], reader: Reader
) -> tuple[PlannedCall, ...]:
    """A call that the settings ask for though the question doesn't; once in a turn."""
    choice = request.config.tool_choice
    if choice in (None, "auto", "none") or conversation.called:
        return ()
    question = " ".join(conversation.questions)
    calls = (forced_call(question, tool, reader, complete=True) for tool in tools)
    first = next((call for call in calls if call is not None), None)
    return () if first is None else (first,)
