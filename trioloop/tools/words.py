"""What an error says, in text that the log can hold, whoever raised it.

Bodies, listeners and adapters are code of others: what they raise may say too much, or fail to say
anything, and mustn't take with it who asks. What becomes of a call, an attempt or a turn that
failed is decided elsewhere.
"""

from trioloop.tools.excerpt import clean, prefix

_CODE_CHARS_MAX = 100


def words_of(error: BaseException, bytes_max: int = 4_096) -> str:
    """The beginning of what an error says; empty where it says nothing."""
    try:
        return prefix(str(error), bytes_max)
    except BaseException:  # a `__str__` may do anything
        return "(its message can't be shown)"


def code_of(error: BaseException) -> str | None:
    """The stable word for an error: its own `code`; None where it has none that is a word."""
    try:
        code = getattr(error, "code", None)
    except BaseException:  # a property may do anything
        return None
    return clean(code)[:_CODE_CHARS_MAX] if isinstance(code, str) and code else None
