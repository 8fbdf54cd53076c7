"""The keys and the mouse in the conversation: scrolling, focusing, folding and selecting blocks.

To copy text, open a link or run any other action, the pane posts a message, which the app or the
screen handles.
"""

from textual import events
from textual.binding import Binding
from textual.geometry import Offset
from textual.selection import Selection

from tui_agent.ui.bindings import hidden
from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.blocks import Block, Fold, UserBlock
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.code import CodeLine
from tui_agent.ui.widgets.transcript.groups import GroupBlock
from tui_agent.ui.widgets.transcript.model import Position, Row
from tui_agent.ui.widgets.transcript.paint import (
    ACTION,
    LINK,
    style_at,
    text_index_at,
    value_in_style,
)
from tui_agent.ui.widgets.transcript.source import LIVE
from tui_agent.ui.widgets.transcript.turns import TurnBlock
from tui_agent.ui.widgets.transcript.viewport import WORD, Viewport, row_id

OPENED_ROWS = 6
"""Minimum number of lines that are visible after the user has opened a block.

If the block is shorter, fewer lines are visible.
"""


class BlockPane(Viewport):
    """Shows blocks that the user can focus, fold and act on.

    When the user acts on a block, the pane posts one of the messages in messages.py. It never
    changes a session itself.
    """

    BINDINGS = [
        hidden("up", "move(-1)", "up", id="transcript.up"),
        hidden("down", "move(1)", "down", id="transcript.down"),
        hidden("pageup", "move(0, -1)", "page up", id="transcript.page_up"),
        hidden("pagedown", "move(0, 1)", "page down", id="transcript.page_down"),
        hidden("home", "go_to('home')", "start", id="transcript.top"),
        hidden("end", "go_to('end')", "end", id="transcript.bottom"),
        hidden("j,ctrl+down", "focus_block(1)", "next block", id="transcript.next_block"),
        hidden("k,ctrl+up", "focus_block(-1)", "previous block", id="transcript.previous_block"),
        hidden("n", "focus_message(1)", "next message", id="transcript.next_message"),
        hidden("N", "focus_message(-1)", "previous message", id="transcript.previous_message"),
        Binding("enter,space", "request('toggle')", "fold", id="transcript.toggle"),
        Binding("y", "request('copy')", "copy", id="transcript.copy"),
        Binding("o", "request('enter')", "enter session", id="transcript.enter"),
        Binding("o", "request('open')", "open in full", id="transcript.open"),
        Binding("r", "request('retry')", "retry", id="transcript.retry"),
        Binding("u", "request('undo')", "undo", id="transcript.undo"),
        Binding("b", "request('restore')", "bring back", id="transcript.restore"),
        Binding("s", "request('compact')", "summarise up to here", id="transcript.compact"),
        Binding("g", "request('jump')", "go to", id="transcript.jump"),
        Binding("e", "request('edit')", "edit", id="transcript.edit"),
    ]

    # -- keys

    def action_go_to(self, where: str) -> None:
        """Scroll to the start (``home``) or to the end (``end``) of the conversation.

        At the end, the view scrolls along when new text is added.
        """
        at_end = where == "end"
        self.scroll_to_position(Position(len(self.model) if at_end else 0), follow=at_end)

    def action_focus_block(self, step: int) -> None:
        """Focus the next block (1) or the previous one (-1).

        If no visible block has the focus, focus the first (1) or last (-1) visible block.
        """
        current = self._focused_on_screen()
        if current is None:
            rows = self.visible_rows()
            seen = []
            for row in rows:
                if row.block is not None and row.block.focusable:
                    seen.append((row.index, row.block))
            if seen:
                self._focus(*seen[0 if step > 0 else -1])
            return
        index, block = current
        blocks = self.model.item(index).blocks
        place = blocks.index(block) + step
        while True:
            while 0 <= place < len(blocks):
                if blocks[place].focusable and not blocks[place].hidden:
                    self._focus(index, blocks[place])
                    return
                place += step
            index += step
            if not 0 <= index < len(self.model):
                return
            if self.model.measured_height(index):
                blocks = self.model.item(index).blocks
            else:
                blocks = []
            if step > 0:
                place = 0
            else:
                place = len(blocks) - 1

    def action_focus_message(self, step: int) -> None:
        """Focus the next (1) or previous (-1) message of the user or the program and show it."""
        focused = self._focused_on_screen()
        if focused:
            start = focused[0]
        else:
            start = self.top.index
        place = start + step
        while 0 <= place < len(self.model):
            if self.model.kinds[place] == "user" and self.model.item(place).blocks:
                self._focus(place, self.model.item(place).blocks[0], at_top=True)
                return
            place += step

    def show_message(self, step: int) -> None:
        """Scroll to the user's next message (1) or previous message (-1).

        If there is none, scroll to the end or the start of the conversation.
        """
        place = self.top.index
        here = (self.top.index, self.top.line)
        while 0 <= place < len(self.model):
            if self.model.kinds[place] == "user":
                blocks = self.model.item(place).blocks
            else:
                blocks = []
            message = next((block for block in blocks if isinstance(block, UserBlock)), None)
            if message is not None:
                self.model.measured_height(place)
                line = self.model.item(place).start_of(message)
                if ((place, line) > here) is (step > 0) and (place, line) != here:
                    self.scroll_to_position(Position(place, line))
                    return
            place += step
        self.action_go_to("home" if step < 0 else "end")

    def action_request(self, action: str) -> None:
        """Run an action on the focused block.

        If no visible block has the focus, the last visible block is focused first.
        """
        target = self._target()
        if target is not None:
            self._request(*target, action)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "request":
            name = str(parameters[0])
            if name == "copy":
                return True
            target = self._focused_on_screen()
            if name == "toggle":
                return self._can_fold(target)
            if target is None:
                return False
            return self._offers(*target, name)
        return True

    def _can_fold(self, target: tuple[int, Block] | None) -> bool | None:
        """Return True if the key for folding can fold the target block.

        Returns None, not False, if the key does nothing: after False, the key would be typed into
        the prompt. If there is no target block, the key focuses a block and folds it.
        """
        if target is None or target[1].foldable:
            return True
        return None

    def _offers(self, index: int, block: Block, action: str) -> bool:
        """Return True if the user can choose the action on the block."""
        match action:
            case "compact":
                return self._shows_entry(index, block)
            case "open":
                return block.is_openable and self._shows_entry(index, block)
            case _:
                return action in block.actions

    def _shows_entry(self, index: int, block: Block) -> bool:
        """Return True if the block shows a stored entry, and not something in progress."""
        return block.entry is not None or self.model.kinds[index] != LIVE

    def _target(self) -> tuple[int, Block] | None:
        """Return the index of the focused block's item, and the block.

        If the focused block isn't visible, the last visible block is focused first. Returns None if
        no visible block can be focused.
        """
        target = self._focused_on_screen()
        if target is None:
            rows = reversed(self.visible_rows())
            for row in rows:
                if row.block is not None and row.block.focusable:
                    self._focus(row.index, row.block, scroll=False)
                    return row.index, row.block
        return target

    def _focused_on_screen(self) -> tuple[int, Block] | None:
        """Return the index of the focused block's item, and the block.

        Returns None if the focused block isn't visible.
        """
        target = self.focused_target()
        seen = target is not None and any(row.block is target[1] for row in self.visible_rows())
        if seen:
            return target
        return None

    def _focus(
        self, index: int, block: Block, *, at_top: bool = False, scroll: bool = True
    ) -> None:
        self.focused_block = index, block.key
        self._post_focused()
        if scroll:
            self._bring_into_view(index, block, at_top=at_top)
        self.refresh()
        self.refresh_bindings()

    def on_blur(self) -> None:
        self.post_message(messages.BlockFocused(None))

    def on_focus(self) -> None:
        """Keep the focused block if it is visible. Otherwise, focus the last visible block."""
        if self._target() is not None:
            self._post_focused()

    def _post_focused(self) -> None:
        """Post `BlockFocused` for the focused block, if any block has the focus."""
        target = self.focused_target()
        if target is None:
            return
        index, block = target
        entry_id = None
        if block.is_sendable and self._shows_entry(index, block):
            entry_id = self.model.entry_of(index, block)
        self.post_message(messages.BlockFocused(entry_id))

    def _bring_into_view(self, index: int, block: Block, *, at_top: bool) -> None:
        self.model.measured_height(index)
        item = self.model.item(index)
        start = item.start_of(block)
        rows = []
        for row in self.visible_rows():
            if row.index == index and row.block is block:
                rows.append(row)
        height = len(block.lines(self.model.width))
        if not at_top and len(rows) >= min(height, self.page_height):
            return
        above = (index, start) < (self.top.index, self.top.line)
        if at_top or above or height >= self.page_height:
            self.scroll_to_position(Position(index, start))
        else:
            self.scroll_to_position(
                self._position_above(Position(index, start + height), self.page_height)
            )

    # -- blocks

    def fold_or_unfold(self, index: int, block: Block, fold: Fold | None = None) -> None:
        """Set the fold of a block. If ``fold`` is None, switch to the block's next fold.

        The first line of the block stays where it is on the screen. If it wasn't visible, the view
        scrolls to it. If an opened block then shows fewer than `OPENED_ROWS` lines, the view
        scrolls further.
        """
        if not block.foldable:
            return
        if fold is None:
            block.cycle()
        else:
            block.choose_fold(fold)
        self.model.folds[self.model.ids[index], block.key] = block.fold
        if isinstance(block, GroupBlock):
            self.model.refold_group(block)
        elif isinstance(block, TurnBlock):
            self.model.refold_turn(index)
        self._keep_in_place(index, block)
        if block.fold is Fold.CLOSED:
            return
        # If the block is at the bottom of the screen, too little of it may be visible, so scroll.
        if isinstance(block, GroupBlock):
            last = block.members[min(OPENED_ROWS, len(block.members)) - 1]
            place = next(
                at for at in sorted(block.item_indices) if last in self.model.item(at).blocks
            )
            self._bring_into_view(place, last, at_top=False)
            return
        seen = sum(row.block is block for row in self.visible_rows())
        if seen < min(len(block.lines(self.model.width)), OPENED_ROWS):
            self._bring_into_view(index, block, at_top=False)

    def _keep_in_place(self, index: int, block: Block) -> None:
        item = self.model.item(index)
        start = item.start_of(block)
        first = next((y for y, row in enumerate(self.visible_rows()) if row.block is block), None)
        shown = first is not None and self.visible_rows()[first].block_line == 0
        self.model.remeasure(index)
        if self.following and shown and self.model.heights.total > self.page_height:
            self.following = False
            self.top = self._position_above(Position(index, item.start_of(block)), first or 0)
            self.update_view()
            self.following = self.scroll_offset.y >= self.max_scroll_y
        elif not shown:
            self.scroll_to_position(Position(index, start))
        else:
            self.scroll_to_position(self.top)

    def _request(self, index: int, block: Block, action: str) -> None:
        """Fold or unfold a block or, for any other action, post a message.

        The name of the action may be followed by a colon and the id of the entry to act on.
        """
        match action:
            case "toggle":
                self.fold_or_unfold(index, block)
            case "more":
                self.fold_or_unfold(index, block, Fold.FULL)
            case "copy":
                self.post_message(messages.CopyRequested(block.copy_text()))
            case _:
                name, _, named = action.partition(":")
                entry_id = int(named) if named else self.model.entry_of(index, block)
                call_id = ""
                if isinstance(block, CardBlock):
                    call_id = block.call_id
                self.post_message(messages.ActionRequested(name, entry_id, call_id))

    # -- mouse

    def on_click(self, event: events.Click) -> None:
        """Focus the clicked block.

        If the click was on a link or an action, follow the link or run the action.

        A double click selects a word, and a triple click selects the block. If the user has
        selected text with the mouse, the click that ends the selection does nothing.
        """
        event.prevent_default()
        offset = event.get_content_offset(self)
        row = None
        if offset is not None:
            row = self.row_at(offset.y)
        if offset is None or row is None or row.block is None:
            return
        if event.chain > 1:
            self._select_at(row, offset, whole=event.chain > 2)
            return
        selection = self.text_selection
        if not row.block.focusable or (selection is not None and selection.start != selection.end):
            return
        self._focus(row.index, row.block, scroll=False)
        style = style_at(row.line, offset.x, self.scrollable_content_region.width)
        if href := value_in_style(style, LINK):
            self.post_message(messages.LinkClicked(href))
        elif (action := value_in_style(style, ACTION)) == "code" and isinstance(row.line, CodeLine):
            self.post_message(messages.CopyRequested(row.line.block))
        elif action:
            self._request(row.index, row.block, action)

    def _select_at(self, row: Row, offset: Offset, *, whole: bool) -> None:
        if whole and row.block is not None:
            item = self.model.item(row.index)
            start = item.start_of(row.block)
            lines = row.block.lines(self.model.width)
            end = Offset(len(lines[-1].text), row_id(row.index, start + len(lines) - 1))
            selection = Selection(Offset(0, row_id(row.index, start)), end)
        else:
            at = text_index_at(row.line, offset.x)
            words = (found.span() for found in WORD.finditer(row.line.text))
            span = next(((start, end) for start, end in words if start <= at < end), None)
            if span is None:
                return
            number = row_id(row.index, row.item_line)
            selection = Selection(Offset(span[0], number), Offset(span[1], number))
        self.screen.selections = {self: selection}
