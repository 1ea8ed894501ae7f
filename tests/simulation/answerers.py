"""Who is asked by a run: its models, its prompt sections, its approver."""

from typing import TYPE_CHECKING, Any

import attrs

from tests.simulation.deeds import ScriptedError
from tests.simulation.policies.script import OF_MODELS
from tests.simulation.script import SectionScript
from trioloop import CallId, Request
from trioloop.codec import canonical
from trioloop.handles import AgentHandle
from trioloop.ports import Capabilities
from trioloop.testing import Answer, ScriptedModel, Text

if TYPE_CHECKING:
    from tests.simulation.world import World


class Models:
    """The two models of a run, which follow the script of whichever agent asks.

    Attributes:
        received: what they were sent, encoded as it came, by session.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._answered: dict[str, int] = {}
        self.received: dict[str, list[bytes]] = {}
        in_history = world.script.settings.in_history
        self.first = self._model("first", "model", in_history=in_history)
        self.second = self._model("second", "other", in_history=not in_history)

    def _model(self, provider: str, name: str, *, in_history: bool) -> ScriptedModel:
        settings = self._world.script.settings
        return _Model(
            self._world,
            self._answer,
            provider=provider,
            name=name,
            capabilities=Capabilities(
                context_window=1000, system_update="in-history" if in_history else "replace"
            ),
            retry_policy=OF_MODELS,
            chunk_chars=settings.chunk_chars,
            chunks_per_read=settings.chunks_per_read,
            read_delay_s=settings.read_delay_s,
        )

    async def _answer(self, request: Request) -> Answer:
        number = self._answered.get(request.session, 0)
        self._answered[request.session] = number + 1
        await self._world.pass_waits()
        answers = self._world.answers_of(request.session)
        answer = answers[number] if number < len(answers) else Answer((Text("done"),))
        return self._world.children.named(answer, request.session)


class _Model(ScriptedModel):
    """A scripted model that keeps the bytes of what it is sent."""

    def __init__(self, world: "World", script: Any, **options: Any) -> None:  # Any: as the class's
        super().__init__(script, **options)
        self._world = world
        self._prepared = 0

    async def prepare(self, config: Any) -> Any:  # Any: a class of the scripted model's own
        self._prepared += 1
        every = self._world.script.settings.window_grows_every
        if every and self._prepared % every == 0:
            window = 1000 + self._prepared
            self.capabilities = attrs.evolve(self.capabilities, context_window=window)
        call = await super().prepare(config)
        await self._world.pass_waits()  # last, so that a cancel can come too late for it
        return call

    async def answer(self, request: Request) -> Any:  # Any: a class of the scripted model's own
        self._world.models.received.setdefault(request.session, []).append(canonical(request))
        return await super().answer(request)


class Reading:
    """A section's text, which changes as the script says."""

    def __init__(self, world: "World", script: SectionScript) -> None:
        self._world = world
        self._script = script
        self._reads = 0

    async def __call__(self, agent: AgentHandle) -> str | None:
        """The text as it reads now."""
        script = self._script
        self._reads += 1
        await self._world.pass_waits(script.wait_s)
        if script.raises_at == self._reads:
            raise ScriptedError("section")
        if script.vanishes_every and self._reads % script.vanishes_every == 0:
            return None
        changes = self._reads // script.changes_every if script.changes_every else 0
        return f"{script.name}, version {changes}"


class Approver:
    """A person who takes some time to answer."""

    def __init__(self, world: "World", answer: bool) -> None:
        self._world = world
        self._answer = answer

    async def ask(self, agent: AgentHandle, call: CallId, question: str) -> bool:
        """Whether a call may run."""
        await self._world.pass_waits(0.5)
        return self._answer
