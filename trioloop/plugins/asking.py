"""Which calls a person is asked about: rules, and answers that are remembered.

How a question is kept open and answered is in `approval`.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

import attrs
import msgspec

from trioloop import Agent, AgentHandle, Event, Fold, InvalidInputError, Runtime, SessionId, events
from trioloop.hooks import Allow, Ask, CallRequest, Deny, Next, PrePolicy
from trioloop.plugins.approval import (
    ApprovalAnswered,
    ApprovalRequested,
    Approvals,
    ApprovalsForgotten,
    void,
)
from trioloop.plugins.options import field, function, instance, or_none, text

Arguments: TypeAlias = dict[str, object]
_PLAIN_CHARACTERS = 200  # of arguments that stand in a subject as they are; longer ones are hashed


def _is_answer(_: object, field: "attrs.Attribute[Any]", value: object) -> None:
    if value not in ("ask", "allow", "deny"):
        raise InvalidInputError(f"{field.name} must be ask, allow or deny, not {value!r}")


def _are_effects(_: object, field: "attrs.Attribute[Any]", value: Collection[str] | None) -> None:
    known = ("read-only", "idempotent", "once")
    if value is None:
        return
    listed = isinstance(value, Collection) and not isinstance(value, str)
    if not listed or not all(one in known for one in value):
        words = f"must be some of {', '.join(known)}, as in effects=('once',), not {value!r}"
        raise InvalidInputError(f"{field.name} {words}")


@attrs.frozen(kw_only=True)
class Rule:
    """Whether some calls may run. All that it names must be so.

    Attributes:
        tool: a pattern of names, such as `write_*`.
        effects: what running the tool does; None: whatever it does.
        when: whether the call's arguments are meant, as decoded; None: whatever they are. Where
            it raises, the call is denied.
        answer: ask a person, let the call run, or deny it.
        question: what is asked, or why it is denied; `{tool}` and `{arguments}` stand for those.
        alike: the part of the arguments that an answer is about which is remembered, as a JSON
            value; None: all of them.

    Raises:
        InvalidInputError: there is no such answer, there are no such effects, or something else
            isn't what it must be.
    """

    tool: str = attrs.field(default="*", validator=field(text))
    effects: Collection[str] | None = attrs.field(default=None, validator=_are_effects)
    when: Callable[[Arguments], bool] | None = attrs.field(
        default=None, validator=field(or_none(function))
    )
    answer: Literal["ask", "allow", "deny"] = attrs.field(default="ask", validator=_is_answer)
    question: str = attrs.field(default="May {tool} run with {arguments}?", validator=field(text))
    alike: Callable[[Arguments], object] | None = attrs.field(
        default=None, validator=field(or_none(function))
    )

    def matches(self, call: CallRequest, arguments: Arguments) -> bool:
        """Whether it is about a call."""
        return (
            fnmatchcase(call.name, self.tool)
            and (self.effects is None or call.effects in self.effects)
            and (self.when is None or self.when(arguments))
        )

    def words(self, tool: str, arguments: Arguments) -> str:
        """The question, or the reason."""
        text = msgspec.json.encode(arguments).decode()
        return self.question.replace("{tool}", tool).replace("{arguments}", text)

    def subject(self, tool: str, arguments: Arguments) -> str:
        """What a remembered answer is about: calls with equal subjects share it."""
        part = arguments if self.alike is None else self.alike(arguments)
        text = msgspec.json.encode(part, order="deterministic").decode()
        if len(text) > _PLAIN_CHARACTERS:
            text = hashlib.sha256(text.encode()).hexdigest()
        return f"{tool} {text}"


EFFECTS = Rule(effects=("once", "idempotent"))
"""Ask about everything that may change something."""


@attrs.frozen
class Memory:
    """What a log says of answers that hold for further calls.

    Attributes:
        subjects: of the open questions, by id.
        answers: by subject.
    """

    subjects: dict[str, str] = attrs.Factory(dict)
    answers: dict[str, ApprovalAnswered] = attrs.Factory(dict)


def _remembered(memory: Memory, event: Event) -> Memory:
    match event.data:
        case ApprovalRequested(approval=approval, about=about) if about:
            return attrs.evolve(memory, subjects={**memory.subjects, approval: about})
        case ApprovalAnswered() as answer if answer.approval in memory.subjects:
            return _answered(memory, answer)
        case ApprovalsForgotten(about=None):
            return attrs.evolve(memory, answers={})
        case ApprovalsForgotten(about=about):
            kept = {other: one for other, one in memory.answers.items() if other != about}
            return attrs.evolve(memory, answers=kept)
        case events.TurnStarted(retry_of=None):
            kept = {about: one for about, one in memory.answers.items() if one.remember != "turn"}
            return (
                memory if len(kept) == len(memory.answers) else attrs.evolve(memory, answers=kept)
            )
    return memory


def _answered(memory: Memory, answer: ApprovalAnswered) -> Memory:
    left = dict(memory.subjects)
    about = left.pop(answer.approval)
    answers = memory.answers if answer.remember is None else {**memory.answers, about: answer}
    return Memory(left, answers)


MEMORY: Fold[Memory] = Fold(Memory, _remembered)
"""The answers that a log remembers."""


@asynccontextmanager
async def approval(
    over: Runtime | Agent, *rules: Rule, approvals: Approvals | None = None
) -> AsyncIterator[None]:
    """Ask a person about calls, by rules, while the block is open.

    The first rule that matches a call decides; a call that none matches may run. What listeners
    registered after it deny stays denied, and the arguments that they changed are those that are
    judged. Whoever answers may let the answer be remembered: in the same turn or session it then
    holds for further calls of an equal subject, unasked. Where nobody can be asked, or nobody
    answers in time, the call is denied. What a crash left open is void when its session goes on.

    Args:
        over: a runtime, for all its agents, or one agent.
        rules: in order; left out, all calls that aren't read-only are asked about.
        approvals: where questions are asked; None: by the approver that the runtime was opened
            with. One that isn't `Approvals` is asked each time.

    Raises:
        InvalidInputError: one of the rules is none, or `approvals` isn't `Approvals`.
    """
    if approvals is not None:
        instance("approvals", approvals, of=Approvals)
    for rule in rules:
        instance("a rule", rule, of=Rule)
    judge = _Judge(rules or (EFFECTS,), approvals or _approvals_of(over))

    def void_what_is_open(name: SessionId) -> None:
        if isinstance(over, Runtime):
            void(over.agents[name])

    with (
        over.hooks.pre_execute.add(judge.before_call),
        over.on("created", lambda one: void_what_is_open(one.agent)),
    ):
        yield


def _approvals_of(over: Runtime | Agent) -> Approvals | None:
    approver = over.approver if isinstance(over, Runtime) else None
    return approver if isinstance(approver, Approvals) else None


@attrs.frozen(eq=False)
class _Judge:
    """The listener of `approval`."""

    rules: tuple[Rule, ...]
    approvals: Approvals | None

    async def before_call(self, call: CallRequest, next: Next[PrePolicy]) -> PrePolicy:
        """Let the first rule decide that is about a call."""
        answer = await next()
        if not isinstance(answer, Allow):
            return answer
        arguments = call.arguments if answer.arguments is None else answer.arguments
        rule = first_match(self.rules, call, arguments)
        if rule is None or rule.answer == "allow":
            return answer
        words = rule.words(call.name, arguments)
        if rule.answer == "deny":
            return Deny(f"this call is not allowed: {words}")
        about = rule.subject(call.name, arguments)
        known = remembered(call.agent, about)
        if known is not None:
            return answer if known.allow else _refused(known.reason, words)
        if self.approvals is None:
            return Ask(words, answer.arguments)
        allowed = await self.approvals.ask(call.agent, call.call, words, about)
        return answer if allowed is True else _refused(allowed or "", words)


def first_match(rules: tuple[Rule, ...], call: CallRequest, arguments: Arguments) -> Rule | None:
    """The first rule that is about a call."""
    return next((rule for rule in rules if rule.matches(call, arguments)), None)


def _refused(reason: str, words: str) -> Deny:
    return Deny(reason or f"the approval was refused: {words}")


def remembered(agent: AgentHandle, about: str) -> ApprovalAnswered | None:
    """The answer that holds for calls of a subject; None: none is remembered."""
    return agent.session.folded(MEMORY).answers.get(about)
