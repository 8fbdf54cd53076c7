"""Parses a race's runners as the user types them (``2x same, effort=high``), and names them. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal, get_args

from tui_agent.errors import UserFacingError
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.effort import Effort

Pick = Literal["none", "first-green", "best"]
"""Decides which of a race's runners is picked automatically: none; the first one whose check
passes, after which the others are stopped; or the best one when all have ended."""
PICKS: tuple[Pick, ...] = get_args(Pick)


LEAST_RUNNERS = 2
MOST_RUNNERS = 8
SAME = "same"
"""Word that describes a race's runner with the conversation's model, effort and mode."""
WHOLE = "whole"
PRUNED = "pruned"
COMPACTED = "compacted"
WITHOUT = "without"
"""Words for the part of the conversation that a race's runner sees: all of it, all but old outputs,
a summary, or all but some entries (``without #12 #14``)."""

_OTHER_KEYS = {"agent": "mode", "think": "effort"}
_TIMES = LazyPattern(r"(\d{1,18})\s*(?:[x×*]\s*(.*))?", re.IGNORECASE)


class RunnersError(UserFacingError):
    """Raised if the text that describes a race's runners can't be parsed.

    The message is for the user.
    """


@frozen
class RunnerSpec:
    """How one runner differs from the conversation. "" and None mean the conversation's own value.

    ``mode`` may be the name of an agent. ``context`` is ``pruned``, ``compacted`` or ``without #12
    #14``; "" means the whole conversation.
    """

    model: str = ""
    effort: Effort | None = None
    mode: str = ""
    context: str = ""

    @property
    def label(self) -> str:
        """A few words that say how the runner differs from the conversation ("sonnet high").

        `SAME` if it does not differ.
        """
        parts = (self.model.rsplit("/", 1)[-1], self.effort or "", self.mode, self.context)
        return " ".join(filter(None, parts)) or SAME


def parse_runners(
    text: str,
    modes: Collection[str] = (),
    find_model: Callable[[str], str | None] = lambda name: name,
) -> tuple[RunnerSpec, ...]:
    """Return the runners that a text describes, separated by commas.

    A runner is described by words: ``same``, ``model=NAME``, ``effort=LEVEL``, ``mode=NAME``,
    ``agent=NAME``; or just a level, a mode or agent in ``modes``, or else a model. ``find_model``
    returns the id of a model by its name, None if there is none. ``whole``, ``pruned``,
    ``compacted`` and ``without #12 #14`` say which part of the conversation the runner sees. ``3x``
    in front means three such runners; ``3`` alone means three ``same`` runners. Raises
    RunnersError, also for fewer than 2 or more than 8 runners.
    """
    found: list[RunnerSpec] = []
    for item in _items(text):
        count = 1
        words = item
        times = _TIMES.fullmatch(item)
        if times is not None:
            count = min(int(times[1]), MOST_RUNNERS + 1)
            words = times[2] or SAME
        found += [_spec(words.split(), modes, find_model)] * count
    if not LEAST_RUNNERS <= len(found) <= MOST_RUNNERS:
        raise RunnersError(
            f"A race has {LEAST_RUNNERS} to {MOST_RUNNERS} runners; “{text.strip()}” stands for {len(found)}."
            " Write for example: 3, or: 2x same, effort=high."
        )
    return tuple(found)


def all_name_contexts(text: str) -> bool:
    """Return True if a text describes at least two runners, each with a word for its context."""
    items = _items(text)
    contexts = {WHOLE, PRUNED, COMPACTED, WITHOUT}
    return len(items) > 1 and all(contexts & set(item.lower().split()) for item in items)


def names_of(specs: Collection[RunnerSpec], model: str) -> tuple[str, ...]:
    """Return a name for each runner, which gives its differences from the conversation, if any.

    A runner without differences is named after ``model``, the conversation's model, or is called
    "whole" if any runner has a ``context``. Equal names are numbered: ``gpt-5 1``, ``gpt-5 2``.
    """
    plain = model.rsplit("/", 1)[-1]
    if any(spec.context for spec in specs):
        plain = WHOLE
    labels = [plain if spec.label == SAME else spec.label for spec in specs]
    names: list[str] = []
    for at, label in enumerate(labels):
        name = label
        if labels.count(label) > 1:
            name = f"{label} {labels[: at + 1].count(label)}"
        names.append(name)
    return tuple(names)


def without(entries: Iterable[int]) -> str:
    """Return the `RunnerSpec.context` that omits these entries, such as "without #12 #14"."""
    return " ".join([WITHOUT, *(f"#{entry}" for entry in entries)])


def left_out(context: str) -> tuple[int, ...]:
    """Return the ids of the entries that a `RunnerSpec.context` leaves out of the conversation."""
    return tuple(int(number) for number in re.findall(r"#(\d{1,18})", context))


def _items(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[,;\n]", text) if part.strip()]


def _spec(
    words: list[str], modes: Collection[str], find_model: Callable[[str], str | None]
) -> RunnerSpec:
    fields: dict[str, str] = {}
    context, words = _context(words)
    for word in words:
        key, named, value = word.partition("=")
        if not named:
            key = _kind(word, modes)
            value = word
        fields[_OTHER_KEYS.get(key, key)] = value
    fields.pop(SAME, None)
    model = fields.pop("model", "")
    effort = fields.pop("effort", "")
    mode = fields.pop("mode", "")
    if fields:
        raise RunnersError(
            f"“{next(iter(fields))}=” can't be set. Use model=, effort=, mode= or agent=."
        )
    if mode and mode not in modes:
        raise RunnersError(f"There is no mode or agent “{mode}”. Use one of: {', '.join(modes)}.")
    return RunnerSpec(_model(model, find_model), _effort(effort), mode, context)


def _model(named: str, find_model: Callable[[str], str | None]) -> str:
    if not named:
        return ""
    found = find_model(named)
    if found is None:
        raise RunnersError(f"There is no usable model “{named}”. /model lists them.")
    return found


def _effort(named: str) -> Effort | None:
    if not named:
        return None
    try:
        return Effort(named)
    except ValueError:
        raise RunnersError(
            f"There is no effort “{named}”. Use one of: {', '.join(Effort)}."
        ) from None


def _context(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the `RunnerSpec.context` described by some of the words, and the remaining words."""
    entries: list[str] = []
    named: list[str] = []
    rest: list[str] = []
    for word in words:
        if re.fullmatch(r"#\d{1,18}", word):
            entries.append(word)
        elif word.lower() in {PRUNED, COMPACTED, WITHOUT}:
            named.append(word.lower())
        elif word.lower() != WHOLE:
            rest.append(word)
    if len(named) > 1 or (WITHOUT in named) != bool(entries):
        raise RunnersError(
            "For the part that a runner sees, write: whole, pruned, compacted, or without #12 #14."
        )
    if entries:
        return without(left_out(" ".join(entries))), rest
    return "".join(named), rest


def _kind(word: str, modes: Collection[str]) -> str:
    if word.lower() == SAME:
        return SAME
    if word in modes:
        return "mode"
    if word.lower() in set(Effort):
        return "effort"
    return "model"
