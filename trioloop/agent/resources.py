"""What a driver works with: one frozen class, made when an agent begins to work.

It holds the services of the floor below in the scopes that apply to this agent, widest first.
"""

from collections.abc import Callable, Mapping

import attrs
import trio

from trioloop.agent.closing import Closing
from trioloop.agent.signal import HOST_CANCELLED
from trioloop.agent.stuck import StuckTurns
from trioloop.agent.watching import Notifications
from trioloop.errors import ModelFailure
from trioloop.events import CallConfig
from trioloop.handles import AgentHandle
from trioloop.hooks.points import Hooks
from trioloop.ids import CallId, Ids, SessionId
from trioloop.limits import Limits
from trioloop.ports import Approver, Model
from trioloop.prompt import Prompt
from trioloop.session import Session
from trioloop.tools.call import RunningCall
from trioloop.tools.places import Capacity
from trioloop.tools.registry import ToolRegistry
from trioloop.tools.threads import ToolThreads


@attrs.frozen
class ModelSelection:
    """The models that an agent may ask, and the settings that it asks them with by default."""

    models: Mapping[tuple[str, str], Model]
    default: CallConfig | None

    def model_for(self, config: CallConfig) -> Model:
        """The model that serves some settings: the one named, else any of the same provider.

        Raises:
            ModelFailure: no model of that provider is registered.
        """
        exact = self.models.get((config.provider, config.model))
        if exact is not None:
            return exact
        for (provider, _), model in self.models.items():
            if provider == config.provider:
                return model
        raise ModelFailure(
            "UNSUPPORTED",
            f"no model of provider {config.provider!r} is registered: give it to open_runtime "
            "as model= or in models=",
        )


@attrs.frozen(eq=False, kw_only=True)
class Surroundings:
    """What all agents of a runtime share.

    Attributes:
        nursery: where supervisors run.
        token: for sends from other threads.
        forget: deregisters an agent that was disposed of.
        fault: told of a fault of our own in an agent's driver (R10).
        closing: how long what follows the end of all work may take.
        stuck: told of cancelled turns, to name those that don't close.
        host_cause: the cause of turns that end because what surrounds the nursery is cancelled.
    """

    nursery: trio.Nursery
    token: trio.lowlevel.TrioToken
    hooks: Hooks
    prompt: Prompt
    tools: ToolRegistry
    models: Mapping[tuple[str, str], Model]
    limits: Limits
    notifications: Notifications
    ids: Ids
    threads: ToolThreads
    places: Capacity | None
    approver: Approver | None
    forget: Callable[[SessionId], None]
    fault: Callable[[SessionId, BaseException], None]
    closing: Closing
    stuck: StuckTurns
    host_cause: str = HOST_CANCELLED


@attrs.frozen(eq=False, kw_only=True)
class Resources:
    """The services that a driver works with."""

    agent: AgentHandle
    session: Session
    hooks: tuple[Hooks, ...]
    prompts: tuple[Prompt, ...]
    tools: tuple[ToolRegistry, ToolRegistry]
    selection: ModelSelection
    limits: Limits
    notifications: Notifications
    ids: Ids
    threads: ToolThreads
    places: Capacity | None
    approver: Approver | None
    running_calls: dict[CallId, RunningCall]
    stuck: StuckTurns
    host_cause: str
