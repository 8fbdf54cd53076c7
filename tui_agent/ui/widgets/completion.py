"""The list that offers commands and files while the user types. Never takes the focus, never blocks a key."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui_agent.ui.format import visible
from tui_agent.ui.prompting.completion import Candidate, CommandName, Token, rank_files, rank_names

FRESH = 5.0
"""Seconds a list of files is used before it is read again."""

FileSource = Callable[[], Awaitable[Sequence[str]]]


class CompletionPopup(OptionList, can_focus=False):
    """Offers candidates for the word at the prompt's cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"completion--match", "completion--help"}

    @dataclass
    class Changed(Message):
        """The list opened, closed or has other candidates."""

        popup: "CompletionPopup"

        @property
        def control(self) -> "CompletionPopup":
            """The popup that changed."""
            return self.popup

    @dataclass
    class Picked(Message):
        """A candidate was clicked."""

        popup: "CompletionPopup"

        @property
        def control(self) -> "CompletionPopup":
            """The popup that was clicked."""
            return self.popup

    @dataclass
    class Ranked(Message):
        """The worker has ordered the files for a token."""

        token: Token
        candidates: list[Candidate]

    def __init__(self, commands: Callable[[], Sequence[CommandName]], files: FileSource) -> None:
        super().__init__()
        self._commands = commands
        self._files = files
        self._paths: Sequence[str] = ()
        self._read_at: float | None = None
        self._token: Token | None = None
        self._candidates: list[Candidate] = []
        self._dismissed: tuple[int, int] | None = None
        self.display = False

    @property
    def is_open(self) -> bool:
        """Whether candidates are offered."""
        return bool(self.display)

    @property
    def choice(self) -> tuple[Token, Candidate] | None:
        """The highlighted candidate and the word it replaces."""
        if self._token is None or not self.is_open or self.highlighted is None:
            return None
        return self._token, self._candidates[self.highlighted]

    def follow(self, token: Token | None) -> None:
        """Offer candidates for another word; none closes the list."""
        if token is None:
            self._token = self._dismissed = None
            self._close()
            return
        if self._dismissed == (token.row, token.start):
            return
        self._token = token
        if token.kind == "command":
            self._offer(rank_names(token.query, self._commands()))
        else:
            self._rank_files(token)

    def dismiss(self) -> None:
        """Close, and stay closed for this word."""
        if self._token is not None:
            self._dismissed = (self._token.row, self._token.start)
        self._close()

    def move(self, step: int) -> None:
        """Highlight the next or the previous candidate, around the ends."""
        if self._candidates:
            self.highlighted = ((self.highlighted or 0) + step) % len(self._candidates)

    def forget_files(self) -> None:
        """Read the list of files again when it is next needed: it may have changed."""
        self._read_at = None

    @work(exclusive=True, group="completion", exit_on_error=False)
    async def _rank_files(self, token: Token) -> None:
        now = asyncio.get_running_loop().time()
        if self._read_at is None or now - self._read_at > FRESH:
            self._paths = await self._files()
            self._read_at = asyncio.get_running_loop().time()
        ranked = await asyncio.to_thread(rank_files, token.query, self._paths)
        self.post_message(self.Ranked(token, ranked))

    def on_completion_popup_ranked(self, message: Ranked) -> None:
        """Offer the files, unless the user has typed on in the meantime."""
        message.stop()
        if message.token == self._token:
            self._offer(message.candidates)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.highlighted = event.option_index
        self.post_message(self.Picked(self))

    def _offer(self, candidates: list[Candidate]) -> None:
        if not candidates:
            self._close()
            return
        self._candidates = candidates
        width = max(len(item.label) for item in candidates if item.help) if candidates[0].help else 0
        self.set_options(Option(self._row(item, width)) for item in candidates)
        self.highlighted = 0
        self.display = True
        self.post_message(self.Changed(self))

    def _close(self) -> None:
        if self.is_open:
            self.display = False
            self.post_message(self.Changed(self))

    def _row(self, item: Candidate, width: int) -> Content:
        label = Content(visible(item.label))
        match = self.get_visual_style("completion--match", partial=True)
        if len(label) == len(item.label):
            for offset in item.offsets:
                label = label.stylize(match, offset, offset + 1)
        if not item.help:
            return label
        helped = self.get_visual_style("completion--help", partial=True)
        return Content.assemble(label, " " * (width - len(item.label) + 2), (item.help, helped))
