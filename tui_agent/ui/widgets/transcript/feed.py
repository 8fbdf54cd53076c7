"""Applies the agent's events to a transcript's model: streamed text, running calls, new entries.

An item is what the model contains for one entry. This module owns the items that have no entry: the
answer that is being streamed, the user's running commands, the activity line and notices. Streamed
pieces of text are collected until `LiveFeed.flush` is called, and then parsed together. The
transcript decides when to call it, and measures the items that have changed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from time import perf_counter

from tui_agent.agent.events import (
    AgentEvent,
    AnswerDelta,
    AnswerWasReasoning,
    ReasoningProgress,
    RequestStarted,
    RetryScheduled,
    RunEnded,
    RunStarted,
    ToolCallProgress,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    ModeChangeEntry,
    ShellEntry,
    ToolCallPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.ui.widgets.transcript.blocks import (
    ActivityBlock,
    AnswerBlock,
    Block,
    CutOffBlock,
    EndingBlock,
    MarkerBlock,
    ReasoningBlock,
)
from tui_agent.ui.widgets.transcript.build import (
    BuildContext,
    blocks_of,
    compaction_note,
    mark_problems,
)
from tui_agent.ui.widgets.transcript.cards import CardBlock
from tui_agent.ui.widgets.transcript.document import MarkdownDocument
from tui_agent.ui.widgets.transcript.items import Item
from tui_agent.ui.widgets.transcript.model import TranscriptModel
from tui_agent.ui.widgets.transcript.source import ACTIVITY_ID, LIVE, LIVE_ID


class LiveFeed:
    """Applies events to a transcript's model, and records which items they change.

    ``changed`` contains the indices of the changed items. The owner of the feed measures these
    items and clears the set.
    """

    def __init__(self, model: TranscriptModel, clock: Callable[[], float] = perf_counter) -> None:
        self._model = model
        self._clock = clock
        self._live: Item | None = None
        self._pending: list[tuple[str, str]] = []
        """The pieces of text that have been received but not shown yet, as (kind, text).

        The kind is "answer" or "reasoning".
        """
        self._pending_calls: dict[str, ToolCallProgress] = {}
        self._pending_output: dict[str, list[str]] = {}
        self._cards: dict[str, tuple[int, CardBlock]] = {}
        """The cards of calls without a result, each with the index of its item, by call id."""
        self._notice: int | None = None
        self._activity: Item | None = None
        self._shells: dict[str, Item] = {}
        """The items of the user's shell commands that have no entry yet, by call id.

        These items are below all entries.
        """
        self._shell_id = LIVE_ID
        """Id of the newest item in ``_shells``, from which the next id is made. Ids must ascend."""
        self.written = 0
        """Number of characters that the language model has written during this run."""
        self.changed: set[int] = set()

    def clear(self) -> None:
        """Forget the state of the shown items, because the model is about to load other entries."""
        self._live = self._activity = self._notice = None
        self._pending.clear()
        self._pending_calls.clear()
        self._pending_output.clear()
        self._cards.clear()
        self._shells.clear()
        self.changed.clear()

    @property
    def pending(self) -> bool:
        """Whether there are streamed pieces of text that `flush` has not shown yet."""
        return bool(self._pending or self._pending_calls or self._pending_output)

    # -- the answer being streamed

    def stream(
        self, event: AnswerDelta | ReasoningProgress | ToolCallProgress | ToolOutput
    ) -> None:
        """Collect a piece of streamed text. The next call of `flush` shows it."""
        match event:
            case AnswerDelta(text=text) | ReasoningProgress(text=text) if text:
                self.written += len(text)
                self._pending.append(
                    ("answer" if isinstance(event, AnswerDelta) else "reasoning", text)
                )
            case ToolCallProgress(call_id=call_id):
                self._pending_calls[call_id] = event
            case ToolOutput(call_id=call_id, text=text):
                if self._unfinished_card(call_id) is not None:
                    self._pending_output.setdefault(call_id, []).append(text)

    def flush(self) -> None:
        """Show the pieces of streamed text that have been collected so far."""
        for kind, deltas in groupby(self._pending, itemgetter(0)):
            self._streaming_document(kind).append("".join(text for _, text in deltas))
        self._pending.clear()
        for call in self._pending_calls.values():
            item = self._live_item()
            index = self._end - 1
            known = self._cards.get(call.call_id)
            if known is None:
                card = self._new_card(call.call_id, call.tool, call.arguments)
                item.blocks.append(card)
                self._cards[call.call_id] = index, card
            else:
                known[1].write(call.arguments)
            self.changed.add(index)
        self._pending_calls.clear()
        for call_id, texts in self._pending_output.items():
            index, card = self._cards[call_id]
            card.add_output("".join(texts))
            self.changed.add(index)
        self._pending_output.clear()

    def _streaming_document(self, kind: str) -> MarkdownDocument:
        """Return the document to which streamed text is appended.

        ``kind`` is “answer” or “reasoning”. If the last block isn't of this kind, a new block is
        added.
        """
        item = self._live_item()
        last = None
        if item.blocks:
            last = item.blocks[-1]
        self.changed.add(self._end - 1)
        if isinstance(last, AnswerBlock | ReasoningBlock) and last.kind == kind:
            last.invalidate()
            return last.document
        document = MarkdownDocument(base="text" if kind == "answer" else "reasoning")
        key = f"{kind}:{len(item.blocks)}"
        if isinstance(last, AnswerBlock | ReasoningBlock):
            last.document.finish()
            last.invalidate()
        if kind == "answer":
            item.blocks.append(AnswerBlock(key, document))
        else:
            thought = ReasoningBlock(key, document)
            self._model.apply_opened(thought)
            item.blocks.append(thought)
        return document

    def _live_item(self) -> Item:
        if self._live is None:
            self._live = Item(LIVE_ID, LIVE, [])
            self._append(self._live)
        return self._live

    def discard(self) -> None:
        """Remove the streamed answer and its cards, because the answer has not become an entry."""
        self.flush()
        if self._live is None:
            return
        for block in self._live.blocks:
            if isinstance(block, CardBlock):
                self._cards.pop(block.call_id, None)
        self._live = None
        with self._before_tail():
            self._model.remove_last()
        self.changed.discard(len(self._model))
        if self._end:
            self.changed.add(self._end - 1)

    # -- entries

    def append(self, entry: Entry) -> None:
        """Show a new entry at the end of the conversation.

        An answer replaces its streamed text. A tool result is shown in the card of its call. Any
        other entry is inserted above the answer that is being streamed.
        """
        self.flush()
        was_retried = isinstance(entry, AssistantEntry)
        if (
            entry.is_dialogue
            and (index := self._model.withdraw_offers(self._end, was_retried=was_retried))
            is not None
        ):
            self.changed.add(index)
        if isinstance(entry, AssistantEntry):
            self._append_answer(entry)
        elif isinstance(entry, ToolResultEntry) and self._attach_result(entry):
            return
        else:
            if (
                isinstance(entry, UserEntry)
                and entry.diagnostics
                and (owner := self._model.owner_of(self._end)) is not None
            ):
                mark_problems(self._model.item(owner).blocks, entry.diagnostics)
                self.changed.add(owner)
            self._append_other(entry)

    def _append_answer(self, entry: AssistantEntry) -> None:
        blocks = blocks_of(
            entry,
            BuildContext(
                live=True,
                running=self._model.running,
                shows_key_hints=self._model.shows_key_hints,
                key_of=self._model.key_of,
                size_of=self._model.size_of,
            ),
        )
        for block in blocks:
            self._model.apply_opened(block)
        live = self._live
        self._live = None
        if live is not None:
            _reuse_streamed_blocks(blocks, live.blocks)
            index = self._end - 1
            self._model.replace(index, Item(entry.id, entry.kind, blocks))
        else:
            index = self._append(Item(entry.id, entry.kind, blocks))
        for block in blocks:
            if isinstance(block, CardBlock):
                self._cards[block.call_id] = index, block
                self._model.pinned.add(index)
        self.changed.add(index)

    def _append_other(self, entry: Entry) -> None:
        context = BuildContext(size_of=self._model.size_of, load=self._model.source.load)
        if isinstance(entry, ShellEntry):
            self._remove_shell(entry.command)
        if isinstance(entry, CompactionEntry):
            item = Item(entry.id, entry.kind, [])
            index = self._insert_above_answer(item)
            place = self._model.add_rule(entry)
            if place != index:
                item.blocks.append(compaction_note(entry))
            self.changed.update({place, *self._model.forget_prunes(index)})
            return
        blocks = blocks_of(entry, context)
        if isinstance(entry, ShellEntry):
            for block in blocks:
                self._model.apply_opened(block)
        place = self._insert_above_answer(Item(entry.id, entry.kind, blocks))
        if self._model.is_hidden_mode_change(place, entry) or self._model.belongs_to_compaction(
            place, entry
        ):
            self._model.item(place).blocks.clear()
        if isinstance(entry, UserEntry):
            self.changed |= self._model.end_turn(place)
        if isinstance(entry, ModeChangeEntry):
            for at in self._model.mode_changes_before(place):
                self._model.replace(at, Item(self._model.ids[at], entry.kind, []))
                self.changed.add(at)

    def _remove_shell(self, command: str) -> None:
        """Remove the card of the user's shell command, because an entry now shows the command."""
        known = (call_id for call_id in self._shells if self._cards[call_id][1].is_shell(command))
        call_id = next(known, None)
        if call_id is not None:
            with self._before_tail():
                del self._shells[call_id], self._cards[call_id]

    def _insert_above_answer(self, item: Item) -> int:
        """Append an item, or insert it before the answer that is being streamed.

        Return its index.
        """
        with self._before_tail():
            live = None
            if self._live is not None:
                live = self._model.remove_last()
            index = self._model.append(item)
            self.changed.add(index)
            if live is not None:
                place = self._model.append(live)
                self.changed.add(place)
                for block in live.blocks:
                    if isinstance(block, CardBlock):
                        self._cards[block.call_id] = place, block
        return index

    # -- activity

    @property
    def _tail(self) -> Sequence[Item]:
        """The items that stay last: the user's running shell commands and the activity line."""
        if self._activity is None:
            return (*self._shells.values(),)
        return (*self._shells.values(), self._activity)

    @property
    def _end(self) -> int:
        return len(self._model) - len(self._tail)

    def show_activity(self, block: ActivityBlock | None) -> None:
        """Replace the activity line, which is always the last item.

        If ``block`` is None, remove the activity line.
        """
        if self._activity is not None:
            self._model.remove_last()
            self.changed.discard(len(self._model))
        self._activity = None
        if block is not None:
            self._activity = Item(ACTIVITY_ID, LIVE, [block])
            self.changed.add(self._model.append(self._activity))
        elif len(self._model):
            self.changed.add(len(self._model) - 1)

    @property
    def working(self) -> bool:
        """Whether a call or a shell command is running, or the activity line is shown."""
        return self._activity is not None or any(card.running for _, card in self._cards.values())

    @contextmanager
    def _before_tail(self) -> Iterator[None]:
        """Remove the last items during the ``with`` block, so items can be appended before them."""
        for _ in self._tail:
            self._model.remove_last()
            self.changed.discard(len(self._model))
        yield
        first = len(self._model)
        for index, call_id in enumerate(self._shells, first):
            self._cards[call_id] = index, self._cards[call_id][1]
        for item in self._tail:
            self.changed.add(self._model.append(item))

    def _append(self, item: Item) -> int:
        with self._before_tail():
            return self._model.append(item)

    def _attach_result(self, result: ToolResultEntry) -> bool:
        """Show a tool result in the card of its call. Return False if there is no such card."""
        known = self._cards.pop(result.call_id, None) or self._card_in_answer(
            result.call_id, len(self._model)
        )
        if known is None:
            return False
        index = self._insert_above_answer(Item(result.id, result.kind, []))
        # The item of a tool result has no lines of its own. The item of its call changes instead.
        self.changed.discard(index)
        owner, card = known
        if (outdated := self._model.replace_todo_list(result)) is not None:
            self.changed.add(outdated)
        card.set_result(result)
        item = self._model.item(owner)
        item.results = (*item.results, index)
        self.changed.add(owner)
        if not any(place == owner for place, _ in self._cards.values()):
            self._model.pinned.discard(owner)
        return True

    def _card_in_answer(self, call_id: str, index: int) -> tuple[int, CardBlock] | None:
        owner = self._model.owner_of(index)
        if owner is None:
            return None
        block = self._model.item(owner).block(f"call:{call_id}")
        if isinstance(block, CardBlock):
            return (owner, block)
        return None

    # -- running calls

    def apply(self, event: AgentEvent) -> None:
        """Show an event about the agent's run or its tool calls.

        Pieces of streamed text and new entries are passed to `stream` and `append` instead.
        """
        match event:
            case RunStarted():
                self._model.running = True
                self.written = 0
            case RequestStarted():
                self.discard()
            case AnswerWasReasoning(text=text):
                self.discard()
                self.stream(ReasoningProgress(text))
                self.flush()
            case RetryScheduled(kept=int(kept)):
                # The text of the failed attempt stays visible in a muted style, although its entry
                # isn't on the path to the leaf.
                self.flush()
                said = []
                for block in self._live.blocks if self._live is not None else ():
                    if isinstance(block, AnswerBlock):
                        said.append(block.document.source)
                self.discard()
                self._add_local([CutOffBlock(kept, "\n\n".join(said))])
            case ToolStarted():
                index, card = self._starting_card(event.call_id, event.tool)
                card.start(event.title, event.arguments, self._clock())
                self._model.pinned.add(index)
                self.changed.add(index)
            case ToolFinished():
                self.flush()
                self._finish(event)
            case RunEnded():
                self._model.running = False
                self.run_ended()
            case _:
                pass

    def _finish(self, event: ToolFinished) -> None:
        known = self._unfinished_card(event.call_id)
        if known is None:
            return
        index, card = known
        if event.status in set(ToolStatus):
            status = ToolStatus(event.status)
        else:
            status = ToolStatus.COMPLETED
        card.finish(status, event.metadata, event.seconds)
        self.changed.add(index)

    def run_ended(self) -> None:
        """Finish the streamed text, and mark tool calls without a result as interrupted.

        If the last request failed, show its failure as an error. It was muted until now, because
        the request could still be retried.
        """
        self.flush()
        if self._live is not None:
            for block in self._live.blocks:
                if isinstance(block, AnswerBlock | ReasoningBlock):
                    block.document.finish()
                    block.invalidate()
            self.changed.add(self._end - 1)
        shells = {call_id: self._cards[call_id] for call_id in self._shells}
        for call_id, (index, card) in self._cards.items():
            # Leave the user's shell commands alone, because they continue after the agent's run.
            if call_id in shells:
                continue
            card.stop()
            self.changed.add(index)
            self._model.pinned.discard(index)
        self._cards = shells
        place = self._model.owner_of(self._end)
        for block in self._model.item(place).blocks if place is not None else ():
            if isinstance(block, EndingBlock):
                block.fail()
                self.changed.add(place or 0)

    def _unfinished_card(self, call_id: str) -> tuple[int, CardBlock] | None:
        """Return the card of a call that has no result yet, with the index of its item.

        Returns None if there is no such card. Output that arrives after the result is therefore
        ignored.
        """
        known = self._cards.get(call_id) or self._card_in_answer(call_id, len(self._model))
        if known is None or known[1].has_result:
            return None
        self._cards[call_id] = known
        return known

    def _starting_card(self, call_id: str, tool: str) -> tuple[int, CardBlock]:
        """Return the card of a call that starts. If there is no card for the call yet, add one."""
        known = self._unfinished_card(call_id)
        if known is None:
            card = self._new_card(call_id, tool)
            if card.is_user_command:
                known = self._add_shell(call_id, card), card
            else:
                known = self._add_local([card]), card
            self._cards[call_id] = known
        return known

    def _new_card(self, call_id: str, tool: str, arguments: str = "") -> CardBlock:
        call = ToolCallPart(call_id=call_id, tool=tool, arguments=arguments)
        card = CardBlock(call, size_of=self._model.size_of)
        self._model.apply_opened(card)
        return card

    def _add_shell(self, call_id: str, card: CardBlock) -> int:
        """Show the card of a shell command that the user runs, below all entries.

        Return the index of its item.
        """
        self._shell_id += 1
        with self._before_tail():
            self._shells[call_id] = Item(self._shell_id, LIVE, [card])
            self._cards[call_id] = len(self._model), card
        return self._cards[call_id][0]

    def _add_local(self, blocks: list[Block]) -> int:
        """Append an item that shows no entry, and return the item's index.

        The item gets the id of the last entry, because the ids of items must ascend.
        """
        last = next((entry_id for entry_id in reversed(self._model.ids) if entry_id < LIVE_ID), 0)
        return self._insert_above_answer(Item(last, LIVE, blocks))

    # -- notices

    def notice(self, message: str) -> None:
        """Show a notice instead of the previous one. If the text is empty, show none."""
        blocks: list[Block] = []
        if message:
            blocks = [MarkerBlock("notice", message, icon="·")]
        index = self._notice
        if index is not None and index < len(self._model):
            self._model.item(index).blocks[:] = blocks
        elif message:
            index = self._add_local(blocks)
        self._notice = index if message else None
        if index is not None:
            self.changed.add(index)


def _reuse_streamed_blocks(blocks: list[Block], live: list[Block]) -> None:
    """Replace the blocks of a stored answer with the streamed blocks of the same call or text.

    The streamed blocks keep their folds and lines. Otherwise, the text would jump at the end of an
    answer.
    """
    cards = {block.key: block for block in live if isinstance(block, CardBlock)}
    texts = [block for block in live if isinstance(block, AnswerBlock | ReasoningBlock)]
    for index, block in enumerate(blocks):
        if isinstance(block, CardBlock) and (card := cards.get(block.key)) is not None:
            card.write(block.arguments)
            blocks[index] = card
        elif isinstance(block, AnswerBlock | ReasoningBlock):
            same = (text for text in texts if isinstance(text, type(block)))
            streamed = None
            for text in same:
                if text.document.source == block.document.source:
                    streamed = text
                    break
            if streamed is not None:
                streamed.document.finish()
                streamed.key = block.key
                streamed.invalidate()
                if isinstance(block, AnswerBlock) and isinstance(streamed, AnswerBlock):
                    streamed.set_key_hints(block.key_hints)
                blocks[index] = streamed
