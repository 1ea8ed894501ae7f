"""Naming what keeps a cancelled turn from closing (H6)."""

import logging

import trio

from trioloop.agent.resources import Resources
from trioloop.agent.signal import TurnSignal

_log = logging.getLogger("trioloop.agent")


async def name_while_stuck(resources: Resources, signal: TurnSignal) -> None:
    """Log every `stuck_warning_s` where a cancelled turn still is, until it has closed.

    Runs in the agent's nursery; the turn's closing ends it.
    """
    if not signal.open:
        return
    began = trio.current_time()
    # In a nursery that the host may have cancelled; `signal.close` ends it.
    with trio.CancelScope(shield=True) as signal.watch_scope:
        while True:
            await trio.sleep(resources.limits.stuck_warning_s)
            _log.warning(
                "turn %d of %r was cancelled %.0f s ago and is still in %s",
                signal.turn,
                resources.agent.name,
                trio.current_time() - began,
                signal.place,
            )
