"""Blocks under keys and mouse: focus, folding, copying, selecting, and asking the app to act."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset
from textual.selection import Selection

from tui_agent.ui.widgets.transcript import messages
from tui_agent.ui.widgets.transcript.blocks import Block, Fold
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.groups import GroupBlock
from tui_agent.ui.widgets.transcript.model import Position, Row
from tui_agent.ui.widgets.transcript.paint import ACTION, LINK, named_in, style_at, text_index_at
from tui_agent.ui.widgets.transcript.source import LIVE
from tui_agent.ui.widgets.transcript.viewport import Viewport, row_id, word_at

OPENED_ROWS = 6
"""Rows of a block that are seen at least after it was opened."""


class BlockPane(Viewport):
    """A viewport whose blocks can be used. Posts messages of :mod:`.messages`; does nothing to a session itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "up", show=False, id="transcript.up"),
        Binding("down", "move(1)", "down", show=False, id="transcript.down"),
        Binding("pageup", "page(-1)", "page up", show=False, id="transcript.page_up"),
        Binding("pagedown", "page(1)", "page down", show=False, id="transcript.page_down"),
        Binding("home", "top", "start", show=False, id="transcript.top"),
        Binding("end", "bottom", "end", show=False, id="transcript.bottom"),
        Binding("j,ctrl+down", "focus_block(1)", "next block", show=False, id="transcript.next_block"),
        Binding("k,ctrl+up", "focus_block(-1)", "previous block", show=False, id="transcript.previous_block"),
        Binding("n", "focus_message(1)", "next message", show=False, id="transcript.next_message"),
        Binding("N", "focus_message(-1)", "previous message", show=False, id="transcript.previous_message"),
        Binding("enter,space", "toggle_block", "fold", id="transcript.toggle"),
        Binding("y", "copy_block", "copy", id="transcript.copy"),
        Binding("o", "request('enter')", "enter session", id="transcript.enter"),
        Binding("o", "request('open')", "open full", id="transcript.open"),
        Binding("r", "request('retry')", "retry", id="transcript.retry"),
        Binding("u", "request('undo')", "undo", id="transcript.undo"),
        Binding("b", "request('restore')", "bring back", id="transcript.restore"),
        Binding("s", "request('compact')", "summarise up to here", id="transcript.compact"),
        Binding("g", "request('jump')", "go to", id="transcript.jump"),
        Binding("e", "request('edit')", "edit", id="transcript.edit"),
    ]

    # -- keys

    def action_move(self, lines: int) -> None:
        self.move_by(lines)

    def action_page(self, pages: int) -> None:
        self.move_by(pages * max(self.page - 1, 1))

    def action_top(self) -> None:
        self.scroll_to_position(Position(0))

    def action_bottom(self) -> None:
        self.scroll_to_position(Position(len(self.model)), follow=True)

    def action_focus_block(self, step: int) -> None:
        target = self._neighbour(step)
        if target is not None:
            self._focus(*target)

    def action_focus_message(self, step: int) -> None:
        focused = self._focused_on_screen()
        start = focused[0] if focused else self.top.index
        place = start + step
        while 0 <= place < len(self.model):
            if self.model.kinds[place] == "user" and self.model.item(place).blocks:
                self._focus(place, self.model.item(place).blocks[0], at_top=True)
                return
            place += step

    def action_toggle_block(self) -> None:
        target = self._target()
        if target is not None:
            self.fold_or_unfold(*target)

    def action_copy_block(self) -> None:
        target = self._target()
        if target is not None:
            self.post_message(messages.CopyRequested(target[1].copy_text()))

    def action_request(self, action: str) -> None:
        target = self._target()
        if target is not None:
            self._request(*target, action)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "request":
            target = self._focused_on_screen()
            if target is None:
                return False
            if parameters[0] == "compact":
                return True
            return parameters[0] in target[1].actions or (parameters[0] == "open" and isinstance(target[1], CardBlock))
        return True

    def _target(self) -> tuple[int, Block] | None:
        """Return the focused block; without one, the last block on screen."""
        target = self._focused_on_screen()
        if target is None:
            rows = reversed(self.visible_rows())
            row = next((row for row in rows if row.block is not None and row.block.focusable), None)
            if row is not None and row.block is not None:
                self._focus(row.index, row.block, scroll=False)
                target = row.index, row.block
        return target

    def _focused_on_screen(self) -> tuple[int, Block] | None:
        """Return the focused block while the user can see some of it: keys go where the eyes are."""
        target = self.focused_target()
        seen = target is not None and any(row.block is target[1] for row in self.visible_rows())
        return target if seen else None

    def _neighbour(self, step: int) -> tuple[int, Block] | None:
        current = self._focused_on_screen()
        if current is None:
            rows = [row for row in self.visible_rows() if row.block is not None and row.block.focusable]
            if not rows:
                return None
            row = rows[0] if step > 0 else rows[-1]
            return (row.index, row.block) if row.block is not None else None
        index, block = current
        blocks = self.model.item(index).blocks
        place = blocks.index(block) + step
        while True:
            while 0 <= place < len(blocks):
                if blocks[place].focusable and not blocks[place].hidden:
                    return index, blocks[place]
                place += step
            index += step
            if not 0 <= index < len(self.model):
                return None
            blocks = self.model.item(index).blocks if self.model.ensure(index) else []
            place = 0 if step > 0 else len(blocks) - 1

    def _focus(self, index: int, block: Block, *, at_top: bool = False, scroll: bool = True) -> None:
        self.focused_block = index, block.key
        self._tell_focus()
        if scroll:
            self._bring_into_view(index, block, at_top=at_top)
        self.refresh()
        self.refresh_bindings()

    def on_focus(self) -> None:
        self._tell_focus()

    def on_blur(self) -> None:
        self.post_message(messages.BlockFocused(None))

    def _tell_focus(self) -> None:
        target = self.focused_target()
        if target is None:
            return
        index, block = target
        entry_id = block.entry[0] if block.entry is not None else self.model.ids[index]
        is_entry = block.is_told and (block.entry is not None or self.model.kinds[index] != LIVE)
        self.post_message(messages.BlockFocused(entry_id if is_entry else None))

    def _bring_into_view(self, index: int, block: Block, *, at_top: bool) -> None:
        self.model.ensure(index)
        item = self.model.item(index)
        start = item.start_of(block)
        rows = [row for row in self.visible_rows() if row.index == index and row.block is block]
        height = len(block.lines(self.model.width))
        if not at_top and len(rows) >= min(height, self.page):
            return
        above = (index, start) < (self.top.index, self.top.line)
        if at_top or above or height >= self.page:
            self.scroll_to_position(Position(index, start))
        else:
            self.scroll_to_position(self._up(Position(index, start + height), self.page))

    # -- blocks

    def fold_or_unfold(self, index: int, block: Block, fold: Fold | None = None) -> None:
        """Fold a block; its first line stays where it is, if it is on screen."""
        if not block.foldable:
            return
        if fold is None:
            block.cycle()
        else:
            block.choose_fold(fold)
        self.model.folds[self.model.ids[index], block.key] = block.fold
        if isinstance(block, GroupBlock):
            self.model.refold(block)
        self._keep_in_place(index, block)
        if block.fold is not Fold.CLOSED:
            self._show_some_of(index, block)

    def _show_some_of(self, index: int, block: Block) -> None:
        """Bring a block into view that was opened at the bottom, where nothing of its body would be seen."""
        if isinstance(block, GroupBlock):
            last = block.members[min(OPENED_ROWS, len(block.members)) - 1]
            place = next(at for at in sorted(block.places) if last in self.model.item(at).blocks)
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
        if self.following and shown and self.model.total > self.page:
            self.following = False
            self.top = self._up(Position(index, item.start_of(block)), first or 0)
            self.settle()
            self.following = self._at_end()
        elif not shown:
            self.scroll_to_position(Position(index, start))
        else:
            self.scroll_to_position(self.top)

    def _request(self, index: int, block: Block, action: str) -> None:
        action, _, named = action.partition(":")
        entry_id = int(named) if named else block.entry[0] if block.entry is not None else self.model.ids[index]
        call_id = block.call_id if isinstance(block, CardBlock) else ""
        self.post_message(messages.ActionRequested(action, entry_id, call_id))

    # -- mouse

    def on_click(self, event: events.Click) -> None:
        """Fold, act, focus; a second click selects a word, a third one a block. A drag has selected text instead."""
        event.prevent_default()
        offset = event.get_content_offset(self)
        row = self.row_at(offset.y) if offset is not None else None
        if offset is None or row is None or row.block is None:
            return
        if event.chain > 1:
            self._select_at(row, offset, whole=event.chain > 2)
        elif (selection := self.text_selection) is None or selection.start == selection.end:
            self._click(row, offset)

    def _click(self, row: Row, offset: Offset) -> None:
        if row.block is None or not row.block.focusable:
            return
        self._focus(row.index, row.block, scroll=False)
        style = style_at(row.line, offset.x, self.scrollable_content_region.width)
        action = named_in(style, ACTION)
        if href := named_in(style, LINK):
            self.post_message(messages.LinkClicked(href))
        elif action == "toggle":
            self.fold_or_unfold(row.index, row.block)
        elif action == "more":
            self.fold_or_unfold(row.index, row.block, Fold.FULL)
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
            span = word_at(row.line.text, text_index_at(row.line, offset.x))
            if span is None:
                return
            number = row_id(row.index, row.item_line)
            selection = Selection(Offset(span[0], number), Offset(span[1], number))
        self.screen.selections = {self: selection}
