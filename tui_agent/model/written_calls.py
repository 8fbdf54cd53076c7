"""Assembles tool calls from streamed pieces, however a provider numbers and splits them."""

import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from tui_agent.json_text import loads
from tui_agent.lazy import dataclass


def is_object(text: str) -> bool:
    """Return True if a text is a complete JSON object, as a call's arguments must be."""
    try:
        return isinstance(loads(text), dict)
    except ValueError:
        return False


def plain_name(tool: str) -> str:
    """Return a tool's name without what models and servers put around it.

    gpt-oss writes a call to ``functions.read<|channel|>commentary``; some servers let that through.
    """
    name = tool.partition("<|")[0].strip() or tool
    return name.removeprefix("functions.").removeprefix("default_api.")


def plain_arguments(text: str) -> str:
    """Return arguments without the leading "{}" or the second copy that some servers add."""
    without = text.removeprefix("{}").lstrip()
    if without:
        text = without
    half = len(text) // 2
    if text.startswith("{") and text[:half] == text[half:]:
        return text[:half]
    return text


class CallIds:
    """Gives each call of an answer an id that isn't in the request's ``taken`` ids."""

    def __init__(
        self, taken: Iterable[str], new: Callable[[], str] = lambda: f"call_{uuid.uuid4().hex[:16]}"
    ) -> None:
        self._taken = set(taken)
        self._new = new

    def take(self, given: str | None) -> str:
        """Return a call's id: the provider's, with a number if it is taken, or a new one."""
        call_id = given or self._new()
        number = 2
        while call_id in self._taken:
            call_id = f"{given}_{number}" if given else self._new()
            number = number + 1
        self._taken.add(call_id)
        return call_id


@dataclass
class WrittenCall:
    """A tool call being received. ``given`` is the provider's id, ``call_id`` the one used here."""

    given: str
    call_id: str
    tool: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class WrittenCalls:
    """The calls of one answer, in order."""

    def __init__(self, ids: CallIds) -> None:
        self.calls: list[WrittenCall] = []
        self._ids = ids
        self._by_index: dict[int, int] = {}

    def take(
        self, index: Any, given: str, tool: str, arguments: Any
    ) -> tuple[int, WrittenCall, str]:
        """Take a piece; return the place of the call it belongs to, the call, and the text of the piece.

        ``index`` is the provider's number, None or nonsense where it has none. ``arguments`` that
        are no text become JSON.
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
        """Return which call a piece belongs to, a new one where id and name say so.

        Some servers number every call 0, some none, some repeat the id with every piece, some give
        no ids at all.
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
                # Without an id only the text before can tell: more after a whole object is another
                # call.
                is_whole = call.pieces[-1].rstrip().endswith("}") and is_object(call.arguments)
                starts_another = index is None or bool(arguments and is_whole)
            if not starts_another:
                return known
        position = len(self.calls)
        self.calls.append(WrittenCall(given, self._ids.take(given)))
        if isinstance(index, int):
            self._by_index[index] = position
        return position
