"""``tui-agent sessions export`` and ``import``: write sessions to files and read them.

exporting.py and importing.py in ``tui_agent.app`` do the work.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from tui_agent.app.exporting import (
    ExportFormat,
    ExportOrder,
    export_text,
    format_of,
    unknown_ending,
    write_export,
)
from tui_agent.app.format import short_path
from tui_agent.app.importing import Importer
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.output import say, say_json, when
from tui_agent.path_checks import is_directory
from tui_agent.session.formats.importing import Imported, find_sessions
from tui_agent.session.formats.table import files_of
from tui_agent.session.store import Store
from tui_agent.whole_numbers import whole_number


def run_export(store: Store, arguments: Namespace) -> int:
    name, separator, entry = arguments.id.partition("#")
    leaf = whole_number(entry)
    if separator and leaf is None:
        raise UsageError(
            f"“{entry}” is not the number of an entry. Write ID#412 for the branch that ends at entry 412."
        )
    if entry and arguments.all:
        raise UsageError("ID#N exports one branch, so leave out --all.")
    info = store.session(name)
    output: Path | None = arguments.output
    order = ExportOrder(
        info.id,
        _export_format(arguments.format, output),
        whole=_is_whole(arguments),
        leaf=leaf,
        redacted=arguments.redact,
    )
    if output is None:
        say(export_text(store, order), end="")
        return 0
    try:
        path, size = write_export(store, order, output, replaces=arguments.force)
    except FileExistsError as error:
        raise UsageError(f"{error.filename} already exists; --force replaces it.") from None
    except OSError as error:
        place = error.filename or output
        say(f"{place} can't be written: {error.strerror or error}.", file=sys.stderr)
        return 1
    written = f"Wrote {path} ({_size_text(size)})"
    if order.redacted:
        written += " without secrets"
    say(f"{written}.", file=sys.stderr)
    return 0


def _export_format(named: str | None, output: Path | None) -> ExportFormat:
    """Return the format ``named`` or, without one, that of the file's suffix; by default Markdown.

    Raises:
        UsageError: the file's suffix belongs to no format.
    """
    if named:
        return ExportFormat(named)
    if output is None:
        return ExportFormat.MARKDOWN
    if not is_directory(output) and (why := unknown_ending(str(output))):
        raise UsageError(f"{why} To use another suffix, add --format.")
    return format_of(str(output)) or ExportFormat.MARKDOWN


def _is_whole(arguments: Namespace) -> bool | None:
    """Return whether to export every branch; None to use the format's default."""
    if arguments.all:
        return True
    if arguments.branch:
        return False
    return None


def run_import(store: Store, arguments: Namespace) -> int:
    """Import every session of a file or directory; skip files that can't be read, and report them.

    With ``--detect``, lists other programs' sessions on this machine, or imports one of them by its
    number. Returns the exit code.
    """
    if arguments.detect is not None and arguments.file is not None:
        raise UsageError("--detect finds the files itself, so leave out the file.")
    if arguments.detect is not None:
        return _run_detect(store, arguments)
    if arguments.file is None:
        raise UsageError(
            "Name a file or directory, or use --detect to list other programs' sessions on this machine."
        )
    return _import_files(store, files_of(arguments.file), _source(arguments), arguments)


def _source(arguments: Namespace) -> str | None:
    """Return the format that ``--from`` names; None to detect the format of each file."""
    if arguments.source == "auto":
        return None
    return str(arguments.source)


def _import_files(
    store: Store, files: Sequence[Path], source: str | None, arguments: Namespace
) -> int:
    importer = Importer(
        store,
        source=source,
        skip_damaged=arguments.skip_damaged,
        keep_directories=arguments.keep_directories,
    )
    for path, imported, lines in importer.run(files):
        if arguments.json:
            _say_imported(path, imported, lines)
            continue
        stream = sys.stderr if imported is None else sys.stdout
        for line in lines:
            say(line, file=stream)
    if len(files) > 1 and not arguments.json:
        say(importer.total())
    return 1 if importer.failed else 0


def _say_imported(path: Path, imported: Sequence[Imported] | None, lines: Sequence[str]) -> None:
    if imported is None:
        say_json({"session_id": None, "came": "refused", "refused": lines, "file": str(path)})
        return
    for one in imported:
        row = {field.name: getattr(one, field.name) for field in fields(one)}
        say_json(row | {"file": str(path)})


def _run_detect(store: Store, arguments: Namespace) -> int:
    found = find_sessions(Path.home())
    if source := _source(arguments):
        found = [one for one in found if one.format == source]
    if number := arguments.detect:
        if number > len(found):
            raise UsageError(
                f"There is no session {number}. Number of sessions that --detect lists: {len(found)}."
            )
        chosen = found[number - 1]
        return _import_files(store, [chosen.path], chosen.format, arguments)
    if arguments.json:
        for number, one in enumerate(found, 1):
            say_json(asdict(one) | {"path": str(one.path), "number": number})
        return 0
    if not found:
        say("No sessions of other programs were found on this machine.")
        return 0
    for number, one in enumerate(found, 1):
        project = short_path(one.project) if one.project else "-"
        facts = f"{when(one.changed_at)}  {_size_text(one.size):>9}"
        say(f"{number:>4}  {one.program:<12}  {facts}  {project}")
    say("Import one: tui-agent sessions import --detect NUMBER", file=sys.stderr)
    return 0


def _size_text(size: int) -> str:
    if size >= 1_000_000:
        return f"{size / 1_000_000:,.1f} MB"
    return f"{size / 1000:,.1f} kB"
