"""The ``edit`` tool: replaces texts in one file. If one replacement fails, none is made."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, model_validator

from tui_agent.editing.diffs import diff_texts
from tui_agent.errors import ToolError
from tui_agent.files.secret_files import file_holds_secret, shown_line
from tui_agent.lazy import frozen
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.encodings import odd_bytes_shown
from tui_agent.text_files.lines import line_at, lines_of
from tui_agent.text_files.notebook import opened
from tui_agent.text_files.reading import load
from tui_agent.tools.base import ToolContext, ToolInput, plain_name
from tui_agent.tools.changes import (
    MAX_CHANGED_BYTES,
    Change,
    ChangeInput,
    ChangeTool,
    refuse_left_out,
    refuse_unless_file,
    stale,
)
from tui_agent.tools.outputs import counted
from tui_agent.tools.paths import Location, find, missing

if TYPE_CHECKING:
    from tui_agent.editing.matching import Replaced

_SMALL_FILE_LINES = 40
"""Maximum number of lines of a file that the error message about a failed edit quotes as a whole.
"""
MAX_SHOWN_LINES = 60
"""Maximum number of lines of the changed places, and around them, that the model is shown."""

_HUNK_EDGE = 8
"""Number of lines shown at the beginning, and at the end, of a long changed section."""
_LINE_CHARS = 160
"""Maximum number of characters that are shown of a line."""
_OTHER_NAMES = {
    **dict.fromkeys(
        ("oldstring", "oldstr", "oldtext", "oldcontent", "search", "find", "original"), "old"
    ),
    **dict.fromkeys(
        ("newstring", "newstr", "newtext", "newcontent", "replace", "replacement", "updated"), "new"
    ),
    "replaceall": "all",
}
"""The field of this tool for each name that the field has in other programs' tools. The names are
in lower case, without hyphens and underscores."""

_MIN_PRESENT_CHARS = 8
"""Minimum length, in characters, of a new text for the error message to say that the file already
contains it. The message says so if the old text isn't found."""


class Edit(ToolInput):
    """Replaces the only occurrence of ``old`` with ``new``, or all of them if ``all`` is set."""

    old: str
    new: str
    all: bool = False

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, values: Any) -> Any:
        if isinstance(values, dict):
            return _renamed(values)
        return values


