"""The output items of a Responses stream: which one an event is about, and what is known of it.

An item should be told by its `output_index`. One server leaves that out, another changes an item's
id from event to event, so both are looked at, and the last item of the right kind is taken where
neither helps.
"""

from collections.abc import Sequence

import attrs

from trioloop.models.reading import Object, an_object, string

_TYPE_OF_EVENT = {
    "output_text": "message",
    "text": "message",
    "refusal": "message",
    "function_call_arguments": "function_call",
    "reasoning_summary_text": "reasoning",
    "reasoning_text": "reasoning",
    "summary_text": "reasoning",
}


@attrs.define(eq=False)
class Item:
    """An output item in the making.

    Attributes:
        number: in the order of first sight.
        type: such as `message`, `function_call` or `reasoning`.
        id: the provider's, as it was told last.
        call_id: of a call, for its result.
        texts: the pieces of each part, by kind and index, as they were given out.
        chars: of its arguments, where it is a call.
        started: a call was given out.
        done: the item is whole.
    """

    number: int
    type: str
    id: str = ""
    call_id: str = ""
    texts: dict[tuple[str, int], list[str]] = attrs.Factory(dict)
    chars: int = 0
    started: bool = False
    done: bool = False

    def text(self, kind: str, index: int = 0) -> str:
        """What was given out of a part."""
        return "".join(self.texts.get((kind, index), ()))


class Items:
    """The items of one answer, in the order of their first sight."""

    def __init__(self) -> None:
        self.all: list[Item] = []
        self._by_index: dict[int, Item] = {}
        self._by_id: dict[str, Item] = {}
        self._last: dict[str, Item] = {}

    def of_item(self, index: object, item: Object) -> Item:
        """The item that an event holds: a known one, or a new one."""
        found = self._known(index, item) or self._add(index, string(item.get("type")))
        found.id = string(item.get("id")) or found.id
        found.call_id = string(item.get("call_id")) or found.call_id
        self._by_id |= {name: found for name in (found.id, found.call_id) if name}
        return found

    def of_event(self, event: str, payload: Object) -> Item:
        """The item that a piece belongs to: a known one, or a new one."""
        index, kind = payload.get("output_index"), _TYPE_OF_EVENT[event]
        if isinstance(index, int):
            return self._by_index.get(index) or self._add(index, kind)
        item_id = string(payload.get("item_id"))
        found = self._by_id.get(item_id) if item_id else self._last.get(kind)
        if found is None or found.type != kind:
            found = self._add(index, kind)
            if item_id:
                found.id = item_id
                self._by_id[item_id] = found
        return found

    def matched(self, output: Sequence[Object]) -> list[tuple[Item, Object]]:
        """The items of a whole output with those that were streamed; new ones are added.

        The output may be shorter than what was streamed, and its ids may be others.
        """
        aligned = [item.type for item in self.all] == [string(one.get("type")) for one in output]
        if aligned:
            return list(zip(self.all, output, strict=True))
        streamed = {item.type for item in self.all}
        found = []
        for one in output:
            kind = string(one.get("type"))
            known = self._known(None, one)
            if known is None and (kind not in streamed or kind == "function_call"):
                known = self.of_item(None, one)
            if known is not None:
                found.append((known, one))
        return found

    def _known(self, index: object, item: Object) -> Item | None:
        if isinstance(index, int):
            return self._by_index.get(index)
        for name in (string(item.get("id")), string(item.get("call_id"))):
            found = self._by_id.get(name)
            if found is not None and found.type == item.get("type"):
                return found
        return None

    def _add(self, index: object, kind: str) -> Item:
        item = Item(len(self.all), kind)
        self.all.append(item)
        self._last[kind] = item
        if isinstance(index, int):
            self._by_index[index] = item
        return item


def part_text(part: object) -> str:
    """The text of a part of an item, whatever it is called."""
    members = an_object(part)
    return string(members.get("text")) or string(members.get("refusal"))
