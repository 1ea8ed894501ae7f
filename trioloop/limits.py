"""Every maximum, default and time limit of the runtime, with its unit in its name.

Limits of one model's connection live with the model; everything else that can run out is here.
"""

from typing import Any

import attrs

from trioloop.errors import InvalidInputError


def _positive(_: object, field: "attrs.Attribute[Any]", value: float | None) -> None:
    if value is not None and not value > 0:
        raise InvalidInputError(f"the limit {field.name} must be greater than 0, not {value!r}")


def count_limit(default: int) -> int:
    """A field of a class of limits: a whole number greater than 0."""
    field: int = attrs.field(
        default=default, validator=[attrs.validators.instance_of(int), _positive]
    )
    return field


def seconds_limit(default: float) -> float:
    """A field of a class of limits: seconds, more than 0."""
    field: float = attrs.field(default=default, converter=float, validator=_positive)
    return field


@attrs.frozen(kw_only=True)
class Limits:
    """The limits of a runtime and of the agents in it; give `open_runtime` the ones you change.

    Raises:
        InvalidInputError: a value isn't greater than 0.

    Attributes:
        calls_max: tool bodies that one agent runs at once (T3).
        runtime_calls_max: tool bodies that all agents of a runtime run at once; None: no limit.
        queue_messages_max: messages that may be pending in one inbox; beyond it `QueueFullError`.
        message_bytes_max: encoded size of one message.
        retry_turns_max: retry turns after one turn (R2).
        continuations_max: steps of one turn that `agent.turn_stopping` may ask for.
        pauses_max: steps of one turn that go on after a pause of the model (P17).
        grace_s: how long a body may go on after its cancel before it is abandoned (T13).
        post_s: how long the post-policies of ended bodies may take after a cancel (T9).
        close_s: how long a runtime takes, once work has ended, to flush and unlock when it is left
            (P18); a tenth of it is kept for unlocking and closing connections.
        block_warning_s: how long Trio's thread may be blocked before what blocks it is named in
            `logging`, by a thread that watches; None: none does.
        stuck_warning_s: how often something that swallows its cancel is named in `logging` (H6).
        strays_max: abandoned threads that may run on beside the pool (T13).
        tool_threads_max: threads of synchronous tools, over all agents.
        result_bytes_max: encoded size of one tool result; head and tail are kept beyond it.
        arguments_bytes_max: size of one call's raw arguments.
        watch_notifications_max: notifications kept for a watcher that lags (H5).
        commit_age_s: how long an appended event waits for a commit that nobody asked for.
        commit_events_max: events in one transaction.
        blob_bytes_min: text from this size on is kept in a side file.
        session_events_warn: events in one session from which on a warning is logged.
    """

    calls_max: int = count_limit(10)
    runtime_calls_max: int | None = attrs.field(default=None, validator=_positive)
    queue_messages_max: int = count_limit(1_000)
    message_bytes_max: int = count_limit(8 * 1024 * 1024)
    retry_turns_max: int = count_limit(3)
    continuations_max: int = count_limit(16)
    pauses_max: int = count_limit(8)
    grace_s: float = seconds_limit(10)
    post_s: float = seconds_limit(5)
    close_s: float = seconds_limit(10)
    block_warning_s: float | None = attrs.field(
        default=1.0, converter=attrs.converters.optional(float), validator=_positive
    )
    stuck_warning_s: float = seconds_limit(10)
    strays_max: int = count_limit(16)
    tool_threads_max: int = count_limit(32)
    result_bytes_max: int = count_limit(64 * 1024)
    arguments_bytes_max: int = count_limit(4 * 1024 * 1024)
    watch_notifications_max: int = count_limit(1_024)
    commit_age_s: float = seconds_limit(1)
    commit_events_max: int = count_limit(10_000)
    blob_bytes_min: int = count_limit(256 * 1024)
    session_events_warn: int = count_limit(10_000)
