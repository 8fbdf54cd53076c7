"""The ``edit`` tool: parts of one file, all of a call's edits or none."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, model_validator

from tui_agent.editing.diffs import FileDiff, diff_texts
from tui_agent.errors import ToolError
from tui_agent.files.secret_files import file_holds_secret, shown_diff, shown_line
from tui_agent.lazy import frozen
from tui_agent.permission import Permission, PermissionNeed
from tui_agent.session.entries import ToolMetadata
from tui_agent.session.tool_traits import ToolTraits
from tui_agent.text_files.encodings import odd_bytes_shown
from tui_agent.text_files.lines import line_at, lines_of
from tui_agent.text_files.notebook import opened
from tui_agent.text_files.reading import load
from tui_agent.text_files.replacing import replace_file
from tui_agent.tools.base import Tool, ToolContext, ToolInput, ToolResult
from tui_agent.tools.changes import (
    MAX_CHANGED_BYTES,
    change_needs,
    refuse_left_out,
    refuse_unless_file,
    stale,
    validity_note,
)
from tui_agent.tools.outputs import counted
from tui_agent.tools.paths import Location, explain, find, locate, missing, relocate

if TYPE_CHECKING:
    from tui_agent.editing.matching import Replaced

_SMALL_FILE_LINES = 40
"""Lines of a file that is shown whole where an edit of it can't be made."""
MAX_SHOWN_LINES = 60
"""Lines of the changed file that the model is shown."""

_HUNK_EDGE = 8
_LINE_CHARS = 160
_OTHER_NAMES = {
    **dict.fromkeys(
        ("oldstring", "oldstr", "oldtext", "oldcontent", "search", "find", "original"), "old"
    ),
    **dict.fromkeys(
        ("newstring", "newstr", "newtext", "newcontent", "replace", "replacement", "updated"), "new"
    ),
    "replaceall": "all",
}
"""Names of other programs' tools, without case, hyphens and underscores."""

_TOLD_CHARS = 8
"""A shorter text is likely to be in a file without an edit having put it there."""


class Edit(ToolInput):
    """One replacement."""

    old: str
    new: str
    all: bool = False

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, values: Any) -> Any:
        if isinstance(values, dict):
            return _renamed(values)
        return values


