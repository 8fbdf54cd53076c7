"""The prompt: a text area with history, completion, vi keys, and an external editor.

Long pasted text is shown as a chip, that is, a short placeholder. The prompt keeps the user's
draft, a second draft that the user has stashed for later, and the position in the history. It sends
nothing to the agent. Instead, it posts messages such as `Prompt.Sent`, and the main screen handles
them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from textual import events, on
from textual.actions import parse
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import var
from textual.widgets import TextArea
from textual.widgets.text_area import EditResult, Selection

from tui_agent.app.format import one_line
from tui_agent.lazy import dataclass
from tui_agent.ui.bindings import CHORD, hidden, keys_of
from tui_agent.ui.prompting.completion import SIGNS, Candidate, Token, path_at, token_at
from tui_agent.ui.prompting.dropped import dropped_files
from tui_agent.ui.prompting.history import PromptHistory
from tui_agent.ui.prompting.killed import KilledText
from tui_agent.ui.prompting.paste import PasteStore, is_large
from tui_agent.ui.prompting.vim import Mode, Step, Vim, clamped
from tui_agent.ui.terminal_suspend import EditorError, edit_in_editor
from tui_agent.ui.widgets.completion import CompletionPopup

PLACEHOLDERS = (
    "Ask anything · / command · @ file · # entry · ! shell",
    "Ask anything · / @ # ! · {palette}",
    "Ask anything",
)
"""Placeholders of the empty prompt, longest first.

`Prompt.set_placeholders` replaces ``{palette}`` with the key of the list of commands.
"""
READ_ONLY_PLACEHOLDERS = (
    "Read-only · {palette} lists all commands · /fork continues in a copy",
    "Read-only · /fork continues in a copy",
    "Read-only",
)
"""Placeholders of the prompt in a read-only session, longest first."""

_MAX_STASHED_CHARS = 40
"""Maximum number of characters of a stashed draft that the prompt's placeholder shows."""
_COMMAND = re.compile(r"/(?P<name>\S+)(?P<space> ?)")
"""Matches a command name, such as ``/help``, without an argument."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """Return ``text`` without control characters except tabs and line feeds.

    Every line end in the result is a line feed.
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


