"""Chips: short placeholders in the prompt for large pastes, such as ``[pasted 40 lines]``."""

from collections import deque
from collections.abc import Callable

from tui_agent.app.format import tokens
from tui_agent.app.pasted_images import NAME
from tui_agent.lazy import LazyPattern

FOLD_LINES = 12
"""Maximum number of lines in a paste that is inserted as it is, not as a chip (a short
placeholder)."""
FOLD_CHARACTERS = 2_000
"""Maximum number of characters in a paste that is inserted as it is, not as a chip (a short
placeholder)."""
MAX_KNOWN = 20
"""Maximum number of pastes that are remembered, so that they become chips again in a text from the
history or the editor."""

_CHIP = LazyPattern(rf"\[pasted (?:\d+ lines|[\d.]+[kM]? characters)(?: #\d+)?\]|@{NAME.pattern}")


def is_large(text: str) -> bool:
    return len(text) > FOLD_CHARACTERS or _lines_in(text) > FOLD_LINES


def _lines_in(text: str) -> int:
    """Return the number of lines in a text. A line feed at the end does not begin another line."""
    return text.removesuffix("\n").count("\n") + 1


class PasteStore(dict[str, str]):
    """The pasted text that each chip (a short placeholder) in the prompt stands for, by chip."""

    def __init__(self) -> None:
        super().__init__()
        self._known: deque[str] = deque(maxlen=MAX_KNOWN)
        """The last pasted texts, oldest first. They include texts in prompts that were already
        sent."""

    def rewrite(self, clean: Callable[[str], str]) -> None:
        """Apply ``clean`` to the remembered pastes that `fold_known` looks for.

        The texts of chips stay unchanged.
        """
        self._known = deque(map(clean, self._known), maxlen=MAX_KNOWN)

    def fold_known(self, text: str) -> str:
        """Return ``text`` with each recently pasted text in it replaced by a chip.

        Texts pasted into prompts that were already sent are replaced, too.
        """
        for pasted in sorted(self._known, key=len, reverse=True):
            if pasted in text:
                text = text.replace(pasted, self.fold(pasted))
        return text

    def fold(self, text: str) -> str:
        """Store a pasted text, and return the chip (a short placeholder) that stands for it.

        The chip contains a number if another text has the same chip.
        """
        lines = _lines_in(text)
        if lines > FOLD_LINES:
            size = f"{lines} lines"
        else:
            size = f"{tokens(len(text))} characters"
        chip = f"[pasted {size}]"
        number = 1
        while self.get(chip, text) != text:
            number += 1
            chip = f"[pasted {size} #{number}]"
        self[chip] = text
        if text not in self._known:
            self._known.append(text)
        return chip

    def expand(self, text: str) -> str:
        """Return ``text`` with every known chip replaced by the pasted text that it stands for."""
        if self:
            return _CHIP.sub(lambda match: self.get(match[0], match[0]), text)
        return text

    def chips(self, line: str) -> list[tuple[int, int]]:
        """Return the (start, end) columns of the chips in a line, left to right.

        Only chips whose text is stored are included.
        """
        return [match.span() for match in _CHIP.finditer(line) if match[0] in self]
