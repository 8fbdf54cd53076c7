"""The short answer to a read of lines that the model can still see from an earlier one."""

import re
from collections.abc import Iterable

from tui_agent.editing.diffs import diff_texts
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.session.entries import ToolResultEntry

MIN_SAVED_CHARS = 600
"""Characters of an output below which saying that it is known saves nothing."""
MAX_DIFF_SHARE = 0.5
"""Share of the whole output a difference may take: a model reads the whole with less effort."""

_SPAN = LazyPattern(r"^\[Lines \d+-\d+ of ((?:more than )?\d+)[.,].*\]\s*\Z", re.MULTILINE)
"""The last line of a read that is not the whole file, with how long that is; as ``READ_ON`` and ``READ_END`` say it."""
_NUMBERED = LazyPattern(r"^(\d+)\t(.*)$", re.MULTILINE)


@frozen
class Known:
    """The answer in place of lines that the entry ``source`` has, all of them or those that did not change."""

    text: str
    source: int
    all_of_it: bool


def short_answer(
    title: str, shown: str, output: str, earlier: Iterable[ToolResultEntry]
) -> Known | None:
    """Return the answer in place of a file's lines; None to show them.

    Args:
        title: the request, path and lines; the same read has the same one.
        shown: the file's name.
        output: the numbered lines that would be shown.
        earlier: the results of reads of this file that are in the model's view as they were, newest first.
    """
    if len(output) < MIN_SAVED_CHARS:
        return None
    lines = _lines(output)
    for result in earlier:
        same_read = result.title == title
        if result.metadata.known_from is not None:
            if same_read:
                break  # The model had this answer already, and asks again.
            continue
        known = _lines(result.output)
        # A file that grew or shrank has changed, though the lines that are still there have not.
        if (
            lines
            and lines.items() <= known.items()
            and _length(output, lines) == _length(result.output, known)
        ):
            span = f"lines {min(lines)}-{max(lines)} of {shown}"
            note = f"[Unchanged: {span} are as in the read of #{result.id}, which you still see.]"
            return Known(note, result.id, all_of_it=True)
        whole = _is_whole(output, lines) and _is_whole(result.output, known)
        if (
            same_read
            and whole
            and (changed := _difference(shown, known, lines, len(output), result.id))
        ):
            return Known(changed, result.id, all_of_it=False)
        if lines.keys() <= known.keys():
            break  # Its version of these lines is outdated, and so are earlier reads.
    return None


def _lines(output: str) -> dict[int, str]:
    return {int(found[1]): found[2] for found in _NUMBERED.finditer(output)}


def _length(output: str, lines: dict[int, str]) -> str:
    """Return how many lines the file has: a read of a part says so, otherwise it is those that are shown."""
    found = _SPAN.search(output)
    if found is None:
        return str(max(lines, default=0))
    return found[1]


def _is_whole(output: str, lines: dict[int, str]) -> bool:
    return bool(lines) and min(lines) == 1 and _length(output, lines) == str(max(lines))


def _difference(
    shown: str, known: dict[int, str], lines: dict[int, str], whole: int, entry_id: int
) -> str | None:
    """Return the changes since a read of the whole file, None where they are too many."""
    before, after = ("".join(f"{text}\n" for text in held.values()) for held in (known, lines))
    diff = diff_texts(shown, before, after).text
    if not diff or len(diff) > whole * MAX_DIFF_SHARE:
        return None
    return (
        f"[Changed since the read of #{entry_id}, which you can still see. This is the difference; make the same call "
        f"again to have all of it.]\n{diff}"
    )
