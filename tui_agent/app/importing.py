"""Imports sessions from files and reports each outcome in words."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tui_agent.app.format import listed, plural
from tui_agent.context.tokens import TokenCounter
from tui_agent.safe_text import one_line
from tui_agent.session.errors import StoreError
from tui_agent.session.formats.importing import ImportChange, Imported, import_file, is_own_file
from tui_agent.session.formats.reading import ImportRefused, NoConversation
from tui_agent.session.formats.table import files_of
from tui_agent.session.store import Store

_ESTIMATED_AS = "gpt-4o"
"""Model whose tokenizer counts entries that come without a count; models differ little."""
_NUMBERS_TOLD = 10
"""Maximum damaged lines whose numbers are named."""

_TOTALS = {
    ImportChange.NEW: "imported",
    ImportChange.MORE: "brought up to date",
    ImportChange.KNOWN: "already here",
    ImportChange.COPY: "imported as copies",
}


class Importer:
    """Imports files one by one, each in a transaction of its own."""

    def __init__(
        self,
        store: Store,
        *,
        source: str | None = None,
        skip_damaged: bool = False,
        keep_directories: bool = False,
    ) -> None:
        """Create an importer.

        Sessions work in the directory that their file names if ``keep_directories`` is set or the file
        is the user's own, otherwise in the current one.
        """
        self._store = store
        self._source = source
        self._skip_damaged = skip_damaged
        self._keep_directories = keep_directories
        self._estimate = TokenCounter(_ESTIMATED_AS).estimate
        self._came: Counter[ImportChange] = Counter()
        self._empty = 0
        self.failed = 0
        """Number of files and sessions that could not be read."""

    def run(
        self, files: Sequence[Path]
    ) -> Iterator[tuple[Path, Sequence[Imported] | None, list[str]]]:
        """Yield each file with its sessions (None: nothing was stored) and the lines to show.

        Of several files, those without a conversation are only counted.
        """
        several = len(files) > 1
        top = os.path.commonpath([path.parent for path in files])
        for path in files:
            name = str(path.relative_to(top))
            is_believed = self._keep_directories or is_own_file(path, Path.home())
            try:
                imported = import_file(
                    self._store,
                    path,
                    estimate=self._estimate,
                    source=self._source,
                    skip_damaged=self._skip_damaged,
                    belongs_to=None if is_believed else Path.cwd(),
                )
            except StoreError as error:
                if several and isinstance(error, NoConversation):
                    self._empty += 1
                    continue
                self.failed += 1
                yield path, None, [_of_file(name, _why_refused(error))]
                continue
            self.failed += sum(len(one.refused) for one in imported)
            own = [one for one in imported if not one.of_subagent] or imported
            self._came.update(one.came for one in own)
            lines = [summary_of(one) for one in own]
            if beside := len(imported) - len(own):
                lines[0] += f" With it: {plural(beside, 'session')} of subagents."
            yield path, imported, [_of_file(name, line) for line in lines] if several else lines

    def total(self) -> str:
        failed = self.failed
        parts: list[str] = []
        for came in ImportChange:
            if count := self._came[came]:
                parts.append(f"{count} {_TOTALS[came]}")
        if failed == 1:
            parts.append("1 could not be read")
        elif failed:
            parts.append(f"{failed} files could not be read")
        if self._empty == 1:
            parts.append("1 file holds no conversation of its own")
        elif self._empty:
            parts.append(f"{self._empty} files hold no conversation of their own")
        return ", ".join(parts or ["nothing imported"]) + "."


def summary_of(imported: Imported) -> str:
    name = "a session"
    if imported.title:
        name = f"“{one_line(imported.title, 60)}”"
    short = imported.session_id[-8:]
    sentence = f"{name} is already here as {short}; nothing was changed."
    match imported.came:
        case ImportChange.NEW:
            sentence = (
                f"Imported {name} ({imported.entries:,} entries, {imported.source}) as {short}."
            )
        case ImportChange.MORE:
            sentence = f"{name} was here as {short} and got {imported.entries:,} more entries."
        case ImportChange.COPY:
            sentence = (
                f"{name} went on differently here; the file is a session of its own, {short}."
            )
        case _:
            pass
    if imported.named_directory:
        sentence += f" It works in this directory, not in {one_line(imported.named_directory, 80)}, as its file says."
    if imported.left_out and imported.came is not ImportChange.KNOWN:
        left_out = sorted(imported.left_out.most_common(), key=_is_internal)
        rows = ", ".join(f"{count}× {one_line(what, 80)}" for what, count in left_out)
        sentence += f" Not taken over: {rows}."
    if imported.damaged:
        count = len(imported.damaged)
        numbers = [f"{number:,}" for number in imported.damaged]
        sentence += (
            f" {plural(count, 'line')} could not be read and {'was' if count == 1 else 'were'} "
            f"left out: {listed(numbers, _NUMBERS_TOLD)}."
        )
    return " ".join([sentence, *map(_with_advice, imported.refused)])


def _is_internal(row: tuple[str, int]) -> bool:
    """Return whether something left out is a kind of line that only its own program reads."""
    return row[0].startswith("“")


def _with_advice(said: str) -> str:
    return f"{said} That session was left out; --skip-damaged leaves out only such messages."


def _why_refused(error: StoreError) -> str:
    said = error.message
    if isinstance(error, ImportRefused) and ", line " in said:
        return f"{said} Nothing of the file was imported; --skip-damaged leaves such lines out."
    if isinstance(error, ImportRefused) and ", message " in said:
        return _with_advice(said)
    return said


def _of_file(name: str, told: str) -> str:
    """Return a message that begins with the file's ``name``, in place of a shorter form of it."""
    shown = one_line(name, 120)
    own = one_line(name.rpartition("/")[2], 120)
    if told.startswith(own):
        return f"{shown}{told.removeprefix(own)}"
    return f"{shown}: {told}"


def import_all(store: Store, path: Path) -> tuple[list[str], list[Imported], int]:
    """Import a file or every file of a directory; return the lines to show, the sessions, and how many failed.

    Raises:
        ImportRefused: there is no file.
    """
    importer = Importer(store)
    files = files_of(path)
    shown: list[str] = []
    imported: list[Imported] = []
    for _path, sessions, lines in importer.run(files):
        shown += lines
        imported += sessions or ()
    if len(files) > 1:
        shown.append(importer.total())
    return shown, imported, importer.failed
