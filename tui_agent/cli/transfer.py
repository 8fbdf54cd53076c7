"""``tui-agent sessions export`` and ``import``: sessions that leave, and sessions that come in."""

import json
import os
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from tui_agent.agent.exporting import ExportFormat, ExportOrder, export_text, format_of, unknown_ending, write_export
from tui_agent.agent.importing import Importer, problem_of, summary_of
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.output import say
from tui_agent.session.formats.importing import FileFormat, files_of
from tui_agent.session.store import Store


def run_export(store: Store, arguments: Namespace) -> int:
    """Write one session to a file or standard output."""
    name, _separator, entry = arguments.id.partition("#")
    if _separator and not entry.isdigit():
        raise UsageError(f"“{entry}” is no number of an entry: ID#412 is the branch that leads to #412.")
    if entry and arguments.all:
        raise UsageError("ID#N is one branch; leave out --all.")
    info = store.session(name)
    output: Path | None = arguments.output
    if output is not None and not output.is_dir() and not arguments.format and (why := unknown_ending(str(output))):
        raise UsageError(f"{why} --format says which one another name is to hold.")
    chosen = arguments.format or (format_of(str(output)) if output is not None else None) or ExportFormat.MARKDOWN
    order = ExportOrder(
        info.id,
        ExportFormat(chosen),
        whole=True if arguments.all else False if arguments.branch else None,
        leaf=int(entry) if entry else None,
        redacted=arguments.redact,
    )
    if output is None:
        say(export_text(store, order, os.environ), end="")
        return 0
    path = output / order.file_name(info.title or info.first_message, output) if output.is_dir() else output
    if path.exists() and not arguments.force:
        raise UsageError(f"There is a {path} already; --force replaces it.")
    try:
        size = write_export(store, order, path, os.environ)
    except OSError as error:
        say(f"{path} can't be written: {error.strerror or error}.", file=sys.stderr)
        return 1
    say(f"Wrote {path} ({size / 1000:,.1f} kB){' without secrets' if order.redacted else ''}.", file=sys.stderr)
    return 0


def run_import(store: Store, arguments: Namespace) -> int:
    """Take in every session of a file or directory; a file that can't be read holds up none of the others."""
    source = None if arguments.source == "auto" else FileFormat(arguments.source)
    files = files_of(arguments.file)
    importer = Importer(store, source=source, skip_damaged=arguments.skip_damaged)
    progress = _Progress(len(files))
    failed = 0
    for number, path in enumerate(files, 1):
        progress.show(number, path)
        outcome = importer.take(path)
        progress.clear()
        if isinstance(outcome, Exception):
            failed += 1
            if not arguments.json:
                say(problem_of(outcome), file=sys.stderr)
            continue
        for imported in outcome:
            row = asdict(imported) | {"file": str(path)}
            say(json.dumps(row, ensure_ascii=False) if arguments.json else summary_of(imported))
    if len(files) > 1 and not arguments.json:
        say(importer.total(failed))
    return 1 if failed else 0


class _Progress:
    """One line that says how far a directory is, where somebody can see it."""

    def __init__(self, files: int) -> None:
        self._files = files
        self._shown = files > 1 and sys.stderr.isatty()

    def show(self, number: int, path: Path) -> None:
        """Say which file is being read."""
        if self._shown:
            print(f"\r\x1b[2K{number}/{self._files} {ascii(path.name)[1:-1][:60]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
