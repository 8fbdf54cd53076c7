"""How files differ between an entry and now: which, how, and how much."""

from collections.abc import Iterable

from tui_agent.agent.checkpoints.file_snapshots import Reading
from tui_agent.agent.checkpoints.plan import Difference
from tui_agent.agent.checkpoints.restoring import Restorer
from tui_agent.editing.diffs import FileDiff, diff_texts
from tui_agent.editing.text_files import SAMPLE_BYTES, detect
from tui_agent.lazy import dataclass

_COMPARED_BYTES = 1_000_000
"""The lines of larger files are not compared."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that is not as it was: ``mark`` is A, M, D, or ? where nobody knows; ``diff`` is a unified diff."""

    mark: str
    path: str
    facts: str
    diff: str = ""


def diff_of(found: Iterable[Difference], restorer: Restorer) -> tuple[ChangedFile, ...]:
    """Return how files are now compared to how they were there. Reads files."""
    found = tuple(found)
    restorer.expect(difference.there for difference in found)
    rows = (_row(difference, restorer.current(difference.path), restorer) for difference in found)
    return tuple(row for row in rows if row is not None)


def diff_of_recorded(found: Iterable[Difference], restorer: Restorer) -> tuple[ChangedFile, ...]:
    """Return how files were here compared to how they were there, as they are recorded. Reads files."""
    found = tuple(found)
    restorer.expect(image for difference in found for image in (difference.there, difference.here))
    heres = ((difference, difference.here) for difference in found)
    rows = (_row(difference, Reading(here, restorer.content(here)), restorer) for difference, here in heres)
    return tuple(row for row in rows if row is not None)


@dataclass(frozen=True, slots=True)
class ChangeAmount:
    """How much changed: files, and lines of those whose lines can be compared."""

    files: int = 0
    additions: int = 0
    deletions: int = 0


class ChangeCounter:
    """Counts changes between recorded versions of files, each two compared once. Call it in a thread."""

    def __init__(self, restorer: Restorer) -> None:
        self._restorer = restorer
        self._lines: dict[tuple[str | None, str | None], tuple[int, int]] = {}

    def count(self, found: Iterable[Difference]) -> ChangeAmount:
        found = tuple(found)
        self._restorer.expect(difference.there for difference in found)
        lines = [self._compare(difference) for difference in found]
        return ChangeAmount(len(lines), sum(added for added, _ in lines), sum(removed for _, removed in lines))

    def _compare(self, difference: Difference) -> tuple[int, int]:
        key = difference.there.digest, difference.here.digest
        if key not in self._lines:
            old, new = (_text(self._restorer.content(image)) for image in (difference.there, difference.here))
            diff = None if old is None or new is None else diff_texts(difference.path, old, new)
            self._lines[key] = (0, 0) if diff is None else (diff.additions, diff.deletions)
        return self._lines[key]


def _row(difference: Difference, now: Reading, restorer: Restorer) -> ChangedFile | None:
    there, path = difference.there, difference.path
    if now.image == there and not there.problem:
        return None
    content = restorer.content(there)
    if there.problem or (there.digest is not None and content is None):
        return ChangedFile("?", path, there.problem or "its image was dropped to save room")
    mark = "A" if not there.exists else "D" if not now.image.exists else "M"
    if now.image.problem:
        return ChangedFile(mark, path, now.image.problem)
    facts = [_mode(there.mode, now.image.mode)]
    diff = _compared(path, content, now)
    if diff is None:
        facts.append("not compared: binary or large")
    else:
        facts.append(" ".join(filter(None, [_signed("+", diff.additions), _signed("-", diff.deletions)])))
    return ChangedFile(mark, path, " ".join(filter(None, facts)), "" if diff is None else diff.text)


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
