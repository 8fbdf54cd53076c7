"""Chooses what a compaction keeps besides the summary: messages, rules, files, anchors, state.

Anchors are exact facts, such as paths and error lines; state is the to-do list, the plan and the
loaded skills. Each kind has a token budget. All of these are copied ("carried") from the entries
and the previous compaction's details, so that no model rewrites them. `digest` lists entries line
by line if no model has summarised them.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from tui_agent.context.anchors import REMEMBERED, cut_line, find_anchors
from tui_agent.context.files import FileOperations
from tui_agent.context.kept_lines import Source, choose_lines, decode_lines, encode_lines, title_of
from tui_agent.context.settings import CompactionSettings
from tui_agent.context.standing_rules import (
    BUDGET_SHARE,
    LEAST_BUDGET,
    StandingRule,
    carried,
    read_rules,
    rules_in,
    rules_of,
)
from tui_agent.context.truncation import cut_middle
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import (
    PLAN_PATH,
    SKILL_PREFIX,
    AssistantEntry,
    BookkeepingEntry,
    BranchSummaryEntry,
    CompactionEntry,
    Entry,
    FilePart,
    ImagePart,
    ShellEntry,
    StateText,
    SummaryDetails,
    TextPart,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.tool_traits import TraitsByName

CountText = Callable[[str], int]
"""Counts the tokens of a text."""

FILES_SHARE = 0.02
"""Share of the history budget that the lists of used files may take."""
_SMALL_FILES_SHARE = 0.05
"""Share of a small history budget that the lists of used files may take; see ``_SMALL_FILES``."""
_SMALL_FILES = 250
"""Maximum number of tokens of the lists of files if ``_SMALL_FILES_SHARE`` applies."""
STATE_SHARE = 0.05
"""Share of the history budget that the to-do list, the plan and loaded skills may take."""
MIN_TEXT_TOKENS = 24
"""Minimum number of tokens for each user message that a compaction copies."""
SKILL_LEFT_OUT = (
    "(loaded earlier, too long to repeat here: load it again with the skill tool before using it)"
)
"""Text that is sent instead of a loaded skill that does not fit into the budget."""
PLAN = "plan"
"""Value of ``StateText.tool`` for the plan that the user approved last. All other values are names
of tools."""
_TEXT_CHARS = 160
"""Maximum characters of an answer in a digest, which lists what happened in one line per entry."""
_CALL_CHARS = 100
"""Maximum characters of a tool call in a digest."""
_FINISHED = ("[x]", "[-]")
"""Prefixes of finished and cancelled items in a to-do list."""
_TAG_TOKENS = 8
"""Number of tokens assumed for the tags around each text that a compaction copies."""

_MESSAGE = LazyPattern(r"#(\d{1,18}) (.*)", re.DOTALL)


@frozen
class Budgets:
    """The maximum number of tokens of each kind of text that a compaction copies."""

    user_messages: int
    anchors: int
    files: int
    state: int

    @property
    def total(self) -> int:
        return self.user_messages + self.anchors + self.files + self.state

    @classmethod
    def of(cls, settings: CompactionSettings, budget: int) -> "Budgets":
        return cls(
            user_messages=round(budget * settings.user_messages_share),
            anchors=round(budget * settings.anchors_share),
            files=max(
                round(budget * FILES_SHARE), min(round(budget * _SMALL_FILES_SHARE), _SMALL_FILES)
            ),
            state=round(budget * STATE_SHARE),
        )


@frozen
class Summarised:
    """The entries that are about to be summarised, with facts about them.

    ``files`` are the files used in these entries and before them. ``asked`` are names in the
    entries that the agent used while the summary was written, but that neither the summary nor a
    kept output contains.
    """

    entries: Sequence[Entry]
    files: FileOperations
    tools: TraitsByName
    asked: AbstractSet[str] = frozenset()


def carry(
    summarised: Summarised,
    earlier: SummaryDetails,
    budgets: Budgets,
    count: CountText,
    shown: str = "",
) -> SummaryDetails:
    """Return what a compaction keeps of entries to be summarised and of the ``earlier`` summary.

    ``shown`` is all the text that is still sent to the model. Names in it need no anchor, and rules
    in it are not repeated. The details don't include pinned entries, which the caller adds.
    """
    entries = summarised.entries
    files = summarised.files
    tools = summarised.tools
    rules = known_rules(entries, earlier)
    said = _messages(entries, earlier.user_messages)
    rule_lines, rules_lost, messages = _words_of_user(
        said, rules, budgets.user_messages, count, shown
    )
    state = _select_state(_state(entries, earlier.state, tools), budgets.state, count, tools)
    most = sys.maxsize if summarised.asked else REMEMBERED
    every = find_anchors(entries, tools, earlier.remembered, most=most)
    anchors = every[:REMEMBERED]
    named = [anchor for anchor in every[REMEMBERED:] if anchor.text in summarised.asked]
    count_files = files.shown(budgets.files, count)
    listed = files.newest(count_files)
    words = [*messages, *rule_lines]
    sent = "\n".join([shown, *words])
    rules_known = tuple(rule.line for rule in rules if rule.text in sent)
    words += [item.text for item in state]
    known = "\n".join([shown, *words, *listed])
    before, titles = decode_lines(earlier.anchors)
    for entry in entries:
        if title := title_of(entry):
            titles[entry.id] = title
    source = Source.of(entries, before, summarised.asked)
    lines = choose_lines((*anchors, *named), source, budgets.anchors - _TAG_TOKENS, count, known)
    carried_lines = encode_lines(lines, titles)
    said_of = "\n".join([*words, *carried_lines])
    return SummaryDetails(
        read_files=files.read,
        modified_files=files.modified,
        anchors=carried_lines,
        untold=tuple(sorted(name for name in summarised.asked if name not in said_of)),
        user_messages=messages,
        rules=rule_lines,
        rules_known=rules_known,
        rules_lost=rules_lost,
        state=state,
        shown_files=count_files,
        file_ids={path: files.ids[path] for path in listed if path in files.ids},
        remembered=tuple(anchor.encode() for anchor in anchors),
    )


def known_rules(entries: Iterable[Entry], earlier: SummaryDetails) -> list[StandingRule]:
    """Return the standing rules in entries and in the ``earlier`` summary, oldest first.

    A rule that occurs more than once is returned with the newest entry that states it.
    """
    found: dict[str, StandingRule] = {}
    before: list[StandingRule] = []
    for number, words in _messages((), earlier.user_messages):
        if number >= 0:
            before += [StandingRule(number, text) for text in rules_in(words)]
    carried_before = read_rules((*earlier.rules, *earlier.rules_known))
    for rule in (*before, *carried_before, *rules_of(entries)):
        found.pop(rule.text, None)
        found[rule.text] = rule
    return sorted(found.values(), key=lambda rule: rule.entry_id)


def _words_of_user(
    said: Sequence[tuple[int, str]],
    rules: Sequence[StandingRule],
    budget: int,
    count: CountText,
    shown: str,
) -> tuple[tuple[str, ...], int, tuple[str, ...]]:
    """Return the lines of the rules to copy, and the user messages to copy.

    The result also contains, as its second value, the number of rules that don't fit. Together,
    rules and messages take at most ``budget`` tokens; only a very small budget may be exceeded. A
    rule that is in a copied message, or in the text ``shown``, is not repeated.
    """
    messages = _select_messages(said, budget, count)
    whole = "\n".join([shown, *messages])
    if all(rule.text in whole for rule in rules):
        return (), 0, messages
    room = max(round(budget * BUDGET_SHARE), LEAST_BUDGET)
    every, _lost = carried(rules, shown, room, count)
    left = budget - sum(count(line) + 1 for line in every) - _TAG_TOKENS
    messages = _select_messages(said, max(left, MIN_TEXT_TOKENS), count)
    lines, lost = carried(rules, "\n".join([shown, *messages]), room, count)
    return lines, lost, messages


def fit(text: str, budget: int, count: CountText) -> str:
    """Return ``text``, cut in its middle if it has more than ``budget`` tokens.

    Returns "" if ``budget`` is too small for a cut text.
    """
    tokens = count(text)
    if tokens <= budget:
        return text
    if budget < MIN_TEXT_TOKENS // 2:
        return ""
    keep = len(text) * budget // tokens
    while keep > 20:
        shown = cut_middle(text, keep)
        tokens = count(shown)
        if tokens <= budget:
            return shown
        keep = min(keep * budget // tokens, keep * 19 // 20)
    return ""


def _messages(entries: Iterable[Entry], earlier: Iterable[str]) -> list[tuple[int, str]]:
    """Return (entry id, text) of the user's messages, oldest first.

    A name replaces each attached file or image. ``earlier`` are messages that the previous summary
    contains (``#34 text``). Messages without an id, from imported sessions, are given negative ids
    and come first.
    """
    messages: dict[int, str] = {}
    for position, text in enumerate(earlier):
        found = _MESSAGE.fullmatch(text)
        number, words = (int(found[1]), found[2]) if found else (position - 1_000_000, text)
        messages[number] = words
    for entry in entries:
        if isinstance(entry, UserEntry) and entry.synthetic is None:
            parts = [_part(part) for part in entry.parts]
            text = "\n".join(part for part in parts if part.strip())
            if text:
                messages[entry.id] = text
    return sorted(messages.items())


def _part(part: TextPart | FilePart | ImagePart) -> str:
    match part:
        case TextPart():
            return part.text
        case FilePart():
            return f"@{part.path}"
        case ImagePart():
            return f"[{part.kind}: {part.path or part.blob[:12]}]"


def _select_messages(
    messages: Sequence[tuple[int, str]], budget: int, count: CountText
) -> tuple[str, ...]:
    """Return the first and the newest messages that fit into the budget, in their original order.

    Long messages are cut.
    """
    if not messages:
        return ()
    share = max(budget // 3, MIN_TEXT_TOKENS)
    first = _numbered(messages[0], share, count)
    left = budget - count(first) - _TAG_TOKENS
    chosen: list[str] = []
    for message in reversed(messages[1:]):
        text = _numbered(message, min(left - _TAG_TOKENS, share), count)
        if not text:
            break
        chosen.append(text)
        left -= count(text) + _TAG_TOKENS
    return tuple(text for text in (first, *reversed(chosen)) if text)


def _numbered(message: tuple[int, str], budget: int, count: CountText) -> str:
    number, text = message
    return fit(f"#{number} {text}" if number >= 0 else text, budget, count)


def _state(
    entries: Sequence[Entry], earlier: Iterable[StateText], tools: TraitsByName
) -> list[StateText]:
    """Return the newest to-do list and plan, and the loaded skills, in the order of last change.

    ``earlier`` is the state that the previous summary contains.
    """
    state = {(item.tool, item.name): item for item in earlier}
    names: dict[str, str] = {}
    for entry in entries:
        found: list[StateText] = []
        match entry:
            case AssistantEntry():
                names.update((call.call_id, call.arguments) for call in entry.tool_calls)
            case UserEntry():
                for file in entry.attached:
                    if file.path.startswith(SKILL_PREFIX):
                        name = file.path.removeprefix(SKILL_PREFIX)
                        found.append(StateText(tool="skill", name=name, text=file.text))
                    elif file.path == PLAN_PATH:
                        found.append(StateText(tool=PLAN, text=file.text))
            case ToolResultEntry(status=ToolStatus.COMPLETED) if tools[entry.tool].state:
                name = ""
                if tools[entry.tool].state != "list":
                    name = entry.title or names.get(entry.call_id, "")
                found.append(StateText(tool=entry.tool, name=name, text=entry.output))
            case _:
                continue
        for item in found:
            state.pop((item.tool, item.name), None)
            state[item.tool, item.name] = item
    return list(state.values())


def _select_state(
    state: Sequence[StateText], budget: int, count: CountText, tools: TraitsByName
) -> tuple[StateText, ...]:
    """Return the state that fits the budget: the to-do list and the plan, then skills.

    The list and the plan are shortened if necessary. Newer skills are preferred; a skill that is
    too long is replaced by `SKILL_LEFT_OUT`.
    """
    chosen: list[StateText] = []
    newest_first = list(reversed(state))
    for item in sorted(
        newest_first, key=lambda item: (tools[item.tool].state != "list", item.tool != PLAN)
    ):
        kept_as = tools[item.tool].state
        text = item.text
        if kept_as == "list":
            text = _shorter_list(text, budget - _TAG_TOKENS, count)
        if item.tool == PLAN:
            text = fit(text, budget - _TAG_TOKENS, count)
        if kept_as == "text" and count(text) + _TAG_TOKENS > budget:
            text = SKILL_LEFT_OUT
        cost = count(text) + _TAG_TOKENS
        if text and cost <= budget:
            chosen.append(item.model_copy(update={"text": text}))
            budget -= cost
    return tuple(reversed(chosen))


def _shorter_list(text: str, budget: int, count: CountText) -> str:
    """Shorten a to-do list to ``budget`` tokens. Returns "" if not even one item fits.

    All finished items are removed first, then items from the end of the list. If any are missing,
    the last line begins with ``#`` and says how many.
    """
    if count(text) <= budget:
        return text
    lines = text.split("\n")
    kept = [line for line in lines if not line.startswith(_FINISHED)]
    while kept:
        shown = "\n".join([*kept, f"# {len(lines) - len(kept)} items not listed"])
        if count(shown) <= budget:
            return shown
        kept.pop()
    return ""


def digest(entries: Sequence[Entry], budget: int, count: CountText) -> str:
    """List what happened in ``entries``, one line each, in at most ``budget`` tokens.

    If not all lines fit, the newest are returned. The user's messages are left out, because the
    compaction copies them verbatim.
    """
    chosen: list[str] = []
    for line in reversed(list(_digest_lines(entries))):
        cost = count(line) + 1
        if cost > budget:
            break
        chosen.append(line)
        budget -= cost
    return "\n".join(reversed(chosen))


def _digest_lines(entries: Sequence[Entry]) -> Iterable[str]:
    results = {entry.call_id: entry for entry in entries if isinstance(entry, ToolResultEntry)}
    for entry in entries:
        match entry:
            case AssistantEntry():
                text = cut_line(entry.text, _TEXT_CHARS)
                if text:
                    yield f"- #{entry.id} {text}"
                for call in entry.tool_calls:
                    subject = call.arguments
                    number = entry.id
                    ending = "interrupted"
                    if (result := results.get(call.call_id)) is not None:
                        subject = result.title or subject
                        number = result.id
                        ending = _ending(result)
                    yield f"- #{number} {call.tool} {cut_line(subject, _CALL_CHARS)} → {ending}"
            case ShellEntry():
                if entry.is_sent:
                    yield f"- #{entry.id} user ran `{cut_line(entry.command, _CALL_CHARS)}` → exit {entry.exit_code}"
            case BranchSummaryEntry():
                yield f"- #{entry.id} summary of a branch: {cut_line(entry.summary, _TEXT_CHARS)}"
            case UserEntry() | ToolResultEntry() | CompactionEntry() | BookkeepingEntry():
                pass


def _ending(result: ToolResultEntry) -> str:
    if code := result.metadata.exit_code:
        return f"exit {code}"
    if result.status is ToolStatus.COMPLETED:
        return "ok"
    return result.status.value
