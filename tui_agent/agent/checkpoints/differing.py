"""How files differ between an entry and now, as text: a list of them, then a unified diff of each."""

from collections.abc import Iterable
from dataclasses import dataclass

from tui_agent.agent.checkpoints.images import Reading
from tui_agent.agent.checkpoints.plan import Difference
from tui_agent.agent.checkpoints.restoring import Restorer
from tui_agent.editing.diffs import FileDiff, diff_texts
from tui_agent.editing.text_files import SAMPLE_BYTES, detect

_COMPARED_BYTES = 1_000_000
"""The lines of larger files are not compared."""


@dataclass(frozen=True, slots=True)
class _Row:
    mark: str
    path: str
    facts: str
    diff: str = ""


def diff_of(found: Iterable[Difference], restorer: Restorer) -> str:
    """Return how files are now compared to how they were there; "" when none differs. Reads files."""
    found = tuple(found)
    restorer.expect(difference.there for difference in found)
    rows = [row for difference in found if (row := _row(difference, restorer)) is not None]
    if not rows:
        return ""
    width = max(len(row.path) for row in rows)
    listed = [f"{row.mark}  {row.path:<{width}}  {row.facts}".rstrip() for row in rows]
    return "\n".join([*listed, "", *(row.diff for row in rows if row.diff)])


def _row(difference: Difference, restorer: Restorer) -> _Row | None:
    there, now, path = difference.there, restorer.current(difference.path), difference.path
    if now.image == there and not there.problem:
        return None
    content = restorer.content(there)
    if there.problem or (there.digest is not None and content is None):
        return _Row("?", path, there.problem or "its image was dropped to save room")
    mark = "A" if not there.exists else "D" if not now.image.exists else "M"
    if now.image.problem:
        return _Row(mark, path, now.image.problem)
    facts = [_mode(there.mode, now.image.mode)]
    diff = _compared(path, content, now)
    if diff is None:
        facts.append("not compared: binary or large")
    else:
        facts.append(" ".join(filter(None, [_signed("+", diff.additions), _signed("-", diff.deletions)])))
    return _Row(mark, path, " ".join(filter(None, facts)), "" if diff is None else diff.text)


def _compared(path: str, before: bytes | None, now: Reading) -> FileDiff | None:
    """Return the difference; None where lines say nothing."""
    old, new = _text(before), _text(now.data)
    if old is None or new is None:
        return None
    return diff_texts(path, None if before is None else old, new)


def _text(data: bytes | None) -> str | None:
    if data is None:
        return ""
    encoding = detect(data[:SAMPLE_BYTES], whole=len(data) <= SAMPLE_BYTES) if len(data) <= _COMPARED_BYTES else None
    return None if encoding is None else data.decode(encoding.name, "replace")


def _signed(sign: str, number: int) -> str:
    return f"{sign}{number}" if number else ""


def _mode(before: int, now: int) -> str:
    return f"mode {before:o} → {now:o}" if before and now and before != now else ""
