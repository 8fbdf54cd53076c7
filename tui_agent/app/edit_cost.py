"""Computes how many tokens a context edit frees, and how many cached tokens are read again.

The module also contains the texts shown before and after such an edit. All functions are
pure, and the agent makes the edit.
"""

from collections.abc import Sequence
from typing import Literal

from tui_agent.agent.context_map import ContextBlock
from tui_agent.app.format import about_cost, plural, tokens
from tui_agent.context.budget import PLACEHOLDER_TOKENS
from tui_agent.context.view import EntryState
from tui_agent.lazy import frozen

EditAction = Literal["pin", "drop", "mask", "restore", "edit"]

FIXED = "The prompt and the tools can't be changed here; they come from files."

_OPEN = frozenset({EntryState.LIVE, EntryState.PINNED})
"""Context statuses in which the whole content of a block is sent."""
_AFTER: dict[str, EntryState] = {
    "pin": EntryState.PINNED,
    "drop": EntryState.DROPPED,
    "mask": EntryState.MASKED,
    "restore": EntryState.LIVE,
    "edit": EntryState.LIVE,
}
_DONE = {
    "pin": "pinned",
    "drop": "hidden",
    "mask": "cleared",
    "restore": "in context",
    "edit": "edited",
}
_VERB = {"pin": "Pin", "drop": "Hide", "mask": "Clear", "restore": "Bring back", "edit": "Edit"}


@frozen
class Edit:
    """A planned context edit, which changes how blocks of the request are sent to the model.

    ``places`` are the blocks' positions in the request, ``targets`` the numbers of their entries.
    ``freed`` is the number of tokens by which the request shrinks, negative if it grows. ``reread``
    is the number of cached tokens that the provider would have to read again.
    """

    action: EditAction
    places: tuple[int, ...]
    targets: tuple[int, ...]
    freed: int
    reread: int


def plan_edit(
    blocks: Sequence[ContextBlock], places: Sequence[int], action: EditAction
) -> Edit | str:
    """Plan an edit of the blocks at ``places``; if it would change nothing, return the reason.

    ``action`` says what to do with the blocks, for example to hide them. Skips the system prompt,
    the tools, and blocks that are already in the wanted state.
    """
    entries = []
    for place in sorted(places):
        if not blocks[place].is_head and blocks[place].origin:
            entries.append(place)
    if not entries:
        return FIXED
    after = _AFTER[action]
    wanted: list[int] = []
    # Changing the other wanted blocks would leave the request's bytes as they are.
    changed: list[int] = []
    for place in entries:
        block = blocks[place]
        rewrites = action == "edit" or (action == "restore" and block.edited)
        if block.state is after and not rewrites:
            continue
        wanted.append(place)
        stays_open = block.state in _OPEN and after in _OPEN
        if rewrites or not stays_open:
            changed.append(place)
    if not wanted:
        subject = "All of them are"
        if len(entries) == 1:
            subject = f"#{blocks[entries[0]].origin[0]} is"
        return f"{subject} {_DONE[action]} already."
    freed = sum(_freed(blocks[place], action) for place in changed)
    gone = set(changed)
    first = min(changed, default=len(blocks))
    if changed and blocks[first].kind == "tool_result":
        # If a tool result is hidden or brought back, so is its call, which is in an earlier block.
        first = next(
            (at for at in range(first - 1, -1, -1) if blocks[at].kind == "assistant"), first
        )
    reread = 0
    for place in range(first, len(blocks)):
        if blocks[place].cached and place not in gone:
            reread += blocks[place].tokens
    ids = tuple(blocks[place].origin[0] for place in wanted)
    return Edit(action, tuple(wanted), ids, freed, reread)


def _freed(block: ContextBlock, action: EditAction) -> int:
    match action:
        case "edit":
            return 0
        case "drop":
            return block.tokens
        case "mask":
            placeholder = min(PLACEHOLDER_TOKENS, block.tokens + block.hidden)
            if block.state in _OPEN:
                return block.tokens - placeholder
            return -placeholder
        case _:
            return -block.hidden


def question(edit: Edit, *, warm: bool, dollars: float | None) -> str:
    """Return the question to ask before a context edit, with its effect on tokens and cache.

    ``dollars`` is the price of the tokens that are read again, None if unknown.
    """
    facts = []
    if edit.freed > 0:
        facts.append(f"frees {tokens(edit.freed)} tokens")
    elif edit.freed < 0:
        facts.append(f"adds {tokens(-edit.freed)} tokens")
    if edit.reread and warm:
        facts.append(f"{tokens(edit.reread)} cached tokens are read again{about_cost(dollars)}")
    elif not edit.freed and edit.action != "edit":
        facts.append("the request keeps its size")
    else:
        facts.append("nothing cached is lost" if warm else "the cache is cold anyway")
    sentence = "; ".join(facts)
    return f"{_VERB[edit.action]} {_named(edit)}? {sentence[:1].upper()}{sentence[1:]}."


def done(edit: Edit) -> str:
    """Return the sentence that tells the user what a context edit has done."""
    return f"{_named(edit)} {_DONE[edit.action]} from the next request on."


def _named(edit: Edit) -> str:
    if len(edit.targets) == 1:
        return f"#{edit.targets[0]}"
    return plural(len(edit.targets), "block")
