"""What one simulated run consists of: data alone, so that a run can be printed, replayed, shrunk.

Numbers that pick something (`agent`, `pick`) are taken modulo what there is to be picked from:
a script stays a script whatever is deleted from it.
"""

from typing import Literal, TypeAlias

import attrs

from tests.simulation.policies.script import NO_POLICIES, PolicyDeedKind, PolicyScript
from trioloop.testing import Answer

OwnDeedKind: TypeAlias = Literal[
    "followup",
    "steer",
    "inject",
    "repeat",
    "cancel",
    "cancel-discard",
    "cancel-call",
    "wake",
    "remove",
    "replace",
    "clear",
    "restore",
    "note",
    "compact",
    "prune",
    "dispose",
    "dispose-discard",
    "swap-tool",
    "raise",
]
DeedKind: TypeAlias = OwnDeedKind | PolicyDeedKind
"""What can be done to an agent without waiting: by users, listeners, bodies and observers."""

Wait: TypeAlias = Literal[
    "ask", "dispose", "resume", "idle", "maintain", "checkpoint", "fork", "spent"
]
"""What only a user does, since it is waited for."""

HookPlace: TypeAlias = Literal[
    "assemble",
    "pre_step",
    "request",
    "request_error",
    "turn_stopping",
    "stream",
    "pre_execute",
    "execute",
    "post_execute",
]

Fault: TypeAlias = Literal["slow", "fail", "odd", "torn", "fence", "hang"]
Leaving: TypeAlias = Literal["idle", "leave", "host", "raise"]


@attrs.frozen
class Deed:
    """Something that is done to an agent.

    Attributes:
        kind: what.
        agent: to which.
        pick: which message, call or turn of it; or which answer.
        of_child: it is done to a child of that agent, if one is at work.
    """

    kind: DeedKind
    agent: int = 0
    pick: int = 0
    of_child: bool = False


@attrs.frozen
class UserAct:
    """A user's next act.

    Attributes:
        after_s: seconds that pass before it.
        after_steps: the deed is done before the task step that is so far away, whosever it is, and
            the user goes on at once; 0: the user does it.
        does: a deed, or something that is waited for.
        agent: whom a wait concerns.
        patience_s: after so long a wait is cancelled.
    """

    after_s: float
    does: Deed | Wait
    agent: int = 0
    patience_s: float = 1000
    after_steps: int = 0


@attrs.frozen
class UserScript:
    """A task of the host, with one act after the other."""

    acts: tuple[UserAct, ...]


@attrs.frozen
class AgentScript:
    """An agent: what its models answer, one request after the other; then plain text."""

    answers: tuple[Answer, ...]


@attrs.frozen
class HookScript:
    """A listener.

    Attributes:
        place: of which hook.
        does: what it does on the calls of `on`, see `listeners.py`; on others it passes on.
        on: which of its calls, from 0.
        agent: whose it is; None: the runtime's.
        before_s: seconds before it passes on.
        after_s: seconds behind.
        timeout_s: its own time.
        deed: what it does besides.
    """

    place: HookPlace
    does: str
    on: tuple[int, ...]
    agent: int | None = None
    before_s: float = 0
    after_s: float = 0
    timeout_s: float | None = None
    deed: Deed | None = None


@attrs.frozen
class ObserverScript:
    """A synchronous listener: of a session's events, or of notifications.

    Attributes:
        watches: `events`, the wire name of an event, or a kind of notification.
        every: on each so-manieth of what it sees.
        times: how often at most.
        deed: what it does then.
        agent: whom it watches.
    """

    watches: str
    every: int
    times: int
    deed: Deed
    agent: int = 0


@attrs.frozen
class BodyAct:
    """A part of a tool's body; see `bodies.py`."""

    does: Literal[
        "wait",
        "fail",
        "crash",
        "exit",
        "context",
        "contexts",
        "note",
        "progress",
        "conclude",
        "leak",
        "task",
        "deed",
        "unencodable",
        "nest",
    ]
    seconds: float = 0
    deed: Deed | None = None


@attrs.frozen
class ToolScript:
    """A tool.

    Attributes:
        name: what models call it.
        effects: what running it does.
        mode: `concurrent`, `barrier`, `function` of its arguments, or None: as its effects ask for.
        on_cancel: whether its body may finish.
        timeout_s: its deadline.
        condition: `flips` with each step, `raises` in the third; None: it is always there.
        guarded: a guard denies its wide calls.
        acts: its body.
        agent: whose it is; None: the runtime's.
    """

    name: str
    effects: Literal["read-only", "idempotent", "once"]
    mode: Literal["concurrent", "barrier", "function"] | None = None
    on_cancel: Literal["now", "finish"] = "now"
    timeout_s: float | None = None
    condition: Literal["flips", "raises"] | None = None
    guarded: bool = False
    acts: tuple[BodyAct, ...] = ()
    agent: int | None = None


@attrs.frozen
class SectionScript:
    """A section of the system prompt, which changes, or goes away, on each so-manieth reading."""

    name: str
    changes_every: int = 0
    vanishes_every: int = 0
    raises_at: int | None = None
    wait_s: float = 0


@attrs.frozen
class StoreFault:
    """What goes wrong with the commit of some number.

    Attributes:
        at: which commit, from 0.
        does: `slow` takes some seconds; `fail` and `odd` raise and write nothing; `torn` writes
            and raises; `fence` gives the session to another owner; `hang` never ends.
        seconds: how slow.
    """

    at: int
    does: Fault
    seconds: float = 0


@attrs.frozen
class Settings:
    """How the runtime is opened, and how its models stream.

    Attributes:
        retries: the plugin that retries is used.
        prunes: that which shortens results, which are long then.
        compacts: that which summarises; maintenance is then that it does so by hand.
        window_tokens: of the window that both go by; None: what the models say.
        in_history: the first model is told of changed sections in the history; the second not.
        window_grows_every: on each so-manieth preparation a context window grows; 0: never.
        approves: what a person answers; None: there is nobody.
    """

    retries: bool = False
    prunes: bool = False
    compacts: bool = False
    window_tokens: int | None = None
    calls_max: int = 10
    runtime_calls_max: int | None = None
    in_history: bool = False
    window_grows_every: int = 0
    chunk_chars: int | None = None
    chunks_per_read: int = 1
    read_delay_s: float = 0
    approves: bool | None = None


@attrs.frozen
class Ending:
    """How the runtime is left.

    Attributes:
        does: `idle` when all is done; `leave` when the users are; `host` is cancelled, `raise`
            raises in the block.
        at_s: when, for the last two.
    """

    does: Leaving = "idle"
    at_s: float = 0


@attrs.frozen
class Script:
    """A whole run. `seed` is that of the task order, of identifiers and of jitter."""

    seed: int
    agents: tuple[AgentScript, ...]
    users: tuple[UserScript, ...] = ()
    tools: tuple[ToolScript, ...] = ()
    hooks: tuple[HookScript, ...] = ()
    observers: tuple[ObserverScript, ...] = ()
    sections: tuple[SectionScript, ...] = ()
    faults: tuple[StoreFault, ...] = ()
    settings: Settings = Settings()
    ending: Ending = Ending()
    policies: PolicyScript = NO_POLICIES
