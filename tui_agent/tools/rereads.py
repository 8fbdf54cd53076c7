"""Shortens the result of a read if the model still sees the same lines from an earlier read."""

import re
from collections.abc import Iterable

from tui_agent.editing.diffs import diff_texts
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import ToolResultEntry

MIN_SAVED_CHARS = 600
"""Minimum length, in characters, of an output that is replaced by a short answer."""
MAX_DIFF_SHARE = 0.5
"""Maximum size of a diff, as a share of the size of the output that the diff replaces."""

_SPAN = LazyPattern(r"^\[Lines \d+-\d+ of ((?:more than )?\d+)[.,].*\]\s*\Z", re.MULTILINE)
"""Matches the note (``READ_ON`` or ``READ_END``) below a read of part of a file; group 1 is the
number of lines in the file."""
_NUMBERED = LazyPattern(r"^(\d+)\t(.*)$", re.MULTILINE)


@frozen
class Known:
    """A short answer to a read, which refers the model to an earlier read of the same lines.

    ``source`` is the id of the earlier read's entry. ``all_of_it`` is True if no line has changed,
    False if ``text`` contains a diff.
    """

    text: str
    source: int
    all_of_it: bool


def short_answer(
    title: str, shown: str, output: str, earlier: Iterable[ToolResultEntry]
) -> Known | None:
    """Return a note or a diff to show instead of the lines read; None if the lines must be shown.

    Args:
        title: the title of the result, which names the path and the lines. Equal calls have equal
            titles.
        shown: the file's name for the model.
        output: the numbered lines that would be shown.
        earlier: results of earlier reads of this file that the model still sees unchanged, newest
            first.
    """
    if len(output) < MIN_SAVED_CHARS:
        return None
    lines = _lines(output)
    for result in earlier:
        same_read = result.title == title
        if result.metadata.known_from is not None:
            if same_read:
                break  # The model repeats the call although it already received a short answer.
            continue
        known = _lines(result.output)
        # The length must be the same, too, because a file of another length is a different file,
        # even if the lines that would be shown are the same.
        if (
            lines
            and lines.items() <= known.items()
            and _length(output, lines) == _length(result.output, known)
        ):
            span = f"lines {min(lines)}-{max(lines)} of {shown}"
            note = (
                f"[Unchanged: {span} are the same as when you read them in #{result.id}, "
                "which is still in the context.]"
            )
            return Known(note, result.id, all_of_it=True)
        whole = _is_whole(output, lines) and _is_whole(result.output, known)
        if (
            same_read
            and whole
            and (changed := _difference(shown, known, lines, len(output), result.id))
        ):
            return Known(changed, result.id, all_of_it=False)
        if lines.keys() <= known.keys():
            break  # The newest read of these lines is outdated, and so are the older reads.
    return None


def _lines(output: str) -> dict[int, str]:
    return {int(found[1]): found[2] for found in _NUMBERED.finditer(output)}


def _length(output: str, lines: dict[int, str]) -> str:
    """Return the number of lines of the file as it is shown, such as "120" or "more than 2000"."""
    found = _SPAN.search(output)
    if found is None:
        return str(max(lines, default=0))
    return found[1]


def _is_whole(output: str, lines: dict[int, str]) -> bool:
    return bool(lines) and min(lines) == 1 and _length(output, lines) == str(max(lines))


def _difference(
    shown: str, known: dict[int, str], lines: dict[int, str], whole: int, entry_id: int
) -> str | None:
    """Return a note with the diff between an earlier read of a whole file and the current file.

    ``known`` and ``lines`` are the earlier and the current lines, by number. ``whole`` is the
    length, in characters, of the output that the diff would replace. Returns None if the diff is
    empty or too long.
    """
    before, after = ("".join(f"{text}\n" for text in held.values()) for held in (known, lines))
    diff = diff_texts(shown, before, after).text
    if not diff or len(diff) > whole * MAX_DIFF_SHARE:
        return None
    return (
        f"[The file has changed since you read it in #{entry_id}, which is still in the context. This is the diff. "
        f"To read the whole file, repeat the call.]\n{diff}"
    )