class Prompt(TextArea, inherit_bindings=False):
    """The text area for messages and commands. It posts `Sent` when the user sends the text."""

    # The key bindings of Textual's text area are repeated here, most of them with an id, so that
    # users can change them. Two keys separated by a space form a key sequence. All key sequences
    # begin with `CHORD`.
    BINDINGS = [
        hidden("enter", "send", "send"),
        Binding("alt+enter", "send(True)", "queue", id="prompt.queue"),
        # While the agent isn't running, Alt+Enter inserts a line break, because many terminals send
        # it for Shift+Enter.
        hidden("shift+enter,ctrl+j,alt+enter", "newline", "new line", id="prompt.newline"),
        Binding("tab", "complete", "complete", id="prompt.complete"),
        hidden("escape", "close_completion", "close list"),
        hidden("ctrl+x ctrl+e", "edit_in_editor", "edit in your own editor", id="prompt.editor"),
        hidden("ctrl+x ctrl+s", "stash", "put the draft away, or bring it back", id="prompt.stash"),
        hidden(
            "ctrl+x ctrl+b",
            "move_to_background",
            "move the running command to the background",
            id="prompt.background",
        ),
        hidden("ctrl+v", "paste", "paste an image or text", id="prompt.paste"),
        hidden("ctrl+x,super+x", "cut", "cut the selection or the line", id="prompt.cut"),
        hidden("ctrl+c", "copy", "copy the selection"),
        hidden("super+c", "copy", "copy the selection", id="prompt.copy"),
        hidden("alt+a", "select_all", "select all", id="prompt.select_all"),
        hidden("ctrl+underscore,ctrl+slash,super+z", "undo", "undo typing", id="prompt.undo"),
        # Ctrl+Y inserts deleted text, as in a shell. In Textual's text area it would redo.
        hidden("alt+underscore,super+y", "redo", "redo typing", id="prompt.redo"),
        hidden("ctrl+y", "yank", "insert the text erased last", id="prompt.yank"),
        hidden("ctrl+d", "delete_or_quit", "erase or quit", id="prompt.erase_or_quit"),
        hidden("backspace", "delete_left", "erase to the left", id="prompt.erase_left"),
        hidden("delete", "delete_right", "erase to the right", id="prompt.erase_right"),
        hidden(
            "ctrl+w,ctrl+backspace,alt+backspace",
            "delete_word_left",
            "erase the previous word",
            id="prompt.erase_word_left",
        ),
        hidden(
            "alt+delete,alt+d",
            "delete_word_right",
            "erase the next word",
            id="prompt.erase_word_right",
        ),
        hidden(
            "ctrl+u,super+backspace",
            "delete_to_start_of_line",
            "erase to the start of the line",
            id="prompt.erase_to_start",
        ),
        hidden(
            "ctrl+k",
            "delete_to_end_of_line_or_delete_line",
            "erase to the end of the line",
            id="prompt.erase_to_end",
        ),
        hidden("ctrl+shift+k", "delete_line", "erase the line", id="prompt.erase_line"),
        hidden(
            "up", "cursor_up", "previous line, or earlier message of this project", id="prompt.up"
        ),
        hidden("down", "cursor_down", "next line, or later message", id="prompt.down"),
        hidden("left", "cursor_left", "left", id="prompt.left"),
        hidden("right", "cursor_right", "right", id="prompt.right"),
        hidden("ctrl+left", "cursor_word_left", "previous word", id="prompt.word_left"),
        hidden("ctrl+right", "cursor_word_right", "next word", id="prompt.word_right"),
        hidden("home,ctrl+a", "cursor_line_start", "start of the line", id="prompt.line_start"),
        hidden("end,ctrl+e", "cursor_line_end", "end of the line", id="prompt.line_end"),
        hidden("pageup", "screen.scroll_page(-1)", "page up", id="prompt.page_up"),
        hidden("pagedown", "screen.scroll_page(1)", "page down", id="prompt.page_down"),
        hidden("shift+up", "cursor_up(True)", "select up", id="prompt.select_up"),
        hidden("shift+down", "cursor_down(True)", "select down", id="prompt.select_down"),
        hidden("shift+left", "cursor_left(True)", "select left", id="prompt.select_left"),
        hidden("shift+right", "cursor_right(True)", "select right", id="prompt.select_right"),
        hidden(
            "ctrl+shift+left",
            "cursor_word_left(True)",
            "select the previous word",
            id="prompt.select_word_left",
        ),
        hidden(
            "ctrl+shift+right",
            "cursor_word_right(True)",
            "select the next word",
            id="prompt.select_word_right",
        ),
        hidden(
            "shift+home",
            "cursor_line_start(True)",
            "select to the start of the line",
            id="prompt.select_line_start",
        ),
        hidden(
            "shift+end",
            "cursor_line_end(True)",
            "select to the end of the line",
            id="prompt.select_line_end",
        ),
    ]

    running: var[bool] = var(False, bindings=True)  # noqa: FBT003 - how Textual spells it
    """Whether the agent is running. If so, Alt+Enter queues the message.

    The message is sent when the agent has finished.
    """
    shell: var[bool] = var(False, toggle_class="-shell")  # noqa: FBT003 - how Textual spells it
    """Whether the text is a shell command, that is, whether it begins with ``!``."""
    vim: var[bool] = var(False, toggle_class="-vim")  # noqa: FBT003 - how Textual spells it
    """Whether vi keys are enabled."""

    @dataclass
    class Sent(Message):
        """Posted when the user sends a message."""

        text: str
        """The whole text of the message.

        Chips are replaced by the pasted text that they represent.
        """
        follow_up: bool
        """Whether the message should wait until the agent has finished its work."""

    @dataclass
    class SentNothing(Message):
        """Posted when the user presses Enter while the prompt is empty or blank."""

    @dataclass
    class QuitAsked(Message):
        """Posted when the user presses Ctrl+D in an empty prompt."""

    @dataclass
    class PasteAsked(Message):
        """Posted when the user wants to paste the clipboard.

        If the clipboard contains an image, the image is pasted, otherwise the text.
        """

    @dataclass
    class EditorFailed(Message):
        """Posted when the external editor fails.

        ``reason`` is a sentence that the user can read.
        """

        reason: str

    def __init__(
        self,
        popup: CompletionPopup,
        history: Callable[[], Sequence[str]],
        clock: Callable[[], float],
        take_back: Callable[[], bool],
        key_of: Callable[[str], str],
    ) -> None:
        super().__init__(placeholder=PLACEHOLDERS[-1], highlight_cursor_line=False, id="prompt")
        self.match_cursor_bracket = False
        self._placeholders: Sequence[str] = PLACEHOLDERS
        self._popup = popup
        self._history_walk = PromptHistory(history)
        self._pastes = PasteStore()
        self._clock = clock
        self._key_of = key_of
        """Returns the display text of an action's key, or "" if the action has no key."""
        self._take_back = take_back
        """Moves the last queued message to the prompt. Returns False if no message is queued."""
        self._recalled = ""
        """The last text taken from the history. Pasted text in it is replaced by chips."""
        self._restored = ""
        """The text that `restore` last put into the empty prompt, with chips for pasted text.

        Empty if there is no such text.
        """
        self._vi = Vim()
        self._vi_at = 0
        """Position of the vi cursor while text is selected, as a character offset.

        The vi cursor is on a selected character, whereas the text area's own cursor is after the
        selection.
        """
        self.last_typed = float("-inf")
        """Time at which the user last typed, in seconds of ``clock``; -inf before the first key."""
        self._begins_chord = False
        """Whether the last key was `CHORD` while no text was selected.

        If so, the next key may complete a key sequence.
        """
        self.stashed = ""
        """The stashed draft, with chips replaced by the pasted text.

        Empty if no draft is stashed.
        """
        self._killed = KilledText()
        self._deleted = ""
        """The text that the last key deleted. Pasted text in it is replaced by chips."""
        self.use_keys({})

    def on_mount(self) -> None:
        """Keep the terminal's cursor at the text cursor.

        Input methods show their text at the terminal's cursor.
        """
        self.screen.screen_layout_refresh_signal.subscribe(self, self._place_cursor)

    def on_resize(self) -> None:
        self.set_placeholders(self._placeholders)

    def set_placeholders(self, texts: Sequence[str]) -> None:
        """Show the first of ``texts`` that fits as the placeholder, or the last one if none fits.

        The placeholder is chosen again when the prompt's width or the key bindings change.
        ``{palette}`` is replaced by the key that opens the list of commands. If that command has no
        key, texts that contain ``{palette}`` are skipped. If the user has stashed a draft, the
        placeholder shows that draft instead.
        """
        self._placeholders = texts
        if self.stashed:
            draft = one_line(self.stashed, _MAX_STASHED_CHARS)
            key = self._key_of("prompt.stash")
            texts = (f"{key} brings back: {draft}", f"{key} brings the draft back")
            if not key:
                texts = (f"Put away: {draft}", "A draft was put away")
        elif palette := self._key_of("palette"):
            texts = [text.replace("{palette}", palette) for text in texts]
        else:
            texts = [text for text in texts if "{palette}" not in text]
        room = self.content_size.width - 1
        self.placeholder = next((text for text in texts if len(text) <= room), texts[-1])

    def _place_cursor(self, _screen: object = None) -> None:
        """Move the terminal's cursor to the prompt's text cursor if the prompt has the focus."""
        if self.has_focus and self.app.cursor_position != self.cursor_screen_offset:
            self.app.cursor_position = self.cursor_screen_offset
            # The terminal's cursor moves only when something is drawn, so request a redraw.
            self.refresh()

    def use_keys(self, keymap: Mapping[str, str], of_screen: Iterable[BindingType] = ()) -> None:
        """Use the keys that the user has set in ``keymap``, which maps binding ids to keys.

        ``of_screen`` contains the screen's bindings. If such a binding is a sequence of two keys,
        the prompt handles it, because only the prompt recognizes key sequences.
        """
        self._keys = dict(keys_of(self.BINDINGS, keymap))
        for key, bindings in keys_of(of_screen, keymap).items():
            if " " in key:
                self._keys[key] = [
                    replace(binding, action=f"screen.{binding.action}") for binding in bindings
                ]
        if self.is_mounted:
            self.set_placeholders(self._placeholders)

    # -- content

    @property
    def full_text(self) -> str:
        """The text of the prompt, with chips replaced by the pasted text."""
        return self._pastes.expand(self.text)

    @property
    def draft(self) -> str:
        """The text that the user hasn't sent yet, with chips replaced by the pasted text.

        While the prompt shows a message from the history, this is the text that the prompt
        contained before.
        """
        if self._is_recalled:
            return self._history_walk.draft
        return self.full_text

    @property
    def _is_recalled(self) -> bool:
        return self._history_walk.walking and self.text == self._recalled

    def set_draft(self, text: str) -> None:
        """Replace the prompt's text, and move the cursor to the end of the new text.

        Recent pastes in ``text`` are shown as chips.
        """
        self.load_text(self._pastes.fold_known(clean(text)))
        self.move_cursor(self.document.end)

    def replace_draft(self, text: str) -> None:
        """Replace the prompt's text with ``text``, and add the previous text to the history.

        The previous text isn't added if it is blank, or if it was taken from the history and not
        changed.
        """
        if self.full_text.strip() and not self._is_recalled:
            self._history_walk.add(self.full_text)
        self.set_draft(text)

    def clear_to_history(self) -> None:
        """Clear the prompt, and add its text to the history in the same way as `replace_draft`."""
        self.replace_draft("")
        self.reset()

    def action_stash(self) -> None:
        """Stash the draft. If another draft was stashed before, put that one into the prompt."""
        brought = self.stashed
        self.stashed = ""
        if self.full_text.strip():
            self.stashed = self.full_text
        self.reset()
        self.set_draft(brought)
        self.set_placeholders(self._placeholders)

    async def action_move_to_background(self) -> None:
        await self.screen.run_action("command('bg')")

    def use_history_of(self, project: str) -> None:
        """Let the user go back through the messages of a project, given by its directory."""
        self._history_walk.enter(project)

    def forget_stash(self) -> None:
        self.stashed = ""
        self.set_placeholders(self._placeholders)

    def rewrite_typed(self, clean: Callable[[str], str]) -> None:
        """Apply ``clean`` to all texts typed by the user that the prompt keeps.

        These are the current draft, the stashed draft, the history, the pastes and the deleted
        text.
        """
        self._history_walk.rewrite(clean)
        self._killed.rewrite(clean)
        self._pastes.rewrite(clean)
        self.stashed = clean(self.stashed)
        if clean(self.full_text) != self.full_text:
            self.set_draft(clean(self.draft))

    def restore(self, text: str) -> None:
        """Return an already sent message to the prompt, above the draft if there is one.

        If the prompt contains only a message that was returned earlier and not edited since, the
        new message replaces it. If there was no draft, and the user types ``/`` at the end of the
        returned message before editing it, the command replaces the message.
        """
        draft = ""
        if self.text != self._restored:
            draft = self.draft
        self.set_draft(f"{text}\n{draft}" if text and draft.strip() else text or draft)
        if draft.strip():
            self._restored = ""
        else:
            self._restored = self.text

    def withdraw(self, earlier: str = "") -> None:
        """Remove the text that `restore` put into the prompt, unless the user has edited it.

        If ``earlier`` isn't empty, it becomes the prompt's text instead, even if the prompt was
        already empty. Any other text in the prompt stays.
        """
        untouched = self.text in ("", self._restored)
        if untouched and earlier:
            self.restore(earlier)
            return
        self._restored = ""
        if untouched:
            self.reset()

    def resume_typing(self, text: str) -> None:
        """Focus the prompt and insert text that was typed while another widget had the focus."""
        self.last_typed = self._clock()
        self.insert(clean(text))
        # Move the focus immediately, because more keys may follow in the same burst of input.
        self.screen.set_focus(self)

    def reset(self) -> None:
        """Clear the text and the pastes, stop browsing the history, and reset the vi mode."""
        self._vi.reset()
        self._show_vi()
        self._pastes.clear()
        self._history_walk.reset()
        self.load_text("")

    # -- sending

    def action_send(self, follow_up: bool = False) -> None:  # noqa: FBT001, FBT002 - called by Textual
        """Post `Sent` and clear the prompt, or post `SentNothing` if the text is blank.

        ``follow_up`` says that the message should wait until the agent has finished. If it is
        False, Enter may instead insert a completion (see `_take_completion`) or replace a backslash
        with a line break.
        """
        if not follow_up:
            self._update_completion()
            if self._popup.display and self._take_completion():
                return
            if self._break_after_backslash():
                return
        text = self.full_text
        if not text.strip():
            self.post_message(self.SentNothing())
            return
        self._popup.follow(None)
        self._history_walk.add(text)
        self.reset()
        self.post_message(self.Sent(text, follow_up))

    def _break_after_backslash(self) -> bool:
        """If there is a backslash before the cursor, replace it with a line break and return True.

        In a shell command, the backslash is kept before the line break. Returns False if there is
        no backslash, or if text is selected. This is for terminals that can't distinguish
        Shift+Enter from Enter.
        """
        row, column = self.cursor_location
        if not self.selection.is_empty or not self.document.get_line(row)[:column].endswith("\\"):
            return False
        if not self.shell:
            self.delete((row, column - 1), (row, column))
        self.action_newline()
        return True

    def action_newline(self) -> None:
        self.last_typed = self._clock()
        self.insert("\n")

    def action_delete_or_quit(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.QuitAsked())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "complete":
            return self.shell or (self._popup.display and self._popup.is_completing)
        if action == "close_completion":
            return self._popup.display
        if action == "send" and parameters:
            return self.running
        return super().check_action(action, parameters)

    # -- vi

    def watch_vim(self) -> None:
        self._vi.reset()
        self._show_vi()

    def _show_vi(self) -> None:
        mode = self._vi.mode
        pending = self._vi.pending
        if self.vim:
            self.border_subtitle = f"-- {mode.upper()} -- {pending}".rstrip()
        else:
            self.border_subtitle = ""
        self.set_class(self.vim and mode is not Mode.INSERT, "-commands")

    @property
    def escape_ends_mode(self) -> bool:
        """Whether Escape leaves vi's insert mode, that is, whether this mode is active.

        Alt with a letter then counts as Escape and the letter, because terminals send the same
        bytes for both.
        """
        return self.vim and self._vi.mode is Mode.INSERT

    def _press_vi(self, event: events.Key) -> bool:
        """Handle a key while vi keys are enabled.

        Return False if the prompt should handle it instead.
        """
        writes = self._vi.mode is Mode.INSERT
        if writes and (event.key != "escape" or self._popup.display):
            return False
        if not self.text and event.character in {"/", ":", "!", "@", "#"} and not self._vi.pending:
            self._vi.reset()
            self.insert("/" if event.character == ":" else event.character)
            self._show_vi()
            return True
        if event.is_printable and event.character is not None:
            key = event.character
        else:
            key = event.key
        step = self._vi.press(key, self.text, self._offset(self.cursor_location))
        if step is None:
            return False
        match step.wants:
            case "undo" | "redo":
                (self.undo if step.wants == "undo" else self.redo)()
                step = Step(self.text, clamped(self.text, self._offset(self.cursor_location)))
            case "older" | "newer":
                self._recall(
                    self._history_walk.older(self.full_text)
                    if step.wants == "older"
                    else self._history_walk.newer()
                )
                step = Step(self.text, clamped(self.text, len(self.text)))
            case _:
                self._edit_to(step.text)
        self._vi_at = step.at
        self._select(step)
        self._show_vi()
        return True

    def _edit_to(self, text: str) -> None:
        """Change the whole text to ``text`` in one edit, so that one undo reverts the change."""
        now = self.text
        if text == now:
            return
        most = min(len(now), len(text))
        same = next((place for place in range(most) if now[place] != text[place]), most)
        tail = most - same
        for place in range(most - same):
            if now[-1 - place] != text[-1 - place]:
                tail = place
                break
        self.history.checkpoint()
        inserted = text[same : len(text) - tail]
        start = self._location(same)
        end = self._location(len(now) - tail)
        self.replace(inserted, start, end, maintain_selection_offset=False)
        self.history.checkpoint()

    def _select(self, step: Step) -> None:
        if step.selected is None:
            self.move_cursor(self._location(step.at))
        else:
            start, end = (self._location(place) for place in step.selected)
            if step.at > step.selected[0]:
                self.selection = Selection(start, end)
            else:
                self.selection = Selection(end, start)

    def _offset(self, location: tuple[int, int]) -> int:
        if self._vi.mode in {Mode.VISUAL, Mode.LINES}:
            return self._vi_at
        row, column = location
        return sum(len(line) + 1 for line in self.document.lines[:row]) + column

    def _location(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        return before.count("\n"), offset - (before.rfind("\n") + 1)

    # -- keys

    async def _on_key(self, event: events.Key) -> None:
        self.last_typed = self._clock()
        chord = self._begins_chord or event.key == CHORD
        if (chord and await self._press_chord(event.key)) or (self.vim and self._press_vi(event)):
            event.stop()
            event.prevent_default()
            return
        # Don't use a priority binding for these keys: it would run before earlier keys that are
        # still queued.
        act = {"enter": self.action_send, "shift+\r": self.action_newline}.get(event.key)
        if act is not None:
            act()
        elif event.is_printable or not await self._run_own(event.key):
            if event.character == "/":
                # The prompt contains a message that was returned to it and not edited. The command
                # replaces this message, which stays in the history.
                if (
                    self._restored
                    and self.text == self._restored
                    and self.cursor_location == self.document.end
                ):
                    self._history_walk.add(self.full_text)
                    self.load_text("")
                self._restored = ""
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()

    async def _press_chord(self, key: str) -> bool:
        """Handle a key that may belong to a key sequence. Return True if it does.

        All key sequences begin with the key `CHORD`. While text is selected, `CHORD` cuts the text
        instead.
        """
        begun = self._begins_chord
        self._begins_chord = key == CHORD and self.selection.is_empty
        if begun and await self._run_own(f"{CHORD} {key}"):
            self._begins_chord = False
            return True
        return self._begins_chord

    async def _run_own(self, key: str) -> bool:
        """Run the action that the prompt binds to a key. Return False if there is none.

        Waits until the action has finished, so that the next key isn't handled before that.
        """
        for binding in self._keys.get(key, ()):
            namespace, action, parameters = parse(binding.action)
            if " " not in key and (namespace or binding.priority):
                return False
            if self.check_action(action, parameters) and await self.app.run_action(
                binding.action, self
            ):
                return True
        return False

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.last_typed = self._clock()
        text = clean(event.text)
        if not text:
            # When the clipboard contains an image, terminals send an empty paste.
            self.action_paste()
            return
        if self.shell:
            files = None
        else:
            files = dropped_files(text)
        if files:
            text = f"{self._space_before()}{files}"
        elif is_large(text):
            text = self._pastes.fold(text)
        if result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)
        self.focus()

    def action_paste(self) -> None:
        self.post_message(self.PasteAsked())

    def insert_image(self, name: str) -> None:
        """Insert the mention ``@name`` of a pasted image as a chip.

        The chip can be deleted with a single Backspace.
        """
        self._pastes[f"@{name}"] = f"@{name}"
        mention = f"{self._space_before()}@{name} "
        if result := self._replace_via_keyboard(mention, *self.selection):
            self.move_cursor(result.end_location)
        self.focus()

    def _space_before(self) -> str:
        """Return a space if a mention inserted at the cursor needs one before it, otherwise ""."""
        row, column = min(self.selection)
        before = self.document.get_line(row)[:column]
        if before and not before[-1].isspace():
            return " "
        return ""

    def get_cursor_line_start_location(self, smart_home: bool = False) -> tuple[int, int]:  # noqa: ARG002, FBT001, FBT002 - as inherited
        """Return the start of the line that contains the cursor, ignoring soft wrapping."""
        return self.cursor_location[0], 0

    def get_cursor_line_end_location(self) -> tuple[int, int]:
        """Return the end of the line that contains the cursor, ignoring soft wrapping."""
        row = self.cursor_location[0]
        return row, len(self.document.get_line(row))

    def action_delete_left(self) -> None:
        if not self._delete_chip(before=True):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        if not self._delete_chip(before=False):
            super().action_delete_right()

    def _delete_via_keyboard(
        self, start: tuple[int, int], end: tuple[int, int]
    ) -> EditResult | None:
        result = super()._delete_via_keyboard(start, end)
        if result is not None:
            self._deleted = result.replaced_text
        return result

    def action_delete_word_left(self) -> None:
        self._kill(super().action_delete_word_left, forward=False)

    def action_delete_word_right(self) -> None:
        self._kill(super().action_delete_word_right, forward=True)

    def action_delete_to_start_of_line(self) -> None:
        self._kill(super().action_delete_to_start_of_line, forward=False)

    def action_delete_to_end_of_line(self) -> None:
        self._kill(super().action_delete_to_end_of_line, forward=True)

    def action_delete_line(self) -> None:
        self._kill(super().action_delete_line, forward=True)

    def _kill(self, delete: Callable[[], None], *, forward: bool) -> None:
        """Call ``delete``, and keep the text that it deletes so that `action_yank` can insert it.

        ``forward`` says whether ``delete`` removes text after the cursor. If the deleted text
        contains chips, the pasted text that they represent is kept instead.
        """
        before = (self.text, self.cursor_location)
        self._deleted = ""
        delete()
        after = (self.text, self.cursor_location)
        killed = self._pastes.expand(self._deleted)
        self._killed.add(killed, forward=forward, before=before, after=after)

    def action_yank(self) -> None:
        """Insert the text that was last deleted by word or line. It replaces the selection."""
        text = self._killed.text
        if is_large(text):
            text = self._pastes.fold(text)
        if text and (result := self._replace_via_keyboard(text, *self.selection)):
            self.move_cursor(result.end_location)

    def _delete_chip(self, *, before: bool) -> bool:
        """Delete the chip directly before the cursor, or directly after it if ``before`` is False.

        If there is no such chip, or if text is selected, deletes nothing and returns False.
        """
        row, column = self.cursor_location
        for span in (
            self._pastes.chips(self.document.get_line(row)) if self.selection.is_empty else ()
        ):
            if span[before] == column:
                self.delete((row, span[0]), (row, span[1]))
                return True
        return False

    def action_cursor_up(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - as inherited
        """Move to the previous completion or up in the text.

        In the first row, show an older message. If the prompt is empty and a message is queued,
        that message is moved from the queue to the prompt. Otherwise the queue would still contain
        the message, and the user might send it twice.
        """
        if self._popup.display and not select:
            self._popup.move(-1)
        elif not select and self.navigator.is_first_wrapped_line(self.cursor_location):
            if self.full_text or not self._take_back():
                self._recall(self._history_walk.older(self.full_text))
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - as inherited
        """Move to the next completion or down in the text.

        If the cursor is in the last row, show the next newer message of the history.
        """
        if self._popup.display and not select:
            self._popup.move(1)
        elif not select and self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(self._history_walk.newer())
        else:
            super().action_cursor_down(select)

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.set_draft(text)
            self._recalled = self.text

    # -- completion

    @on(TextArea.Changed)
    def _text_changed(self) -> None:
        if self._history_walk.walking and self.text != self._recalled:
            self._history_walk.reset()
        self.shell = self.text.startswith("!")
        if self.suggestion or self.text.startswith("/"):
            self._show_argument()

    @on(TextArea.SelectionChanged)
    def _cursor_moved(self, message: TextArea.SelectionChanged) -> None:
        message.stop()
        row, column = self.cursor_location
        if self.suggestion:
            self._show_argument()
        # Most lines contain no character that starts a completion. Don't search them further.
        if self._popup.token is not None or not SIGNS.isdisjoint(self.document.lines[row][:column]):
            self._popup.follow(self._token())

    def _token(self) -> Token | None:
        row, column = self.cursor_location
        writes = self._vi.mode is Mode.INSERT
        if not writes or not self.selection.is_empty or self._is_recalled:
            return None
        if not self.shell:
            return token_at(self.document.lines, row, column)
        # In a shell command, completion starts only with Tab.
        asked = self._popup.token
        path = path_at(self.document.lines, row, column)
        if asked is None or path is None or (asked.row, asked.start) != (path.row, path.start):
            return None
        return path

    def _update_completion(self) -> None:
        """Update the completion list if it is out of date.

        This happens when a key is handled before Textual has reported the changes made by earlier
        keys. If the word at the cursor is a command, the list is updated. Otherwise, the list is
        closed.
        """
        choice = self._popup.choice
        token = self._token()
        if choice is not None and choice[0] != token:
            # Don't search for files here, because that takes time. The files listed so far matched
            # an older text, so the list is closed.
            self._popup.follow(token if token is not None and token.kind == "command" else None)

    def action_complete(self) -> None:
        """Insert the highlighted completion.

        If a shell command has no listed completions, list the files that match.
        """
        self._update_completion()
        if self._popup.choice is not None:
            self.insert_choice()
        elif self.shell and (path := path_at(self.document.lines, *self.cursor_location)):
            self._popup.complete(path)

    def _show_argument(self) -> None:
        """Show a dimmed hint about a command's argument until the user types the argument."""
        hint = ""
        typed = _COMMAND.fullmatch(self.text)
        if typed is not None and self.cursor_location == self.document.end:
            hint = self._popup.argument_of(typed["name"])
            if hint and not typed["space"]:
                hint = f" {hint}"
        self.suggestion = hint

    def action_cursor_right(self, select: bool = False) -> None:  # noqa: FBT001, FBT002 - as inherited
        """Move the cursor to the right.

        In Textual's text area, this action can also insert the dimmed hint. Here, it never does.
        """
        self.suggestion = ""
        super().action_cursor_right(select)
        self._show_argument()

    def action_close_completion(self) -> None:
        """Close the completion list.

        If it lists the key bindings, also remove the ``?`` that opened the list.
        """
        token = self._popup.token
        self._popup.dismiss()
        if token is not None and token.kind == "keys":
            self.clear()

    def insert_choice(self) -> None:
        if (choice := self._popup.choice) is not None:
            self._insert(*choice)

    def _insert(self, token: Token, candidate: Candidate) -> None:
        self._popup.follow(None)
        self.replace(
            candidate.insert,
            (token.row, token.start),
            (token.row, token.end),
            maintain_selection_offset=False,
        )

    def _take_completion(self) -> bool:
        """Insert the highlighted completion when the user presses Enter.

        Return False if the text should be sent instead.

        If the word that the user typed only resembles a command, that command is inserted but not
        sent. Otherwise, typing ``/stop`` could run ``/mode``.
        """
        choice = self._popup.choice
        if choice is None:
            return False
        token, candidate = choice
        typed = self.document.get_line(token.row)[token.start : token.end]
        if token.kind != "command" and not self._popup.has_moved:
            # A complete name or number is meant literally, even if longer ones begin with the same
            # letters.
            self._popup.follow(None)
            if candidate.insert.rstrip() == typed or (
                token.kind == "entry" and token.query.isdecimal()
            ):
                return False
        is_chosen = candidate.is_meant or self._popup.has_moved
        self._insert(token, candidate)
        return token.kind != "command" or candidate.needs_argument or not is_chosen

    # -- external editor

    def action_edit_in_editor(self) -> None:
        # Don't wait for the editor here, because no key would be handled until the editor is
        # closed.
        self.call_later(self._edit_in_editor)

    async def _edit_in_editor(self) -> None:
        before = self.full_text
        try:
            text = await edit_in_editor(self.app, self.full_text, "prompt.md")
        except EditorError as error:
            self.post_message(self.EditorFailed(str(error)))
            return
        if text is None:
            return
        if self.full_text == before:
            self.set_draft(text)
        else:
            # Meanwhile, a message was returned to the prompt. Replacing the draft adds that message
            # to the history.
            self.replace_draft(text)
