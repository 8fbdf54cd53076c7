"""Assembles the native tool calls of a streamed answer from pieces, and gives them unique ids.

Providers number and split calls in different ways; all known ways are understood. Calls that a
model writes in its answer's text are read by ``text_calls``.
"""

import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from tui_agent.json_text import loads
from tui_agent.lazy import dataclass


def is_object(text: str) -> bool:
    """Return whether a text is a complete JSON object, as a call's arguments must be."""
    try:
        return isinstance(loads(text), dict)
    except ValueError:
        return False


def plain_name(tool: str) -> str:
    """Return a tool's name without the prefixes and special tokens that some models add to it.

    gpt-oss calls ``functions.read<|channel|>commentary``, which some servers pass on unchanged.
    """
    name = tool.partition("<|")[0].strip() or tool
    return name.removeprefix("functions.").removeprefix("default_api.")


def plain_arguments(text: str) -> str:
    """Return a JSON text without the leading ``{}`` or the second copy that some servers send."""
    without = text.removeprefix("{}").lstrip()
    if without:
        text = without
    half = len(text) // 2
    if text.startswith("{") and text[:half] == text[half:]:
        return text[:half]
    return text


class CallIds:
    """Gives each call of an answer a unique id. ``taken`` are the ids of the request's calls."""

    def __init__(
        self, taken: Iterable[str], new: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex[:16]}"
    ) -> None:
        self._taken = set(taken)
        self._new = new

    def take(self, given: str | None) -> str:
        """Return the id for a call, which is the provider's ``given`` id if that is free.

        If that id is taken, a number is appended (``abc_2``). If none is given, the id is new.
        """
        call_id = given or self._new()
        number = 2
        while call_id in self._taken:
            call_id = f"{given}_{number}" if given else self._new()
            number = number + 1
        self._taken.add(call_id)
        return call_id


@dataclass
class StreamedCall:
    """The parts of a tool call that have been received so far.

    ``given`` is the provider's id, "" for none; ``call_id`` is the id that this program uses.
    """

    given: str
    call_id: str
    tool: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class StreamedCalls:
    """Collects the tool calls of a streamed answer, in the order of their first pieces."""

    def __init__(self, ids: CallIds) -> None:
        self.calls: list[StreamedCall] = []
        self._ids = ids
        self._by_index: dict[int, int] = {}

    def take(
        self, index: Any, given: str, tool: str, arguments: Any
    ) -> tuple[int, StreamedCall, str]:
        """Add a piece of a call. Return the call's index in ``calls``, the call, and a text.

        The text is the piece's ``arguments``: None becomes "", any other value that isn't text
        becomes JSON. ``index`` is the provider's number for the call; anything but an int is
        ignored.
        """
        if not isinstance(arguments, str):
            if arguments is None:
                arguments = ""
            else:
                arguments = json.dumps(arguments, ensure_ascii=False)
        position = self._position(index, given, tool, arguments)
        call = self.calls[position]
        if tool and tool != call.tool:
            if not call.tool or call.pieces:
                call.tool = tool
            else:
                call.tool = call.tool + tool
        if arguments:
            call.pieces.append(arguments)
        return position, call, arguments

    def _position(self, index: Any, given: str, tool: str, arguments: str) -> int:
        """Return the index in ``calls`` of the call that a piece belongs to; a new call is added.

        Some servers number all calls 0, some number none, some repeat the id in every piece, and
        some send no ids at all.
        """
        if isinstance(index, int):
            known = self._by_index.get(index)
        elif self.calls:
            known = len(self.calls) - 1
        else:
            known = None
        if known is not None:
            call = self.calls[known]
            starts_another = bool(given and tool and call.given and given != call.given)
            if tool and call.pieces and not given:
                # Without an id, a piece after a complete JSON object begins another call.
                is_whole = call.pieces[-1].rstrip().endswith("}") and is_object(call.arguments)
                starts_another = index is None or bool(arguments and is_whole)
            if not starts_another:
                return known
        position = len(self.calls)
        self.calls.append(StreamedCall(given, self._ids.take(given)))
        if isinstance(index, int):
            self._by_index[index] = position
        return position
