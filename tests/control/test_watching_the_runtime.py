"""The state of the runtime, told once for each change (`runtime/subscribe`)."""

import json
from typing import Any

from tests.control.raw_client import raw_connection
from tests.control.serving import served


async def test_commands_behind_a_subscription_tell_of_nothing_twice() -> None:
    async with served() as there, raw_connection(there.address) as connection:
        agent = await there.runtime.create_agent("a")
        messages = [agent.inject("later") for _ in range(3)]
        states = list[dict[str, Any]]()

        async def ask(id: int, method: str, **params: Any) -> Any:
            """The result; states that come before it are kept."""
            body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            await connection.send(json.dumps(body))
            while True:
                frame = json.loads(await connection.receive())
                if frame.get("id") == id:
                    return frame["result"]
                states.append(frame["params"])

        assert (await ask(0, "runtime/subscribe"))["changed"]
        assert not (await ask(1, "runtime/subscribe"))["changed"]
        for number, message in enumerate(messages):
            assert (await ask(2 + number, "inbox/remove", agent="a", message=message))["changed"]
        for number in range(20):
            await ask(10 + number, "agent/status", agent="a")
        pending = [state["agents"][0]["pending"] for state in states]
        assert pending == sorted(set(pending), reverse=True)
        assert pending[-1] == 0


async def test_behind_the_whole_state_only_what_changed_is_told() -> None:
    async with served() as there, raw_connection(there.address) as connection:
        agents = [await there.runtime.create_agent(name) for name in ("a", "b", "c")]

        async def told() -> dict[str, Any]:
            while True:
                frame = json.loads(await connection.receive())
                if frame.get("method") == "runtime/state":
                    state: dict[str, Any] = frame["params"]
                    return state

        asked = {"jsonrpc": "2.0", "id": 1, "method": "runtime/subscribe"}
        await connection.send(json.dumps(asked))
        first = await told()
        assert first["whole"]
        assert [one["agent"] for one in first["agents"]] == ["a", "b", "c"]
        assert (first["gone"], first["approvals"]) == ([], [])
        agents[1].inject("for later")
        then = await told()
        assert not then["whole"]
        assert [(one["agent"], one["pending"]) for one in then["agents"]] == [("b", 1)]
        assert (then["gone"], then["approvals"]) == ([], None)
        await agents[2].dispose()
        while not then["gone"]:
            then = await told()
        assert (then["agents"], then["gone"]) == ([], ["c"])
