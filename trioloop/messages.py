"""Messages and the content blocks they are made of: what people, models and tools say.

Members of a tagged union are `msgspec.Struct`, so that one decoder reads the union in C; every
other fact of trioloop is an attrs class. All are frozen. Nothing here knows a provider's wire.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Raw, Struct

from trioloop.errors import InvalidInputError
from trioloop.ids import CallId, MessageId

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
else:
    Json = Any  # the decoder reads any JSON value here, but can't read a recursive type


class Replay(Struct, frozen=True):
    """What a provider wants back unchanged with a block: a signature, an encrypted text (E6).

    Only its own provider is ever sent it. `data` is raw JSON, which nobody but that provider's
    adapter reads.
    """

    provider: str
    data: Raw


class TextBlock(Struct, frozen=True, tag="text", tag_field="type"):
    """Plain text."""

    text: str
    replay: Replay | None = None


class ReasoningBlock(Struct, frozen=True, tag="reasoning", tag_field="type"):
    """What a model thought aloud before it answered; may be empty beside its replay data."""

    text: str
    replay: Replay | None = None


class RefusalBlock(Struct, frozen=True, tag="refusal", tag_field="type"):
    """The words in which a model declined to answer."""

    text: str


class ToolCallBlock(Struct, frozen=True, tag="tool-call", tag_field="type"):
    """One call that a model asked for.

    Attributes:
        call: our own id, unique in the session.
        wire_id: the id that providers are shown; the provider's own unless it came up before.
        name: the tool's name as the model wrote it.
        arguments: raw text as the model wrote it, perhaps not JSON.
    """

    call: CallId
    wire_id: str
    name: str
    arguments: str
    replay: Replay | None = None


class ImageBlock(Struct, frozen=True, tag="image", tag_field="type"):
    """An image, as base64 `data` of a `media_type` such as `image/png`."""

    media_type: str
    data: str


class OpaqueBlock(Struct, frozen=True, tag="opaque", tag_field="type"):
    """A block that only its own provider understands, such as a server-side tool's."""

    replay: Replay


Block: TypeAlias = (
    TextBlock | ReasoningBlock | RefusalBlock | ToolCallBlock | ImageBlock | OpaqueBlock
)
Content: TypeAlias = str | Block | Sequence[Block]


class SystemMessage(Struct, frozen=True, tag="system", tag_field="role"):
    """Instructions of the application. `node` names the prompt section it came from."""

    node: str
    text: str


class UserMessage(Struct, frozen=True, tag="user", tag_field="role"):
    """What somebody sent to the agent.

    Attributes:
        content: blocks in order; a plain string given to `user_message` becomes one text block.
        id: correlates it from the inbox to its fate; "" until it is sent.
        source: who sent it, in a word of the application's own.
    """

    content: tuple[Block, ...]
    id: MessageId = MessageId("")
    source: str = "user"


class AssistantMessage(Struct, frozen=True, tag="assistant", tag_field="role"):
    """A model's answer, with the provider and model that gave it."""

    content: tuple[Block, ...]
    provider: str
    model: str

    @property
    def calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls it asks for, in model order."""
        return tuple([block for block in self.content if type(block) is ToolCallBlock])

    @property
    def text(self) -> str:
        """Its text blocks, joined; its refusal where it says nothing else."""
        return text_of(self.content)


class ToolResultMessage(Struct, frozen=True, tag="tool", tag_field="role"):
    """What a call gave, as the model is told."""

    call: CallId
    wire_id: str
    content: tuple[Block, ...]
    is_error: bool = False


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
MessageList: TypeAlias = Literal["next-turn", "next-step"]


def as_blocks(content: Content) -> tuple[Block, ...]:
    """Content in any of the forms that users type, as a tuple of blocks; "" is none.

    Raises:
        InvalidInputError: it holds something that is no block.
    """
    if type(content) is tuple and len(content) == 1 and type(content[0]) is TextBlock:
        return content  # as most results are
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    found = (content,) if isinstance(content, Block) else tuple(content)
    for block in found:
        if not isinstance(block, Block):
            raise InvalidInputError(
                f"{block!r} is no content block: give text or blocks such as TextBlock('...')"
            )
    return found


def blocks(content: Content) -> tuple[Block, ...]:
    """As `as_blocks`, for content that must say something.

    Raises:
        InvalidInputError: it is empty, blank text, or holds something that is no block.
    """
    found = as_blocks(content)
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in found):
        raise InvalidInputError("a message needs some content: this one is empty")
    return found


def user_message(content: Content, *, id: str = "", source: str = "user") -> UserMessage:
    """A `UserMessage` from a string or blocks.

    Args:
        content: a string, a block, or several blocks.
        id: the sender's own id, which makes sending it again harmless; left out, one is made.
        source: who sends it.

    Raises:
        InvalidInputError: the content is empty or holds something that is no block.
    """
    return UserMessage(blocks(content), MessageId(id), source)


def text_of(content: Sequence[Block]) -> str:
    """The text blocks of some content, joined; its refusal where there is no text."""
    text = "".join([block.text for block in content if isinstance(block, TextBlock)])
    return text or "".join([block.text for block in content if isinstance(block, RefusalBlock)])
