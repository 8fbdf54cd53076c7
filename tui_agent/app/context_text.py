"""Texts about the next request: its blocks, how much is cached, and changes since the last request.

The module also makes the text of a cache miss, the request as JSON, and the line about an entry's
context status. All functions are pure.
"""

import json

from tui_agent.agent.context_map import ContextBlock, ContextMap
from tui_agent.app.copy_commands import own_text
from tui_agent.app.format import about_cost, age, plural, tokens
from tui_agent.context.budget import head_sections
from tui_agent.context.cache import BreakCause, CacheMiss, CacheState, PrefixBreak
from tui_agent.context.context_status import Standing
from tui_agent.context.context_status_cache import Standings
from tui_agent.context.request import ModelRequest, canonical_message, wire_tool
from tui_agent.context.view import EntryState
from tui_agent.session.entries import INTERRUPTED_OUTPUT, AssistantEntry, Entry, SystemEntry

CAUSES: dict[str, str] = {
    BreakCause.MODEL: "the model changed",
    BreakCause.EFFORT: "the effort changed",
    BreakCause.TOOLS: "the tools changed",
    BreakCause.HEAD: "the prompt changed",
    BreakCause.COMPACTION: "the history was compacted",
    BreakCause.PRUNE: "old outputs were cleared",
    BreakCause.EDIT: "the context was edited",
    BreakCause.RESULT: "a result replaced its placeholder",
    BreakCause.MOVED: "the conversation continues on another branch",
    BreakCause.COLD: "the prompt cache had expired",
    BreakCause.UNKNOWN: "the reason is unknown, which is a bug",
}
"""Reasons why a request can't use the whole cache of the previous request.

Each text ends a sentence.
"""


HEAD_WORDS = (
    "The prompt and the tools come from files and can't be changed here. "
    "Enter shows them one by one."
)


REST_WORDS = (
    "Tokens that the provider counted beyond the blocks' estimates. Together with them, the "
    "blocks add up to the size shown above. Nothing can be changed here."
)

NO_RESULT = "(no result yet)"
"""Text shown as the result of a tool call that is still running.

The placeholder in the request would say that the call was interrupted.
"""


