"""Imports sessions from files, and describes each result in a sentence for the user.

``session.formats.importing`` reads a file and stores its sessions; this module does that for each
file, and decides whether a session keeps the working directory that is recorded in its file.
"""

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
"""Model whose tokenizer counts the tokens of entries for which a file contains no count.

Other tokenizers give similar counts.
"""
_MAX_NUMBERS = 10
"""Maximum number of damaged lines whose line numbers are listed."""

_TOTALS = {
    ImportChange.NEW: "imported",
    ImportChange.MORE: "brought up to date",
    ImportChange.KNOWN: "already here",
    ImportChange.COPY: "imported as copies",
}


class Importer:
    """Imports files one by one, and counts the outcomes."""

    def __init__(
        self,
        store: Store,
        *,
        source: str | None = None,
        skip_damaged: bool = False,
        keep_directories: bool = False,
    ) -> None:
        """Create an importer.

        ``source`` is the files' format, None to detect it. With ``skip_damaged``, only unreadable
        lines and messages are left out, instead of the whole file or session. A session keeps the
        working directory recorded in its file if ``keep_directories`` is set, or if the file is
        where another program of the user stores sessions (`is_own_file`). Other sessions receive
        the current directory.
        """
        self._store = store
        self._source = source
        self._skip_damaged = skip_damaged
        self._keep_directories = keep_directories
        self._estimate = TokenCounter(_ESTIMATED_AS).estimate
        self._came: Counter[ImportChange] = Counter()
        self._empty = 0
        self.failed = 0
        """Number of files and sessions that could not be imported, because they can't be read."""

    def run(
        self, files: Sequence[Path]
    ) -> Iterator[tuple[Path, Sequence[Imported] | None, list[str]]]:
        """Import the files, and yield for each its path, its sessions, and lines to show the user.

        The sessions are None if nothing was stored. If there are several files, those without a
        conversation are counted, but not yielded.
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
                problem = error.message if self._skip_damaged else _why_refused(error)
                yield path, None, [_of_file(name, problem)]
                continue
            self.failed += sum(len(one.refused) for one in imported)
            own = [one for one in imported if not one.of_subagent] or imported
            self._came.update(one.came for one in own)
            lines = [summary_of(one) for one in own]
            if beside := len(imported) - len(own):
                lines[0] += f" Also imported: {plural(beside, 'session')} of subagents."
            yield path, imported, [_of_file(name, line) for line in lines] if several else lines

    def total(self) -> str:
        """Return a sentence with the number of sessions and files by outcome."""
        failed = self.failed
        parts: list[str] = []
        for came in ImportChange:
            if count := self._came[came]:
                parts.append(f"{count} {_TOTALS[came]}")
        if failed == 1:
            parts.append("1 could not be read")
        elif failed:
            parts.append(f"{failed} files or sessions could not be read")
        if self._empty == 1:
            parts.append("1 file contains no conversation")
        elif self._empty:
            parts.append(f"{self._empty} files contain no conversation")
        return ", ".join(parts or ["nothing imported"]) + "."


def summary_of(imported: Imported) -> str:
    """Return sentences about the import of one session: the outcome, and what was left out."""
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
            sentence = f"{name} was already here as {short}; {imported.entries:,} entries added."
        case ImportChange.COPY:
            sentence = f"{name} was continued differently here, so the file was imported as a copy, {short}."
        case _:
            pass
    if imported.named_directory:
        sentence += (
            " It works in this directory, not in the one recorded in its file, "
            f"{one_line(imported.named_directory, 80)}."
        )
    if imported.left_out and imported.came is not ImportChange.KNOWN:
        left_out = sorted(imported.left_out.most_common(), key=_is_internal)
        rows = ", ".join(f"{count}× {one_line(what, 80)}" for what, count in left_out)
        sentence += f" Not imported: {rows}."
    if imported.damaged:
        count = len(imported.damaged)
        numbers = [f"{number:,}" for number in imported.damaged]
        sentence += (
            f" {plural(count, 'line')} could not be read and {'was' if count == 1 else 'were'} "
            f"left out: {listed(numbers, _MAX_NUMBERS)}."
        )
    return " ".join([sentence, *map(_with_advice, imported.refused)])


def _is_internal(row: tuple[str, int]) -> bool:
    """Return True if a row of ``left_out`` is about lines of an internal type.

    Such a row names the type in quotation marks.
    """
    return row[0].startswith("“")


def _with_advice(said: str) -> str:
    return f"{said} That session was left out; --skip-damaged leaves out only the damaged messages."


def _why_refused(error: StoreError) -> str:
    said = error.message
    if isinstance(error, ImportRefused) and ", line " in said:
        return f"{said} Nothing in the file was imported; --skip-damaged leaves out only the damaged lines."
    if isinstance(error, ImportRefused) and ", message " in said:
        return _with_advice(said)
    return said


def _of_file(name: str, message: str) -> str:
    """Return a message that begins with the path ``name``.

    If the message already begins with the bare file name, the path replaces that.
    """
    shown = one_line(name, 120)
    own = one_line(name.rpartition("/")[2], 120)
    if message.startswith(own):
        return f"{shown}{message.removeprefix(own)}"
    return f"{shown}: {message}"


def import_all(store: Store, path: Path) -> tuple[list[str], list[Imported], int]:
    """Import a file or every file of a directory.

    Returns the lines to show, the sessions, and the number of files and sessions that could not be
    read.

    Raises:
        ImportRefused: ``path`` does not exist, or is a directory without files to import.
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
