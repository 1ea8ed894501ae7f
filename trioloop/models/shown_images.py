"""Images in requests: as data URLs, or in words where they can't be shown."""

from collections.abc import Iterator, Sequence

from trioloop.messages import Block, ImageBlock, TextBlock


def data_url(image: ImageBlock) -> str:
    """An image as a URL that holds it."""
    return f"data:{image.media_type};base64,{image.data}"


def holds_image(content: Sequence[Block]) -> bool:
    """Whether some content has an image."""
    return any(isinstance(block, ImageBlock) for block in content)


def words(content: Sequence[Block]) -> str:
    """Content for a place that takes text only; an image is named instead."""
    return "\n\n".join(_texts(content))


def instead_of(image: ImageBlock) -> str:
    """What a model is told that can't be shown an image."""
    return f"[an {image.media_type} image, which can't be shown here]"


def _texts(content: Sequence[Block]) -> Iterator[str]:
    for block in content:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ImageBlock):
            yield instead_of(block)
