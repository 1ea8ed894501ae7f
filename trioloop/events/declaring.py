"""What an event is, and the table from wire name to class.

An `Event` is a fact with its place in a log. Which facts the runtime itself writes is in `facts`;
applications and policies declare their own with `@event`.
"""

from collections.abc import Callable
from typing import TypeVar, dataclass_transform

import attrs
from msgspec import Raw, Struct

from trioloop.errors import InvalidInputError


class EventData:
    """The base of every durable fact. Subclasses are declared with `@event(name)`."""

    __slots__ = ()


class Event(Struct, frozen=True, gc=False):
    """A fact with its place in a session's log.

    Attributes:
        seq: its place, contiguous from 0.
        time: Unix milliseconds of the runtime's wall clock, never decreasing.
        data: the fact.
    """

    seq: int
    time: int
    data: EventData

    @property
    def type(self) -> str:
        """Its wire name, such as `turn/start`."""
        data = self.data
        return data.name if isinstance(data, UnknownEvent) else wire_name(type(data))

    @property
    def ignorable(self) -> bool:
        """Whether a reader that doesn't know the type may skip it (E5)."""
        return isinstance(self.data, UnknownEvent) or is_ignorable(type(self.data))


@attrs.frozen
class UnknownEvent(EventData):
    """A fact that was written as ignorable, of a type that nobody here declares (E5).

    Attributes:
        name: its wire name.
        raw: its data as it was written; it is encoded to the same bytes.
    """

    name: str
    raw: Raw


_CLASSES: dict[str, type[EventData]] = {}
_NAMES: dict[type[EventData], str] = {}
_IGNORABLE: set[type[EventData]] = set()

T = TypeVar("T", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def event(name: str, *, ignorable: bool = False) -> Callable[[T], T]:
    """Declare a class of durable events; it becomes a frozen attrs class.

    Args:
        name: its wire name, such as `plan/mode`.
        ignorable: a log that holds it may be read where nobody declares it (E5).

    Raises:
        InvalidInputError: the name is taken by another class.
    """

    def declare(cls: T) -> T:
        known = _CLASSES.get(name)
        if known is not None and known.__qualname__ != cls.__qualname__:
            raise InvalidInputError(f"the event name {name!r} is taken by {known!r}")
        declared = attrs.frozen(cls)
        _CLASSES[name] = declared
        _NAMES[declared] = name
        if ignorable:
            _IGNORABLE.add(declared)
        return declared

    return declare


def wire_name(cls: type[EventData]) -> str:
    """The wire name of a class.

    Raises:
        InvalidInputError: the class wasn't declared with `@event`.
    """
    try:
        return _NAMES[cls]
    except KeyError:
        raise InvalidInputError(
            f"{cls.__name__} is no event: derive it from EventData and declare it with @event(name)"
        ) from None


def is_ignorable(cls: type[EventData]) -> bool:
    """Whether events of a class are written as ignorable (E5)."""
    return cls in _IGNORABLE


def event_class(name: str) -> type[EventData] | None:
    """The class of a wire name, or None where nobody has declared it."""
    return _CLASSES.get(name)


def event_classes() -> dict[str, type[EventData]]:
    """Every declared wire name with its class."""
    return dict(_CLASSES)
