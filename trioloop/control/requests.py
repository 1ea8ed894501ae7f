"""From a frame to its answer: decode, admit, act, encode. One for each dialogue."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from importlib.metadata import version
from typing import Any

import attrs
import trio

from trioloop.control import parameters, results
from trioloop.control.answers import ANSWERS
from trioloop.control.faults import WireError, as_wire_error
from trioloop.control.protocol import (
    PROTOCOL,
    Method,
    Request,
    decode_parameters,
    decode_request,
    encode_error,
    encode_notification,
    encode_result,
)
from trioloop.control.service import Service, opened_at
from trioloop.control.subscriptions import Subscription
from trioloop.control.tokens import Grant
from trioloop.control.voice import Voice
from trioloop.errors import TrioloopError

_log = logging.getLogger("trioloop.control")

Job = Callable[[], Awaitable[None]]
Start = Callable[[Job], None]


class Requests:
    """Answers the requests of one client.

    Args:
        service: what is served.
        voice: where answers go.
        start: starts a task of the dialogue.
        check: what a token allows; None: nothing.
        grant: what the handshake's token allows; None: the first request shows one.

    Attributes:
        proven: set once a token was shown.
        refused: a wrong token was shown.
    """

    def __init__(
        self,
        service: Service,
        voice: Voice,
        start: Start,
        check: Callable[[bytes], Grant | None],
        grant: Grant | None,
    ) -> None:
        self.grant = grant
        self.proven = trio.Event()
        self.refused = False
        self._service = service
        self._voice = voice
        self._start = start
        self._check = check
        self._under_way = 0
        self._subscriptions: dict[int, Subscription] = {}
        self._numbers = 0
        self._tells_state = False
        self._own: Mapping[str, Callable[[Any], Awaitable[results.Result]]] = {
            "authenticate": self._authenticate,
            "runtime/info": self._info,
            "runtime/subscribe": self._subscribe_runtime,
            "session/subscribe": self._subscribe,
            "session/unsubscribe": self._unsubscribe,
        }
        if grant is not None:
            self.proven.set()

    async def answer(self, text: str, *, limited: bool) -> None:
        """Answer a frame. A checkpoint.

        Args:
            text: the frame.
            limited: it came too fast, so that nothing is done but to say so.
        """
        request: Request | None = None
        try:
            request = decode_request(text)
            if limited:
                raise WireError("rate_limited")
            method, asked = decode_parameters(request)
            self._admit(method)
        except WireError as error:
            await self._voice.say(encode_error(None if request is None else request.id, error))
            return
        if not method.waits:
            await self._act(method, request, asked)
        elif self._under_way < self._service.limits.waiting_commands_max:
            self._under_way += 1
            self._start(lambda: self._act_later(method, request, asked))
        else:
            await self._voice.say(encode_error(request.id, WireError("too_many")))

    def _admit(self, method: Method) -> None:
        if self.grant is None:
            if method.name != "authenticate" or self.refused:
                raise WireError("unauthenticated")
        elif method.name == "authenticate":
            raise WireError("invalid_request")
        elif not self.grant.allows(method.scope):
            raise WireError("forbidden")

    async def _act_later(self, method: Method, request: Request, asked: Any) -> None:
        try:
            await self._act(method, request, asked)
        finally:
            self._under_way -= 1

    async def _act(self, method: Method, request: Request, asked: Any) -> None:
        """Carry a request out and say what came of it; subscriptions begin behind their answer."""
        try:
            result = await self._outcome(method, request, asked)
        except WireError as error:
            await self._voice.say(encode_error(request.id, error))
            return
        await self._voice.say(encode_result(request.id, result))
        self._begin(method, result, asked)

    async def _outcome(self, method: Method, request: Request, asked: Any) -> results.Result:
        if method.repeats != "by id":
            return await self._carried_out(method, asked)
        assert self.grant is not None  # admitted
        return await self._service.remembered.once(
            self.grant.name, request, lambda: self._carried_out(method, asked)
        )

    async def _carried_out(self, method: Method, asked: Any) -> results.Result:
        own = self._own.get(method.name)
        try:
            if own is not None:
                return await own(asked)
            return await ANSWERS[method.name](self._service, asked)
        except TrioloopError as error:
            known = as_wire_error(error)
            raise known or internal(error) from None
        except Exception as error:
            raise internal(error) from None

    # What belongs to the dialogue

    async def _authenticate(self, asked: parameters.Token) -> results.Granted:
        grant = self._check(asked.token.encode())
        if grant is None:
            self.refused = True
            raise WireError("unauthenticated")
        self.grant = grant
        self.proven.set()
        return results.Granted(scopes=grant.scopes)

    async def _info(self, asked: parameters.Nothing) -> results.Info:
        assert self.grant is not None  # admitted
        limits = attrs.asdict(self._service.limits)
        return results.Info(
            version=version("trioloop"),
            protocol=PROTOCOL,
            scopes=self.grant.scopes,
            limits=limits,
        )

    async def _subscribe_runtime(self, asked: parameters.Nothing) -> results.Done:
        changed, self._tells_state = not self._tells_state, True
        return results.Done(changed=changed)

    async def _subscribe(self, asked: parameters.Subscribe) -> results.Subscribed:
        if len(self._subscriptions) >= self._service.limits.subscriptions_max:
            raise WireError("too_many")
        assert self.grant is not None  # admitted
        if self.grant.allows("control"):
            agent = await self._service.live(asked.agent)
        else:
            agent = self._service.agent(asked.agent)
        if asked.opened is not None and asked.opened != opened_at(agent):
            raise WireError("foreign_cursor")
        if asked.after > agent.session.durable_seq:
            await agent.session.checkpoint()
        if asked.after > agent.session.durable_seq:
            raise WireError("future_cursor")
        self._numbers += 1
        self._subscriptions[self._numbers] = Subscription(self._numbers, agent)
        return results.Subscribed(subscription=self._numbers, agent=self._service.state(agent))

    async def _unsubscribe(self, asked: parameters.Unsubscribe) -> results.Done:
        found = self._subscriptions.pop(asked.subscription, None)
        if found is not None:
            found.scope.cancel()
        return results.Done(changed=found is not None)

    def _begin(self, method: Method, result: Any, asked: Any) -> None:
        """Start what an answer has promised."""
        if method.name == "session/subscribe":
            subscription = self._subscriptions[result.subscription]
            self._start(lambda: self._tell(subscription, asked))
        elif method.name == "runtime/subscribe" and result.changed:
            self._start(self._tell_state)

    async def _tell(self, subscription: Subscription, asked: parameters.Subscribe) -> None:
        await subscription.tell(
            self._voice,
            self._service.audience,
            asked.after,
            live=asked.live,
        )
        self._subscriptions.pop(subscription.number, None)

    async def _tell_state(self) -> None:
        async with aclosing(self._service.changes.each()) as changes:
            async for changed in changes:
                state = self._service.runtime_state(changed)
                await self._voice.say(encode_notification("runtime/state", state))


def internal(error: BaseException) -> WireError:
    """A fault of our own as a peer sees it: a reference to the line in the log."""
    reference = secrets.token_hex(4)
    _log.error("a fault of the control endpoint, reference %s", reference, exc_info=error)
    return WireError("internal", reference=reference)