class EditInput(ToolInput):
    """Arguments of ``edit``."""

    path: str
    edits: tuple[Edit, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _one_edit(cls, values: Any) -> Any:
        """Take a single edit, in place of the list or spread over the arguments."""
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
            # Beside the edits it means each of them.
            beside = {"all": values.pop("all")}
            values["edits"] = edits = [beside | edit for edit in edits]
        named = {str(edit["path"]) for edit in edits if "path" in edit}
        path = values.get("path") or next(iter(named), None)
        if named != {path}:
            return values
        return values | {
            "path": path,
            "edits": [{key: edit[key] for key in edit if key != "path"} for edit in edits],
        }


@frozen
class _Plan:
    before: str
    data: bytes
    text: str
    diff: FileDiff
    count: int
    loosely: tuple[str, ...]


@frozen
class _Done:
    """A text after all edits: how many places were changed, and the differences that were ignored."""

    text: str
    count: int
    loosely: tuple[str, ...]


class EditTool(Tool[EditInput]):
    """Replaces text in a file."""

    name = "edit"
    description = (
        "Replace text in a file. Copy old exactly, without line numbers, with enough lines to be "
        "there only once; all replaces every place."
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

    def needs(self, arguments: EditInput, context: ToolContext) -> tuple[PermissionNeed, ...]:
        location = find(arguments.path, context)

        def diff() -> str:
            try:
                return _plan(arguments, location, context).diff.text
            except (FileNotFoundError, NotADirectoryError):
                raise _absent(location, context) from None

        return change_needs(location, diff, context)

    async def run(self, arguments: EditInput, context: ToolContext) -> ToolResult:
        location = relocate(arguments.path, Permission.EDIT, context)
        try:
            plan = await asyncio.to_thread(_edit, arguments, location, context)
        except (FileNotFoundError, NotADirectoryError):
            raise await asyncio.to_thread(_absent, location, context) from None
        except OSError as error:
            raise explain(error, location.shown) from error
        diff = await asyncio.to_thread(
            shown_diff, location.real, (plan.before, plan.text), plan.diff.text
        )
        head = f"Edited {location.shown}: {counted(plan.count, 'place')}, +{plan.diff.additions} -{plan.diff.deletions}"
        if plan.loosely:
            head += f" (old differed from the file in {', '.join(plan.loosely)})"
        note = await asyncio.to_thread(validity_note, location, plan.before, plan.text)
        lines = lines_of(odd_bytes_shown(plan.text))
        now = await asyncio.to_thread(_changed_lines, location.real, lines, plan.diff.changed)
        return ToolResult(
            "\n".join([f"{head}.{note} Now:", *now]),
            title=location.shown,
            metadata=ToolMetadata(
                path=location.pattern,
                diff=diff,
                additions=plan.diff.additions,
                deletions=plan.diff.deletions,
                count=plan.count,
                modified_files=(location.pattern,),
            ),
        )

    def touches(self, arguments: EditInput, context: ToolContext) -> tuple[Path, ...]:
        return (locate(arguments.path, context).real,)

    def title(self, arguments: EditInput) -> str:
        return arguments.path


def _edit(arguments: EditInput, location: Location, context: ToolContext) -> _Plan:
    plan = _plan(arguments, location, context)
    replace_file(location.real, plan.data)
    context.reads.note(location.real)
    return plan


def _plan(arguments: EditInput, location: Location, context: ToolContext) -> _Plan:
    location.real.lstat()
    refuse_unless_file(location)
    if context.reads.changed_since(location.real):
        raise stale(location)
    file = load(location.real, location.shown, max_bytes=MAX_CHANGED_BYTES)
    notebook = opened(location.real.name, file.text)
    before = file.text if notebook is None else notebook.text
    try:
        done = _all(arguments.edits, before, location)
        written = done.text if notebook is None else notebook.changed(done.text)
    except ToolError:
        if notebook is None or not all(edit.old in file.text for edit in arguments.edits):
            raise
        # It is meant as it is on disk.
        before = file.text
        done = _all(arguments.edits, before, location)
        written = done.text
    refuse_left_out(before, done.text, location)
    if written == file.text:
        raise ToolError(f"The edits leave {location.shown} as it is; nothing was written.")
    return _Plan(
        before=before,
        data=file.encoded(written, location.shown),
        text=done.text,
        diff=diff_texts(location.pattern, before, done.text),
        count=done.count,
        loosely=done.loosely,
    )


def _all(edits: Sequence[Edit], before: str, location: Location) -> _Done:
    """Make all edits, one after the other.

    Raises:
        ToolError: one of them can't be made.
    """
    text = before
    count = 0
    loosely: dict[str, None] = {}
    for number, edit in enumerate(edits, 1):
        try:
            done = _one(text, edit)
        except ToolError as error:
            failed = _failed(error, edit, (number, len(edits)), before=before, now=text)
            # The lines that it quotes may be those with secrets.
            raise (
                ToolError(str(failed).split("\n")[0])
                if file_holds_secret(location.real)
                else failed
            ) from None
        text = done.text
        count += done.count
        if done.loosely:
            loosely[done.loosely] = None
    return _Done(text, count, tuple(loosely))


def _absent(location: Location, context: ToolContext) -> ToolError:
    message = str(missing(location, context))
    return ToolError(message if "?" in message else f"{message} To create it use write.")


def _one(text: str, edit: Edit) -> "Replaced":
    from tui_agent.editing.matching import NoMatchError, Replacement, replace

    if not edit.old:
        raise ToolError("old is empty. To fill or replace a whole file use write.")
    if edit.old == edit.new:
        raise ToolError("old and new are the same.")
    try:
        return replace(text, Replacement(edit.old, edit.new, edit.all))
    except NoMatchError as error:
        raise ToolError(str(error)) from None


def _failed(
    error: ToolError, edit: Edit, which: tuple[int, int], *, before: str, now: str
) -> ToolError:
    """Return the error for an edit that can't be made: which it is, and the changes in between."""
    reason = str(error)
    if edit.old and edit.old != edit.new and edit.old not in now:
        if edit.old in before:
            reason = "an edit before it changed the same place. Make one edit of them."
        elif len(edit.new.strip()) >= _TOLD_CHARS and edit.new in now:
            reason = f"old was not found, but new is there already, at line {line_at(now, now.index(edit.new))}."
    if "\n" not in reason:
        reason += _whole(before)
    number, total = which
    return ToolError(
        reason if total == 1 else f"Nothing was changed. Edit {number} of {total}: {reason}"
    )


def _whole(text: str) -> str:
    """Return a small file as ``read`` shows it, "" for a larger one."""
    lines = lines_of(text)
    if len(lines) > _SMALL_FILE_LINES or max(map(len, lines), default=0) > _LINE_CHARS:
        return ""
    rows = [f"{number}\t{line.rstrip()}" for number, line in enumerate(lines, 1)]
    return "\n".join(["", "The file is:", *rows])


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    names = {
        key: _OTHER_NAMES.get(key.replace("_", "").replace("-", "").lower(), key) for key in values
    }
    return {names[key] if names[key] not in values else key: value for key, value in values.items()}


# -- answers to the model -----------------------------------------------------------------------------------


def _changed_lines(path: Path, lines: list[str], spans: tuple[range, ...]) -> list[str]:
    """Return each changed place with a line around it, numbered as ``read`` does, long places in part."""
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
    """Return the lines of each place and of one line around it; places that touch are one."""
    joined: list[range] = []
    for span in spans:
        start = max(span.start - 1, 0)
        end = min(span.stop + 1, total)
        if joined and start <= joined[-1].stop:
            start = joined.pop().start
        joined.append(range(start, end))
    return joined


def _rows(path: Path, lines: list[str], span: range) -> list[str]:
    rows = [
        f"{at + 1}\t{shown_line(path, at + 1, lines[at].rstrip())[:_LINE_CHARS]}" for at in span
    ]
    if len(rows) <= 2 * _HUNK_EDGE:
        return rows
    return [*rows[:_HUNK_EDGE], "...", *rows[-_HUNK_EDGE:]]
