"""Separates reasoning in ``<think>`` tags from an answer's text, even if a stream splits the tags.

Some servers' templates put the opening tag into the prompt. The answer then contains only the
closing tag; when this is received, the reasoning before it has already been passed on as text.
"""

from typing import Literal

from tui_agent.model.protocol import ModelEvent, ReasoningDelta, TextDelta, TextWasReasoning

OPEN = "<think>"
CLOSE = "</think>"
_FENCE = "```"


class ThinkingTags:
    """Separates reasoning and text in the content of one answer."""

    def __init__(self) -> None:
        self._held = ""
        self._state: Literal["before", "within", "behind", "open", "text"] = "before"
        """The state of the separation. "before" means that no content has been received, "within"
        that the text is after ``<think>``, and "behind" that it is white space after ``</think>``.
        "open" means that the text may turn out to be reasoning, "text" that only text follows."""
        self._is_shown = False
        self._said: list[str] = []
        """The pieces of text received so far that may still turn out to be reasoning."""
        self.parts: list[str] = []
        """The reasoning received so far, in pieces, with its tags and the white space after
        them."""

    def take(self, text: str, *, reasoned: bool) -> list[ModelEvent]:
        """Add a piece of content and return its events; a part that may be a tag is held back.

        ``reasoned`` says that reasoning was received in a separate field, so that tags are just
        text.
        """
        if self._state == "text":
            return [TextDelta(text)]
        held = self._held + text
        self._held = ""
        if reasoned and self._state in {"before", "open"}:
            self._state = "text"
            return [TextDelta(held)]
        match self._state:
            case "before":
                return self._before(held)
            case "within":
                return self._within(held)
            case "open":
                return self._open(held)
            case _:
                return self._behind(held)

    def end(self) -> list[ModelEvent]:
        held = self._held
        self._held = ""
        if not held:
            return []
        if self._state == "within":
            return [ReasoningDelta(held)]
        if self._state == "open":
            return self._open(held, is_end=True)
        return [TextDelta(held)]

    def _before(self, text: str) -> list[ModelEvent]:
        begun = text.lstrip()
        if begun.startswith(OPEN):
            self._state = "within"
            self.parts.append(text[: len(text) - len(begun) + len(OPEN)])
            return self._within(begun[len(OPEN) :])
        if OPEN.startswith(begun):
            self._held = text
            return []
        self._state = "open"
        return self._open(text)

    def _within(self, text: str) -> list[ModelEvent]:
        thought, closed, rest = text.partition(CLOSE)
        if not closed:
            thought, self._held = _without_begun_tag(thought)
        self.parts.append(thought + closed)
        if self._is_shown:
            shown = thought
        else:
            shown = thought.lstrip()
        self._is_shown = self._is_shown or bool(shown)
        events: list[ModelEvent] = []
        if shown:
            events = [ReasoningDelta(shown)]
        if closed:
            self._state = "behind"
            events += self._behind(rest)
        return events

    def _behind(self, text: str) -> list[ModelEvent]:
        """Skip the white space that separates the reasoning from the answer's text."""
        answer = text.lstrip()
        self.parts.append(text[: len(text) - len(answer)])
        if not answer:
            return []
        self._state = "text"
        return [TextDelta(answer)]

    def _open(self, text: str, *, is_end: bool = False) -> list[ModelEvent]:
        """Add text that came without an opening tag; a closing tag in it makes it reasoning.

        ``is_end`` says that no more text follows, so that nothing is held back.
        """
        said, closed, rest = text.partition(CLOSE)
        if not closed:
            if not is_end:
                said, self._held = _without_begun_tag(said)
            return self._say(said)
        before = "".join([*self._said, said])
        if not is_end and not rest.strip(" ") and not before.endswith("\n"):
            # Only the next piece shows whether the tag is at the end of its line.
            self._held = closed + rest
            return self._say(said)
        if _ends_reasoning(before, rest):
            self.parts += [before, CLOSE]
            self._state = "behind"
            return [*self._say(said), TextWasReasoning(), *self._behind(rest)]
        return [*self._say(said + closed), *self._open(rest, is_end=is_end)]

    def _say(self, text: str) -> list[ModelEvent]:
        self._said.append(text)
        if text:
            return [TextDelta(text)]
        return []


def _without_begun_tag(text: str) -> tuple[str, str]:
    """Split off an unfinished closing tag at the end; the second part is "" if there is none."""
    for size in range(len(CLOSE) - 1, 0, -1):
        if text.endswith(CLOSE[:size]):
            return text[:-size], text[-size:]
    return text, ""


def _ends_reasoning(before: str, after: str) -> bool:
    """Return True if the closing tag between two texts ends reasoning that had no opening tag.

    The closing tag must be at the beginning or end of its line, not within code, and without an
    opening tag before it.
    """
    if OPEN in before:
        return False
    line = before.rpartition("\n")[2]
    is_code = before.count(_FENCE) % 2 == 1 or line.count("`") % 2 == 1
    stands_apart = not line.strip() or not after.partition("\n")[0].strip()
    return stands_apart and not is_code
