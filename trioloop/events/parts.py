"""What facts are made of, beside messages and chunks: no events themselves."""

from copy import copy, deepcopy

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import force_setattr

from trioloop.errors import ModelFailure
from trioloop.ids import MessageId
from trioloop.messages import Json, MessageList, UserMessage
from trioloop.settings import check_settings


class PendingMessage(Struct, frozen=True):
    """A message in an inbox.

    Attributes:
        message: what was sent.
        wakeup: it opens a turn on an idle agent.
        after_cancel: it was sent while the open turn had been cancelled (I4).
        restored: it was claimed before and came back.
    """

    message: UserMessage
    wakeup: bool = True
    after_cancel: bool = False
    restored: bool = False


class Unadmitted(Struct, frozen=True):
    """A message that a turn claimed and didn't admit (R5).

    Attributes:
        message: its id.
        list: the list that it was claimed from.
        why: the turn's reason, or `dropped` where a pre-step passed it by.
    """

    message: MessageId
    list: MessageList
    why: str


class ToolDeclaration(Struct, frozen=True):
    """A tool as a model is told of it.

    Attributes:
        name: its name.
        description: what it is for.
        parameters: its JSON Schema.
    """

    name: str
    description: str
    parameters: Raw


class CallConfig(Struct, frozen=True, kw_only=True):
    """The settings of one request. None leaves a setting to the provider.

    Attributes:
        provider: the service's name.
        model: the model's name there.
        max_tokens: output tokens, reasoning included.
        temperature: sampling temperature.
        tool_choice: `auto`, `required`, `none`, or the name of a declared tool.
        parallel_tool_calls: whether several calls may come in one answer.
        reasoning_effort: in the provider's words.
        output_schema: the JSON Schema of an object that the answer's text is to be, as JSON.
        extra: further members of the request's body, as the provider's API names them.

    Raises:
        InvalidInputError: a value is none that any provider takes.
    """

    provider: str
    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    # Left out where it isn't set, as in logs that are older than it: they must read back the same.
    output_schema: dict[str, Json] | UnsetType = UNSET
    extra: dict[str, Json] = {}

    def __post_init__(self) -> None:
        check_settings(self)

    def with_own_extra(self) -> "CallConfig":
        """A copy whose `extra` may be changed without changing this."""
        copied = copy(self)  # unlike `replace`, it doesn't check again what was checked
        force_setattr(copied, "extra", deepcopy(self.extra) if self.extra else {})
        return copied


class Failure(Struct, frozen=True, kw_only=True):
    """Why an attempt failed, as it is logged.

    Attributes:
        code: a stable word.
        message: what happened, without credentials, headers or prompt text.
        status: the HTTP status, where there was one.
        retry_after_s: how long the provider asked to wait, in seconds.
        request_id: the provider's id of the request.
        retryable: whether the same request may succeed later.
    """

    code: str
    message: str
    status: int | None = None
    retry_after_s: float | None = None
    request_id: str | None = None
    retryable: bool = False

    @classmethod
    def of(cls, failure: ModelFailure) -> "Failure":
        """The facts of a raised failure."""
        return cls(
            code=failure.code,
            message=failure.message,
            status=failure.status,
            retry_after_s=failure.retry_after_s,
            request_id=failure.request_id,
            retryable=failure.retryable,
        )
