"""Agents: list, create, resume, fork, dispose, cancel, wake."""

from trioloop.agent.agent import Agent
from trioloop.control import parameters
from trioloop.control.faults import WireError
from trioloop.control.results import AgentList, AgentState, Done
from trioloop.control.service import Service
from trioloop.errors import InvalidInputError, SessionExistsError
from trioloop.ids import CallId, SessionId


async def list_agents(service: Service, asked: parameters.AgentPage) -> AgentList:
    """Live and stored agents, by name."""
    live = service.runtime.agents
    stored = {one.session: one for one in await service.runtime.stored_sessions()}
    names = sorted(name for name in {*live, *stored} if name > asked.after)
    page = names[: asked.limit]
    return AgentList(
        agents=tuple(
            service.state(live[name])
            if name in live
            else AgentState(
                agent=name,
                status="stored",
                seq=stored[name].events - 1,
                durable_seq=stored[name].events - 1,
            )
            for name in page
        ),
        more=len(names) > len(page),
    )


async def status(service: Service, asked: parameters.OneAgent) -> AgentState:
    """An agent as it is now."""
    return service.state(service.agent(asked.agent))


async def create(service: Service, asked: parameters.OneAgent) -> AgentState:
    """An agent on a new session; the same again where it was made before."""
    name = service.name(asked.agent, field="$.agent")
    try:
        async with service.opening(name):
            agent = await service.runtime.create_agent(name)
    except SessionExistsError:
        agent = await _made_before(service, name, parent=None, at_seq=None)
    return await _durable(service, agent)


async def fork(service: Service, asked: parameters.Fork) -> AgentState:
    """An agent that begins where another session was; the same again where it was made before."""
    name = service.name(asked.agent, field="$.agent")
    parent = service.name(asked.parent)
    try:
        async with service.opening(name):
            agent = await service.runtime.fork_agent(parent, name, at_seq=asked.at_seq)
    except SessionExistsError:
        agent = await _made_before(service, name, parent=parent, at_seq=asked.at_seq)
    except InvalidInputError:
        raise WireError("invalid_params", field="$.at_seq") from None
    return await _durable(service, agent)


async def resume(service: Service, asked: parameters.OneAgent) -> AgentState:
    """A stored session's agent, made live; as it is where it is live already."""
    return service.state(await service.live(asked.agent))


async def dispose(service: Service, asked: parameters.Disposal) -> Done:
    """End an agent's registration."""
    agent = service.runtime.agents.get(SessionId(asked.agent))
    if agent is None:
        await service.runtime.stored_events(service.name(asked.agent), limit=1)
        return Done(changed=False)
    await agent.dispose(discard_inbox=asked.discard_inbox)
    return Done()


async def cancel(service: Service, asked: parameters.Cancel) -> Done:
    """Cancel the open turn, or the one that is named if it is open."""
    agent = service.agent(asked.agent)
    open_turn = None if agent.turn is None else agent.turn.turn
    if asked.turn is not None and asked.turn != open_turn:
        return Done(changed=False)
    agent.cancel(asked.cause, discard_inbox=asked.discard_inbox)
    service.changes.note(agent.name)
    await agent.session.checkpoint()
    return Done(changed=open_turn is not None)


async def cancel_call(service: Service, asked: parameters.OneCall) -> Done:
    """Cancel one running call."""
    return Done(changed=service.agent(asked.agent).cancel_call(CallId(asked.call)))


async def wake(service: Service, asked: parameters.OneAgent) -> Done:
    """Go on with what is pending."""
    agent = service.agent(asked.agent)
    pending = len(agent.inbox)
    agent.wake()
    return Done(changed=pending > 0)


async def _made_before(
    service: Service, name: SessionId, *, parent: SessionId | None, at_seq: int | None
) -> Agent:
    """The agent that an earlier command made under a name.

    Raises:
        WireError: `id_conflict`: it was another command.
    """
    agent = await service.live(name)
    opened = agent.session.state.session
    if opened is None or opened.parent != parent:
        raise WireError("id_conflict")
    if at_seq is not None and opened.fork_seq != at_seq:
        raise WireError("id_conflict")
    return agent


async def _durable(service: Service, agent: Agent) -> AgentState:
    await agent.session.checkpoint()
    return service.state(agent)
