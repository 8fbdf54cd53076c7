"""The list above the prompt that offers commands, files and entries while the user types.

It searches its sources for candidates and shows them, but never has the focus. The prompt handles
the keys, moves the highlight and inserts the highlighted candidate.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual import on, work
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui_agent.app.commands import Command, find
from tui_agent.app.format import one_line, visible
from tui_agent.lazy import dataclass
from tui_agent.ui.prompting.completion import Candidate, CompletionSource, Token, merged, rank_names
from tui_agent.ui.widgets.options import Options

log = logging.getLogger(__name__)


KEYS_SHOWN = 7
"""Maximum number of keys that are listed when the user types a question mark. With more keys, the
list would have to scroll."""
ARGUMENT_SHOWN = 60
"""Maximum length, in characters, of the description of a command's argument that is shown."""
HELP = ".completion--help"
MATCH = ".completion--match"


class CompletionPopup(Options, can_focus=False):
    """Offers candidates that complete the word at the prompt's cursor."""

    COMPONENT_CLASSES = {"completion--match", "completion--help"}

    @dataclass
    class Changed(Message):
        """Posted when the list has been opened or closed, or its candidates have changed."""

    @dataclass
    class Picked(Message):
        """Posted when the user clicked a candidate, or a single candidate was picked.

        The candidate is in the list's `choice`.
        """

    def __init__(
        self,
        commands: Callable[[], Sequence[Command]],
        sources: Sequence[CompletionSource],
        keys: Callable[[], Sequence[tuple[str, str]]],
    ) -> None:
        """Create the list.

        ``keys`` returns the prompt's keys, each with what it does, most useful first.
        """
        super().__init__()
        self._keys = keys
        self._commands = commands
        self._sources = sources
        self.has_moved = False
        """Whether the user has moved the highlight since the list was opened."""
        self.token: Token | None = None
        """The word being completed; None if there is none."""
        self._candidates: list[Candidate] = []
        self._dismissed: tuple[int, int] | None = None
        """Row and start column of the word for which the user closed the list; None if there is
        none."""
        self.display = False

    @property
    def choice(self) -> tuple[Token, Candidate] | None:
        """The word being completed, and the highlighted candidate; None without a candidate."""
        if (
            self.token is None
            or not self.display
            or self.highlighted is None
            or not self._candidates
        ):
            return None
        return self.token, self._candidates[self.highlighted]

    @property
    def is_completing(self) -> bool:
        """Whether the list shows completions of a word, rather than the prompt's keys."""
        return self.token is not None and self.token.kind != "keys"

    def follow(self, token: Token | None, *, picks_single: bool = False) -> None:
        """Offer candidates for the word ``token``, or close the list if it is None.

        Does nothing if the user has dismissed the list for this word. With ``picks_single``, a
        candidate is picked at once if it is the only one.
        """
        if token is None:
            self.token = self._dismissed = None
            self._close()
            return
        if self._dismissed == (token.row, token.start):
            return
        self.token = token
        match token.kind:
            case "command":
                self._offer(rank_names(token.query, self._commands()))
            case "keys":
                self._show_keys()
            case _:
                self._find(token, picks_single=picks_single)

    def argument_of(self, name: str) -> str:
        """Return the description of the command's argument, cut at `ARGUMENT_SHOWN` characters.

        Returns "" if there is no command called ``name`` or the command takes no argument.
        """
        command = find(name, self._commands())
        if command is None:
            return ""
        return one_line(command.argument, ARGUMENT_SHOWN)

    def complete(self, token: Token) -> None:
        """Offer candidates for a word, even if the user has dismissed the list for this word.

        If the sources find only one candidate, it is picked at once.
        """
        self.follow(None)
        self.follow(token, picks_single=True)

    def dismiss(self) -> None:
        """Close the list, and keep it closed while the user types the same word."""
        if self.token is not None and self.token.kind == "path":
            # The user opens this list with Tab, so it may open again for the same word.
            self.follow(None)
            return
        if self.token is not None:
            self._dismissed = (self.token.row, self.token.start)
        self._close()

    def move(self, step: int) -> None:
        """Move the highlight by ``step`` candidates. At either end, continue at the other end."""
        if self._candidates:
            self.highlighted = ((self.highlighted or 0) + step) % len(self._candidates)
            self.has_moved = True

    @work(exclusive=True, group="completion")
    async def _find(self, token: Token, *, picks_single: bool) -> None:
        asked = [find(token.query) for kind, find in self._sources if kind == token.kind]
        found: list[Sequence[Candidate]] = []
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, BaseException):
                log.warning("A source of completions failed", exc_info=answer)
            else:
                found.append(answer)
        candidates = merged(found)
        query = token.query
        if token != self.token or self._dismissed == (token.row, token.start):
            return  # In the meantime, the user has typed more or closed the list.
        if candidates or token.kind == "entry":
            self._offer(candidates)
            if picks_single and len(candidates) == 1:
                self.post_message(self.Picked())
        else:
            self._candidates = []
            text = "no files in this directory yet"
            if query:
                what = "file" if token.kind == "path" else "file, agent or session"
                text = f"no {what} matches “{one_line(query, 40)}”"
            self.set_options([Option(Content.styled(text, HELP), disabled=True)])
            self._open()

    def _show_keys(self) -> None:
        """Show the most useful keys instead of candidates, as rows that can't be chosen."""
        self._candidates = []
        shown = (*self._keys()[:KEYS_SHOWN], ("? enter", "all keys, commands and settings"))
        width = max(len(keys) for keys, _text in shown)
        rows = [
            Content.assemble((f"{keys:<{width}}  ", MATCH), (text, HELP)) for keys, text in shown
        ]
        self.set_options(Option(row, disabled=True) for row in rows)
        self._open()

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.highlighted = event.option_index
        self.post_message(self.Picked())

    def _offer(self, candidates: list[Candidate]) -> None:
        if not candidates:
            self._close()
            return
        self._candidates = candidates
        width = 0
        if candidates[0].help:
            width = max(cell_len(visible(item.label)) for item in candidates if item.help)
        self.set_options(Option(self._row(item, width)) for item in candidates)
        self.highlighted = 0
        self._open()

    def _open(self) -> None:
        self.has_moved = False
        self.display = True
        self.post_message(self.Changed())

    def _close(self) -> None:
        if self.display:
            self.display = False
            self.post_message(self.Changed())

    def _row(self, item: Candidate, width: int) -> Content:
        label = Content(visible(item.label))
        if len(label) == len(item.label):
            for offset in item.offsets:
                label = label.stylize(MATCH, offset, offset + 1)
        if not item.help:
            return label
        return Content.assemble(label, " " * (width - label.cell_length + 2), (item.help, HELP))