def next_words(
    state: CacheState, shown: ContextMap, found: PrefixBreak | None, *, sent: bool
) -> str:
    """Return a sentence that says how much of the next request is cached, and why the rest isn't.

    ``found`` is the first place where the request differs from the last one, None if it only adds
    to the last one. ``sent`` is True if a request has been sent since the session was opened.
    """
    if not state.warm:
        return "Next request: read in full, because the cache is cold."
    if found is not None:
        why = f"{_break_words(found)}."
    elif sent:
        why = "its beginning is unchanged."
    else:
        why = ""
    remembered = sum(block.tokens for block in shown.blocks if block.cached)
    if not remembered:
        return f"Next request: read in full; {why or 'none of it is cached.'}"
    share = remembered / max(1, shown.size.total)
    minutes = -(-state.seconds_left // 60)
    known = f"{tokens(remembered)} of {tokens(shown.size.total)} tokens ({share:.0%}) are cached for {minutes} more min"
    if why:
        return f"Next request: {known}; {why}"
    return f"Next request: {known}."


def _break_words(found: PrefixBreak) -> str:
    if found.origin:
        where = f" from #{found.origin[0]} on"
    else:
        where = {"tool": " from the tools on", "model": ""}.get(found.part, "")
    by = ""
    if found.entry_id:
        by = f" (#{found.entry_id})"
    return f"read again{where}: {CAUSES[found.cause]}{by}"


def miss_cause(miss: CacheMiss) -> str:
    if miss.cause is None:
        return "nothing changed here, and the provider gave no reason"
    return CAUSES[miss.cause]


def miss_words(miss: CacheMiss, dollars: float | None) -> str:
    """Return a sentence with the tokens, extra cost and reason of the last request's cache miss.

    ``dollars`` is the extra cost, None if unknown.
    """
    by = ""
    if miss.entry_id:
        by = f" (#{miss.entry_id})"
    share = f"{tokens(miss.missed)} of {tokens(miss.expected)}"
    more = about_cost(dollars, " more")
    cause = f"{miss_cause(miss)}{by}"
    return f"Cache missed: {share} tokens were read again{more}: {cause}."


def request_json(request: ModelRequest) -> str:
    """Return a request as indented JSON, in a form that is the same for all providers."""
    value = {
        "model": request.model,
        "tool_choice": request.tool_choice,
        "max_output_tokens": request.max_output_tokens,
        "effort": request.effort,
        "tools": [wire_tool(tool) for tool in request.tools],
        "messages": [canonical_message(message) for message in request.messages],
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


def block_facts(block: ContextBlock) -> str:
    """Return one line of facts about a block of the request.

    The facts are the entry's number, kind, tool, path, tokens, hidden tokens and age.
    """
    address = ""
    if block.origin and block.kind not in {"system", "tool_schema"}:
        address = f"#{block.origin[0]}"
    age = ""
    if block.age_steps:
        age = f"{plural(block.age_steps, 'step')} ago"
    size = f"{tokens(block.tokens)} tokens"
    if block.hidden:
        hidden = f"{tokens(block.hidden)} hidden"
    else:
        hidden = ""
    words = [
        address,
        block.kind.replace("_", " "),
        block.tool or "",
        block.path or "",
        size,
        hidden,
        age,
    ]
    return " · ".join(word for word in words if word)


def standing_words(entry: Entry, found: Standings, block: ContextBlock | None, now: float) -> str:
    """Return one line about an entry's context status: number, size in tokens, status and age.

    The line also says whether the entry is cached. For an entry that is not sent, or is sent only
    as part of a summary, the line has only the number and the status. ``block`` is the entry's
    block in the next request, None if it has none. ``now`` is in seconds since the epoch.
    """
    standing = found.of(entry.id, entry.kind)
    words = [f"#{entry.id}"]
    if standing is Standing.SUMMARISED and entry.id != found.compaction:
        words.append(f"summarised by #{found.compaction}")
    elif block is None or standing in {Standing.UNSENT, Standing.HIDDEN}:
        words.append(standing.value)
    else:
        words.append(f"{tokens(block.tokens)} tokens")
        if block.hidden:
            words.append(f"{tokens(block.hidden)} {Standing.CLEARED.value}")
        if block.age_steps:
            since = plural(block.age_steps, "answer")
        else:
            since = age(entry.created_at, now)
        place = "sent"
        if standing is not Standing.SENT:
            place = standing.value
        sent = ""
        if standing is Standing.SENT and block.age_steps:
            sent = f"sent {plural(block.age_steps, 'time')}"
        words.append(sent or (f"{place}, new" if since == "now" else f"{place} for {since}"))
        words.append("cached" if block.cached else "not cached")
    return " · ".join(words)


def block_text(block: ContextBlock, request: ModelRequest, entry: Entry | None) -> str:
    """Return a block's text as the model sees it, and after it the entry's text if that is hidden.

    ``entry`` is the entry that the block comes from, None if there is none. The result may be "".
    """
    if block.kind == "tool_schema":
        for tool in request.tools:
            if tool.name == block.tool:
                return json.dumps(wire_tool(tool), ensure_ascii=False, indent=2)
        return ""
    if block.kind == "system":
        if not isinstance(entry, SystemEntry):
            return ""
        sections = head_sections(entry)
        return "\n\n".join(text.strip() for label, text in sections if label == block.label)
    address = None
    if block.origin:
        address = block.origin[0]
    texts: list[str] = []
    for message in request.messages:
        if address in message.origin:
            is_stand_in = isinstance(entry, AssistantEntry) and message.text == INTERRUPTED_OUTPUT
            texts.append(NO_RESULT if is_stand_in else message.text)
            for call in message.tool_calls:
                texts.append(_call_text(call.tool, call.arguments))
    hidden = block.hidden or block.state is EntryState.DROPPED
    if hidden and block.state not in {EntryState.LIVE, EntryState.PINNED} and entry is not None:
        texts.append(f"Not shown to the model:\n{own_text(entry)}")
    return "\n\n".join(text for text in texts if text)


def _call_text(tool: str, arguments: str) -> str:
    """Return a tool call in readable form: its name and a line per argument, without JSON escapes.

    Arguments that are not a JSON object follow the name unchanged.
    """
    try:
        given = json.loads(arguments, strict=False)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        return f"{tool} {arguments}"
    lines = [tool]
    for name, value in given.items():
        lines.append(f"{name}: {_argument(value)}")
    return "\n".join(lines)


def _argument(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if "\n" in value:
        return f"\n{value}"
    return value
