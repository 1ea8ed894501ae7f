"""How a script is drawn from a seed: a few themes, each of which makes some of it likelier."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar, get_args

from tests.simulation.listeners import DOES
from tests.simulation.policies.drawing import with_policies
from tests.simulation.script import (
    AgentScript,
    BodyAct,
    Deed,
    DeedKind,
    Ending,
    Fault,
    HookPlace,
    HookScript,
    Leaving,
    ObserverScript,
    Script,
    SectionScript,
    Settings,
    StoreFault,
    ToolScript,
    UserAct,
    UserScript,
    Wait,
)
from trioloop.chunks import FinishReason
from trioloop.errors import MODEL_FAILURE_CODES
from trioloop.testing import Answer, Fail, Reasoning, Refusal, Stall, Text, ToolCall
from trioloop.testing import Wait as ModelWait

ItemT = TypeVar("ItemT")

SECONDS = (0, 0, 0, 0.1, 0.5, 0.5, 1, 2.5)
LONG = (0.5, 1, 3, 8)
SENDS: tuple[DeedKind, ...] = ("followup", "steer", "inject")
CANCELS: tuple[DeedKind, ...] = ("cancel", "cancel", "cancel-discard", "cancel-call")
INBOX: tuple[DeedKind, ...] = ("wake", "remove", "replace", "clear", "restore", "repeat", "note")
REWRITES: tuple[DeedKind, ...] = ("note", "compact", "prune")
RARE: tuple[DeedKind, ...] = ("dispose", "dispose-discard", "swap-tool", "raise")
WATCHED = (
    *("events", "events", "events", "status", "inserted", "claimed", "discarded", "spliced"),
    *("stream-start", "stream-chunk", "stream-end", "tool-progress", "settled", "error"),
    *("turn/start", "turn/end", "step/start", "step/end", "tool/call", "tool/dispatch"),
    *("tool/result", "assistant/attempt", "assistant/attempt", "assistant/message"),
)
WAITS: tuple[Wait, ...] = get_args(Wait)[:-1]  # the last is about policies
ALWAYS = tuple(range(9))
CODES = sorted(MODEL_FAILURE_CODES)
FAULTS: tuple[Fault, ...] = ("slow", "slow", "slow", "fail", "odd", "torn", "fence")
ENDINGS: tuple[Leaving, ...] = ("idle", "idle", "idle", "leave", "host", "raise")
FINISHES: tuple[FinishReason, ...] = ("length", "length", "pause", "pause", "content_filter")


def drawn(seed: int) -> Script:
    """The script of a seed."""
    return with_policies(_Drawing(random.Random(seed)).script(seed), seed)


class _Drawing:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._themes = {
            theme: chance.random() < likely
            for theme, likely in {
                "tools": 0.7,
                "hooks": 0.6,
                "faults": 0.2,
                "observers": 0.4,
                "failures": 0.4,
                "sections": 0.5,
                "cancels": 0.6,
                "rewrites": 0.35,
            }.items()
        }
        self._tools: list[ToolScript] = []
        self._agents = 1

    def script(self, seed: int) -> Script:
        self._agents = self._one((1, 1, 1, 2, 2, 3))
        if self._themes["tools"]:
            self._tools = [self._tool(number) for number in range(self._chance.randint(1, 4))]
        return Script(
            seed=seed,
            agents=tuple(
                AgentScript(self._some(self._answer, 10, least=2)) for _ in range(self._agents)
            ),
            users=self._some(self._user, 4, least=1),
            tools=tuple(self._tools),
            hooks=self._some(self._hook, 8, least=1) if self._themes["hooks"] else (),
            observers=self._observers(),
            sections=tuple(self._section(name) for name in "pqr"[: self._chance.randint(1, 3)])
            if self._themes["sections"]
            else (),
            faults=self._some(self._fault, 3, least=1) if self._themes["faults"] else (),
            settings=self._settings(seed),
            ending=self._ending(),
        )

    # Chance

    def _one(self, items: Sequence[ItemT]) -> ItemT:
        return self._chance.choice(items)

    def _some(self, make: Callable[[], ItemT], most: int, *, least: int = 0) -> tuple[ItemT, ...]:
        return tuple(make() for _ in range(self._chance.randint(least, most)))

    def _likely(self, likely: float) -> bool:
        return self._chance.random() < likely

    # Users, observers

    def _deed(self, kinds: Sequence[DeedKind]) -> Deed:
        return Deed(
            self._one(kinds), self._chance.randrange(self._agents), self._chance.randrange(8)
        )

    def _any_deed(self) -> Deed:
        groups = [SENDS, SENDS, INBOX]
        if self._themes["cancels"]:
            groups += [CANCELS, CANCELS]
        if self._themes["rewrites"]:
            groups += [REWRITES, REWRITES]
        return self._deed(RARE if self._likely(0.07) else self._one(groups))

    def _user(self) -> UserScript:
        bursts = [self._burst() for _ in range(self._chance.randint(1, 3))]
        return UserScript(tuple(act for burst in bursts for act in burst))

    def _burst(self) -> tuple[UserAct, ...]:
        """A message that opens a turn, what happens in its course, and a wait behind it."""
        first = UserAct(self._one(SECONDS), self._deed(("followup", "followup", "steer")))
        return (first, *self._some(self._point, 4), *self._some(self._user_act, 4))

    def _point(self) -> UserAct:
        return UserAct(0, self._any_deed(), after_steps=self._chance.randint(1, 150))

    def _user_act(self) -> UserAct:
        after_s = self._one(SECONDS)
        if self._likely(0.5):
            return UserAct(after_s, self._any_deed())
        what = self._one(("ask", "ask", "idle", *WAITS))
        return UserAct(
            after_s, what, self._chance.randrange(self._agents), self._one((0, 0.5, 2, 2, 20))
        )

    def _observers(self) -> tuple[ObserverScript, ...]:
        observers = self._some(self._observer, 4, least=1) if self._themes["observers"] else ()
        if not self._themes["rewrites"]:
            return observers
        deed = self._deed(("note", "inject"))
        return (*observers, ObserverScript("assistant/attempt", 1, 9, deed, deed.agent))

    def _observer(self) -> ObserverScript:
        deed = self._deed(("raise",)) if self._likely(0.2) else self._any_deed()
        every = self._one((1, 1, 2, 3, 5, 8, 13))
        return ObserverScript(
            self._one(WATCHED),
            every,
            self._one((1, 2, 3, 9)),
            deed,
            self._chance.randrange(self._agents),
        )

    # Models

    def _answer(self) -> Answer:
        pieces: list[Text | Reasoning | Refusal | ToolCall | ModelWait | Stall | Fail] = []
        if self._likely(0.3):
            pieces.append(Reasoning("hm, hm"))
        if self._likely(0.7):
            pieces.append(Text("some words of text"))
        if self._likely(0.3):
            pieces.append(ModelWait(self._one(SECONDS)))
        if self._tools and self._likely(0.7):
            pieces += self._some(self._call, 5, least=1)
        if self._likely(0.05):
            pieces.append(Refusal("no"))
        if self._themes["failures"] and self._likely(0.5):
            pieces = pieces[: self._chance.randint(0, len(pieces))]
            pieces.append(Fail(self._one(CODES), retry_after=self._one((None, None, 0, 1.5, 500))))
        elif self._likely(0.04):
            pieces.append(Stall())
        finish = self._one(FINISHES) if self._likely(0.15) else None
        return Answer(tuple(pieces), finish)

    def _call(self) -> ToolCall:
        chance = self._chance.random()
        if chance < 0.06:
            return ToolCall("unknown")
        name = self._one(self._tools).name
        if chance < 0.12:
            return ToolCall(name, raw_arguments=self._one(('{"wide":', "[]", '{"wide": 3}')))
        if chance < 0.18:
            return ToolCall(name, wire_id="again")
        return ToolCall(name, wide=True) if chance < 0.3 else ToolCall(name)

    # Tools

    def _tool(self, number: int) -> ToolScript:
        return ToolScript(
            name=f"t{number}",
            effects=self._one(("read-only", "read-only", "idempotent", "once")),
            mode=self._one((None, None, "concurrent", "barrier", "function")),
            on_cancel="finish" if self._likely(0.25) else "now",
            timeout_s=self._one((None, None, None, 0.3, 1)),
            condition=self._one(("flips", "raises")) if self._likely(0.2) else None,
            guarded=self._likely(0.1),
            acts=self._some(self._body_act, 3),
            agent=self._chance.randrange(self._agents) if self._likely(0.3) else None,
        )

    def _body_act(self) -> BodyAct:
        if self._likely(0.4):
            return BodyAct("wait", self._one(LONG))
        does = self._one(get_args(BodyAct.__annotations__["does"]))
        deed = self._any_deed() if does == "deed" else None
        return BodyAct(does, self._one(SECONDS), deed)

    # Hooks, sections

    def _hook(self) -> HookScript:
        place: HookPlace = self._one(
            ("request_error", "request_error", *get_args(HookPlace))
            if self._themes["failures"]
            else get_args(HookPlace)
        )
        return HookScript(
            place=place,
            does=self._does(place),
            on=self._one((ALWAYS, (0,), (1,), (0, 2), (1, 2, 3), (2, 4), (3, 5))),
            agent=self._chance.randrange(self._agents) if self._likely(0.5) else None,
            before_s=self._one(SECONDS) if self._likely(0.4) else 0,
            after_s=self._one(SECONDS) if self._likely(0.3) else 0,
            timeout_s=0.4 if self._likely(0.05) else None,
            deed=self._any_deed() if self._likely(0.4) else None,
        )

    def _does(self, place: HookPlace) -> str:
        if self._likely(0.06):
            return self._one(("raise", "leak", "twice"))
        return self._one(DOES[place] or ("pass",))

    def _section(self, name: str) -> SectionScript:
        return SectionScript(
            name,
            changes_every=self._one((0, 1, 2, 3)),
            vanishes_every=self._one((0, 0, 0, 2, 3)),
            raises_at=self._one((2, 4)) if self._likely(0.05) else None,
            wait_s=self._one(SECONDS) if self._likely(0.2) else 0,
        )

    # Faults, settings, the end

    def _fault(self) -> StoreFault:
        does = "hang" if self._likely(0.03) else self._one(FAULTS)
        at = self._chance.randrange(14)
        slow = does == "slow" or self._likely(0.3)
        return StoreFault(at, does, self._one((0.1, 0.5, 1, 2)) if slow else 0)

    def _settings(self, seed: int) -> Settings:
        more = random.Random(f"policies {seed}")
        return Settings(
            prunes=more.random() < 0.15,
            compacts=more.random() < 0.2,
            window_tokens=more.choice((None, 30, 60, 200)),
            retries=self._likely(0.6 if self._themes["failures"] else 0.1),
            calls_max=self._one((10, 10, 1, 2)),
            runtime_calls_max=self._one((None, None, 1, 2)),
            in_history=self._likely(0.5),
            window_grows_every=self._one((0, 0, 1, 2)),
            chunk_chars=self._one((None, None, 1, 4)),
            chunks_per_read=self._one((1, 1, 3)),
            read_delay_s=self._one((0, 0, 0.05, 0.3)),
            approves=self._one((None, True, False)),
        )

    def _ending(self) -> Ending:
        return Ending(self._one(ENDINGS), self._one((0.1, 0.5, 1, 2, 4, 6)))