class EditInput(ChangeInput):
    """Arguments of the ``edit`` tool."""

    edits: tuple[Edit, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _one_edit(cls, values: Any) -> Any:
        """Convert the arguments of an ``edit`` call so that ``edits`` is a list of edits.

        Models may give one edit instead of the list, give ``old``, ``new`` and ``all`` beside the
        path, or repeat the path in each edit.
        """
        if not isinstance(values, dict):
            return values
        values = _renamed(values)
        if "edits" not in values and "old" in values and "new" in values:
            single = {name: values.pop(name) for name in ("old", "new", "all") if name in values}
            return values | {"edits": [single]}
        if isinstance(values.get("edits"), dict):
            values["edits"] = [values["edits"]]
        edits = values.get("edits")
        if not isinstance(edits, list | tuple) or not all(isinstance(edit, dict) for edit in edits):
            return values
        if "all" in values:
            # If ``all`` is given beside the list, it applies to every edit that doesn't set it.
            beside = {"all": values.pop("all")}
            edits = [beside | edit for edit in edits]
            values["edits"] = edits
        named = {str(edit["path"]) for edit in edits if "path" in edit}
        path = values.get("path") or next(iter(named), None)
        if named != {path}:
            return values
        values["path"] = path
        values["edits"] = [_without_path(edit) for edit in edits]
        return values


@frozen
class _AppliedEdits:
    """The result of applying all edits of a call.

    ``text`` is the new text of the file, ``count`` the number of changed places, and ``loosely``
    the kinds of differences that were ignored to find these places.
    """

    text: str
    count: int
    loosely: tuple[str, ...]


class EditTool(ChangeTool[EditInput]):
    """Replaces texts in one file. The result shows the changed lines."""

    name = "edit"
    description = (
        "Replace text in a file. Copy old exactly, without line numbers, and long enough to occur "
        "only once; all replaces every occurrence."
    )
    Input = EditInput
    instead: ClassVar[Mapping[str, str]] = {"content": "to replace a whole file use write"}
    traits = ToolTraits(
        basic=True,
        kind="edit",
        other_names="editfile strreplace replace replaceinfile searchreplace searchandreplace multiedit applyedit",
        imported_names=("multi_edit", "patch", "apply_patch"),
        writes=True,
        quotes=True,
        says_arguments=True,
    )

    def place(self, arguments: EditInput, context: ToolContext) -> Location:
        return find(arguments.path, context)

    def plan(self, arguments: EditInput, location: Location, context: ToolContext) -> Change:
        try:
            location.real.lstat()
        except (FileNotFoundError, NotADirectoryError):
            raise _absent(location, context) from None
        refuse_unless_file(location)
        if context.reads.changed_since(location.real):
            raise stale(location)
        file = load(location.real, location.shown, max_bytes=MAX_CHANGED_BYTES)
        notebook = opened(location.real.name, file.text)
        before = file.text if notebook is None else notebook.text
        try:
            done = _apply_all(arguments.edits, before, location)
            written = done.text if notebook is None else notebook.changed(done.text)
        except ToolError:
            if notebook is None or not all(edit.old in file.text for edit in arguments.edits):
                raise
            # The old texts occur only in the notebook's JSON, so the model means that, and not the
            # cells' text.
            before = file.text
            done = _apply_all(arguments.edits, before, location)
            written = done.text
        refuse_left_out(before, done.text, location)
        if written == file.text:
            raise ToolError(f"The edits don't change {location.shown}; nothing was written.")
        data = file.encoded(written, location.shown)
        diff = diff_texts(location.pattern, before, done.text)
        return Change(before, done.text, data, diff=diff, count=done.count, loosely=done.loosely)

    def words(self, arguments: EditInput, location: Location, change: Change, note: str) -> str:  # noqa: ARG002 - as inherited
        places = counted(change.count or 0, "place")
        diff = change.diff
        head = f"Edited {location.shown}: {places}, +{diff.additions} -{diff.deletions}"
        if change.loosely:
            head += f" (old differed from the file in {', '.join(change.loosely)})"
        lines = lines_of(odd_bytes_shown(change.text))
        if not lines:
            return f"{head}.{note} The file is empty now."
        now = _changed_lines(location.real, lines, diff.changed)
        return "\n".join([f"{head}.{note} Now:", *now])


def _apply_all(edits: Sequence[Edit], before: str, location: Location) -> _AppliedEdits:
    """Apply edits to a text, in order. Raises ToolError, with the reason, if one fails."""
    text = before
    count = 0
    loosely: dict[str, None] = {}
    for number, edit in enumerate(edits, 1):
        try:
            done = _apply_edit(text, edit)
        except ToolError as error:
            reason = _reason(error, edit, before=before, now=text)
            if len(edits) > 1:
                reason = f"Nothing was changed. Edit {number} of {len(edits)}: {reason}"
            if file_holds_secret(location.real):
                # The further lines of the reason quote the file. They may contain secrets, so they
                # are left out.
                reason = reason.partition("\n")[0]
            raise ToolError(reason) from None
        text = done.text
        count += done.count
        if done.loosely:
            loosely[done.loosely] = None
    return _AppliedEdits(text, count, tuple(loosely))


def _absent(location: Location, context: ToolContext) -> ToolError:
    message = str(missing(location, context))
    return ToolError(message if "?" in message else f"{message} To create it use write.")


def _apply_edit(text: str, edit: Edit) -> "Replaced":
    from tui_agent.editing.matching import NoMatchError, Replacement, replace

    if not edit.old:
        raise ToolError("old is empty. To fill or replace a whole file, use write.")
    if edit.old == edit.new:
        raise ToolError("old and new are the same.")
    try:
        return replace(text, Replacement(edit.old, edit.new, edit.all))
    except NoMatchError as error:
        raise ToolError(str(error)) from None


def _reason(error: ToolError, edit: Edit, *, before: str, now: str) -> str:
    """Return the reason why an edit failed, for the model.

    The reason mentions whether an earlier edit of the call changed the same place, or whether the
    file already contains the new text. It ends with the file's text if that is short, unless
    ``error`` quotes lines of the file. ``before`` is the file's text before all edits, and ``now``
    is the text before this edit.
    """
    reason = str(error)
    if edit.old and edit.old != edit.new and edit.old not in now:
        if edit.old in before:
            reason = "an earlier edit changed the same place. Combine the two into one edit."
        elif len(edit.new.strip()) >= _MIN_PRESENT_CHARS and edit.new in now:
            line = line_at(now, now.index(edit.new))
            reason = f"old was not found, but the file already contains new, at line {line}."
    if "\n" in reason:
        return reason
    return f"{reason}{_whole(before)}"


def _whole(text: str) -> str:
    """Return the lines of a small file with numbers, as ``read`` shows them; "" for a larger file.

    If the file is empty, the result is a sentence that says so.
    """
    if not text:
        return " The file is empty."
    lines = lines_of(text)
    if len(lines) > _SMALL_FILE_LINES or max(map(len, lines), default=0) > _LINE_CHARS:
        return ""
    rows = [f"{number}\t{line.rstrip()}" for number, line in enumerate(lines, 1)]
    return "\n".join(["", "The file is:", *rows])


def _without_path(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in edit.items() if name != "path"}


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    renamed = {}
    for key, value in values.items():
        name = _OTHER_NAMES.get(plain_name(key), key)
        renamed[key if name in values else name] = value
    return renamed


# -- answers to the model --------------------------------------------------------------------------


def _changed_lines(path: Path, lines: list[str], spans: tuple[range, ...]) -> list[str]:
    """Return each changed place with the line before and after it, numbered as by ``read``.

    "..." separates the changed places, replaces the middle of a long place, and ends the list if it
    is cut at ``MAX_SHOWN_LINES``. ``spans`` are indexes into ``lines``, from 0.
    """
    shown: list[str] = []
    for span in _joined(spans, len(lines)):
        rows = _rows(path, lines, span)
        if shown and len(shown) + len(rows) > MAX_SHOWN_LINES:
            return [*shown, "..."]
        if shown:
            shown.append("...")
        shown += rows
    return shown


def _joined(spans: Iterable[range], total: int) -> list[range]:
    """Extend each range of lines by one line on both sides, and merge ranges that touch."""
    joined: list[range] = []
    for span in spans:
        start = max(span.start - 1, 0)
        end = min(span.stop + 1, total)
        if joined and start <= joined[-1].stop:
            start = joined.pop().start
        joined.append(range(start, end))
    return joined


def _rows(path: Path, lines: list[str], span: range) -> list[str]:
    rows = []
    for at in span:
        line = shown_line(path, at + 1, lines[at].rstrip())
        if len(line) > _LINE_CHARS:
            line = f"{line[:_LINE_CHARS]}…"
        rows.append(f"{at + 1}\t{line}")
    if len(rows) <= 2 * _HUNK_EDGE:
        return rows
    return [*rows[:_HUNK_EDGE], "...", *rows[-_HUNK_EDGE:]]
