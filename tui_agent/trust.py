"""Trust in a project: whether its settings, rules, commands, hooks and servers may be used.

None of them takes effect until the user trusts the project. Rules are permission rules, and servers
are MCP servers. This module finds the files that need trust, and reads and stores the user's
answer; its callers ask the user, and ignore the files of an untrusted project. The user's answers
are stored by project. A yes is stored with a digest of the files, so the user is asked again after
one of the files has changed.
"""

import hashlib
import json
import os
import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from tui_agent.claude_settings import PROJECT_FILES, ClaudeSettings, project_settings
from tui_agent.command_words import names_in
from tui_agent.files.atomic import write_atomically
from tui_agent.files.inside import read_inside
from tui_agent.files.own_git import find_project
from tui_agent.foreign_file import read_foreign
from tui_agent.foreign_servers import server_files, servers_in
from tui_agent.json_text import as_dict
from tui_agent.lazy import frozen
from tui_agent.markdown_imports import imports_of, may_import_from_outside
from tui_agent.path_checks import is_directory, is_file, is_inside, real_path
from tui_agent.places import (
    ACTING,
    FOLDER,
    MAX_DEPTH,
    OPENCODE_FILES,
    PLACES,
    SKILL_FILE,
    places_of,
)
from tui_agent.server_rows import effect_of_server
from tui_agent.text_files.encodings import settings_text, user_text

CONFIG = "config.toml"
_PLACES = [place for place in PLACES if place.kind in ACTING and place.project]
_FOLDERS = (
    FOLDER,
    *(place.project for place in _PLACES if not place.project.startswith(f"{FOLDER}/")),
)
"""Folders in a project whose files need the user's trust, such as those of commands, tools and
hooks."""
_RUN_BY_SETTINGS = {place.project for place in _PLACES if place.kind == "hooks" and place.whose}
"""Folders of hook scripts that run only if the project's settings name them."""
_SKILL_FOLDERS = {place.project for place in _PLACES if place.kind == "skills"}
_FLAT_SKILLS = {
    place.project for place in _PLACES if place.kind == "skills" and place.whose == "Pi"
}
"""Folders in which a single Markdown file counts as a skill, besides a folder with a main file."""
_MAIN_FILES = tuple(
    name for place in places_of("instructions") for name in (place.project, *place.instead) if name
)
_IMPORTING = {Path(name).name for name in _MAIN_FILES}
CODEX_HOOKS = ".codex/hooks.json"
MAX_FILES = 2_000
"""Maximum number of files in one project that need trust. A project with more files can't be
trusted."""
MAX_BYTES = 4_000_000
"""Maximum total size of a project's files that need trust, in bytes."""
MAX_MAIN_BYTES = 32 * 1024
"""Number of bytes at the start of an instruction file that are searched for imports. More is not
needed, because a model never receives the rest of the file."""

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
"""Environment variable through which hooks in Claude Code's format receive the session's
directory."""
TrustDecision = Literal["trusted", "refused"]

_KINDS = {"permissions": "permission rule", "hooks": "hook", "mcp": "MCP server"}
"""Words for a project's settings on the screen, by their table. A setting of any other table is
called a "setting"."""


@frozen
class TrustItem:
    """One thing in a project that needs the user's trust, such as a hook.

    ``text`` is its effect or description. ``place`` is the path of its file, relative to the
    project.
    """

    kind: str
    name: str
    text: str = ""
    place: str = field(default="", compare=False)


@frozen
class ProjectState:
    """Everything in a project that needs trust (``items``), and whether the project is trusted.

    ``digest`` identifies the contents of the files. ``refused`` is True if the user answered never
    to trust the project. ``problem`` says why it can't be trusted at all, "" if it can.
    """

    items: tuple[TrustItem, ...] = ()
    digest: str = ""
    trusted: bool = False
    refused: bool = False
    problem: str = ""

    @property
    def is_held_back(self) -> bool:
        """True if the project has something that needs trust, and is not trusted."""
        return bool(self.items) and not self.trusted


class TrustStore:
    """Stores whether the user trusts each project, in the JSON file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def answer(self, project: Path, digest: str) -> TrustDecision | None:
        """Return the user's stored answer for a project; None if there is none.

        The answer "trusted" applies only to files with the same ``digest``; "refused" applies to
        any files.
        """
        match self._read().get(os.path.realpath(project)):
            case {"answer": "refused"}:
                return "refused"
            case {"answer": "trusted", "digest": known} if known == digest:
                return "trusted"
        return None

    def remember(self, project: Path, digest: str, answer: TrustDecision) -> None:
        """Store the user's answer for a project.

        Raises OSError if the file can't be written.
        """
        kept = {"answer": answer, "digest": digest, "at": int(time.time())}
        self._write({**self._read(), os.path.realpath(project): kept})

    def forget(self, project: Path) -> None:
        """Delete the user's answer for a project, so that the user is asked again."""
        known = self._read()
        if known.pop(os.path.realpath(project), None) is not None:
            self._write(known)

    def _write(self, known: dict[str, Any]) -> None:
        write_atomically(
            self._path, json.dumps(known, indent=1, ensure_ascii=False).encode(), mode=0o600
        )

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return as_dict(known)


def named_files(project: Path, cwd: Path, command: str) -> Iterator[Path]:
    """Yield the existing files of a project that a shell command, run in ``cwd``, names.

    Names are resolved against each directory from the project's own down to ``cwd``, and against
    each directory that the command itself names. Quotes, variables and ``~`` are replaced as a
    shell does; a name that the command puts together in another way is not found.
    """
    variables = {**os.environ, "PWD": str(cwd), PROJECT_VARIABLE: str(cwd)}
    words = names_in(command, variables).words
    bases = _folders(project, cwd)
    named = [base / word for base in bases for word in words]
    places = [*bases, *(folder for folder in named if is_directory(folder))]
    seen: set[Path] = set()
    for place in dict.fromkeys(places):
        for word in words:
            if not is_file(place / word):
                continue
            path = _in_project(project, place / word)
            if path is not None and path not in seen:
                seen.add(path)
                yield path


def _in_project(project: Path, path: Path) -> Path | None:
    """Return a path as one below the project's directory; None if it leads out of the project."""
    if not is_inside(project, path):
        return None
    plain = Path(os.path.normpath(path))
    if plain.is_relative_to(project) and is_inside(project, plain):
        return plain
    return project / real_path(path).relative_to(real_path(project))


class PinnedFiles:
    """Detects changes to files of the project that hooks and servers run outside the sandbox.

    A file's digest is recorded when the file is first checked.
    """

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}

    def pin(self, cwd: Path, command: str) -> str:
        """Record the digests of the files that a command names.

        Files recorded before are left unchanged. Stops at a file that can't be read, and returns a
        clause about it; "" if there is none.
        """
        for path, digest, unreadable in self._named(cwd, command):
            if unreadable:
                return unreadable
            self._digests.setdefault(path, digest)
        return ""

    def problem(self, cwd: Path, command: str) -> str:
        """Return why a command must not run, as a clause about one of the files that it names.

        Returns "" if the command may run. It must not run if a file has changed since the first
        check or can't be read; the clause is about the first such file. The command runs in
        ``cwd``; only files of its project are checked.
        """
        for path, digest, unreadable in self._named(cwd, command):
            if unreadable:
                return unreadable
            if self._digests.setdefault(path, digest) != digest:
                shown = path.relative_to(find_project(cwd)).as_posix()
                return f"{shown} has changed since you trusted it; restart the program to review it"
        return ""

    def _named(self, cwd: Path, command: str) -> Iterator[tuple[Path, str, str]]:
        """Yield the files that a command names, each with its digest, or why it can't be read."""
        project = find_project(cwd)
        for path in named_files(project, cwd, command):
            try:
                digest = hashlib.sha256(read_inside(project, path)[0]).hexdigest()
            except OSError as error:
                shown = path.relative_to(project).as_posix()
                yield path, "", f"{shown} can't be read: {error.strerror or error}"
            else:
                yield path, digest, ""


def project_state(
    project: Path,
    store: TrustStore,
    *,
    cwd: Path | None = None,
    assume_trust: bool = False,
    commands: Iterable[str] = (),
) -> ProjectState:
    """Return everything in a project that needs trust, and whether the project is trusted.

    Covers the files in the project's root and the directories from there down to ``cwd``, and the
    project's files that are named in ``commands``, the commands that run outside the sandbox. With
    ``assume_trust``, the project is trusted whatever the user has answered.
    """
    acting = islice(_files(project, cwd or project), MAX_FILES + 1)
    named: dict[Path, None] = {}
    for command in commands:
        named.update(dict.fromkeys(named_files(project, cwd or project, command)))
    files = list(dict.fromkeys([*acting, *named]))
    if not files:
        return ProjectState()
    digest, problem = _digest(project, files)
    rows = list(_items(project, [path for path in files if path not in named]))
    for path in named:
        shown = path.relative_to(project).as_posix()
        rows.append(TrustItem("program", shown, "is run by a command in your settings"))
    items = tuple(rows)
    if problem:
        return ProjectState(items, digest, problem=problem)
    answer = store.answer(project, digest)
    trusted = assume_trust or answer == "trusted"
    return ProjectState(items, digest, trusted, refused=answer == "refused" and not trusted)


def project_config(project: Path) -> Path:
    return project / FOLDER / CONFIG


def _files(project: Path, cwd: Path) -> Iterator[Path]:
    """Yield every file of the project that needs trust, in a fixed order."""
    for folder in _folders(project, cwd):
        for path in server_files(project, folder):
            if is_inside(project, path):
                yield path
        for name in _FOLDERS:
            if name not in _RUN_BY_SETTINGS or is_file(project_config(project)):
                yield from _acting_below(project, folder, name)
        for settings in project_settings(project, folder):
            if any(True for _item in settings.acting()):
                yield settings.file.path
        for path in (folder / name for name in OPENCODE_FILES):
            if any(True for _item in _inline_items(project, path)):
                yield path
    if is_file(project / CODEX_HOOKS) and is_inside(project, project / CODEX_HOOKS):
        yield project / CODEX_HOOKS
    yield from importing_files(project, cwd)


def importing_files(project: Path, cwd: Path) -> Iterator[Path]:
    """Yield the instruction files of a project that may import files from outside the project.

    Covers the project's root and the directories from there down to ``cwd``.
    """
    for folder in _folders(project, cwd):
        for path in (folder / name for name in _MAIN_FILES):
            if not is_file(path) or not is_inside(project, path):
                continue
            if may_import_from_outside(_text(project, path)):
                yield path


def _folders(project: Path, cwd: Path) -> list[Path]:
    """Return the directories from the project's root down to ``cwd``, outermost first."""
    above = [folder for folder in (cwd, *cwd.parents) if folder.is_relative_to(project)]
    return sorted({project, *above})


def _inline_items(project: Path, path: Path) -> Iterator[TrustItem]:
    """Yield the agents and commands that are defined within an OpenCode settings file."""
    shown = path.relative_to(project).as_posix()
    file = read_foreign(path, shown, project)
    if file is None or not f"/{shown}".endswith(OPENCODE_FILES):
        return
    for kind in ("agent", "command"):
        for name, given in file.section(kind).items():
            text = str(given.get("description") or "") if isinstance(given, dict) else ""
            yield TrustItem(kind, name, text)


def _server_items(project: Path, path: Path) -> Iterator[TrustItem]:
    for server in servers_in(project, path):
        name = server.name
        if server.row is None:
            effect = f"can't be used: {server.problem}" if name else server.problem
            name = name or server.place
        else:
            effect = effect_of_server(server.row)
        yield TrustItem("MCP server", name, effect)


def _settings_items(project: Path, path: Path) -> Iterator[TrustItem]:
    for found in project_settings(project, path.parent.parent):
        if found.file.path == path:
            yield from _acting(found)


def _acting(settings: ClaudeSettings) -> Iterator[TrustItem]:
    for kind, name, text in settings.acting():
        yield TrustItem(kind, name, text)


def _text(project: Path, path: Path) -> str:
    try:
        return user_text(read_inside(project, path, MAX_MAIN_BYTES)[0])
    except OSError:
        return ""


def _acting_below(project: Path, folder: Path, name: str) -> Iterator[Path]:
    """Yield the files below ``folder/name`` that need the user's trust.

    Of a skill, yields only its main file.
    """
    place = folder / name
    for path in _below(project, place):
        is_flat = name in _FLAT_SKILLS and path.parent == place and path.suffix == ".md"
        if name not in _SKILL_FOLDERS or path.name == SKILL_FILE or is_flat:
            yield path


def _below(project: Path, place: Path) -> Iterator[Path]:
    """Yield the files below a directory, sorted, down to `MAX_DEPTH`.

    Files that are outside the project, through a link, are left out.
    """
    for directory, names, files in os.walk(place, followlinks=True):
        names.sort()
        inside = is_inside(project, Path(directory))
        if not inside or len(Path(directory).parts) - len(place.parts) >= MAX_DEPTH:
            names.clear()
        for name in sorted(files):
            if inside and is_inside(project, Path(directory) / name):
                yield Path(directory) / name


def _digest(project: Path, files: list[Path]) -> tuple[str, str]:
    """Return a SHA-256 digest of the files' names and contents, and why there is none.

    Either the digest or the reason is "".
    """
    if len(files) > MAX_FILES:
        return "", f"it has more than {MAX_FILES:,} files that need trust"
    whole = hashlib.sha256()
    size = 0
    for path in files:
        try:
            data, _state = read_inside(project, path, MAX_BYTES + 1)
        except OSError as error:
            return "", f"{path.relative_to(project)} cannot be read: {error.strerror or error}"
        size += len(data)
        if size > MAX_BYTES:
            return "", f"its files that need trust have more than {MAX_BYTES // 1_000_000} MB"
        name = path.relative_to(project).as_posix().encode("utf-8", "surrogateescape")
        whole.update(b"%d %s %d " % (len(name), name, len(data)))
        whole.update(data)
    return whole.hexdigest(), ""


def _items(project: Path, files: list[Path]) -> Iterator[TrustItem]:
    for path in files:
        shown = path.relative_to(project).as_posix()
        for item in _items_in(project, path, shown):
            yield replace(item, place=shown)


def _items_in(project: Path, path: Path, shown: str) -> Iterable[TrustItem]:
    rows = [*_server_items(project, path), *_inline_items(project, path)]
    if rows:
        return rows
    if shown.endswith(PROJECT_FILES):
        return _settings_items(project, path)
    if shown == CODEX_HOOKS:
        return _codex_hooks(project, path, shown)
    if path.name in _IMPORTING:
        return _outside_imports(project, path, shown)
    return _own_items(project, path, shown)


def _codex_hooks(project: Path, path: Path, shown: str) -> Iterator[TrustItem]:
    found = read_foreign(path, shown, project)
    if found is not None:
        yield from _acting(ClaudeSettings(found))


def _outside_imports(project: Path, path: Path, shown: str) -> Iterator[TrustItem]:
    imports = imports_of(_text(project, path))
    outside = ", ".join(f"@{item.path}" for item in imports if item.leads_out)
    if outside:
        yield TrustItem("import from outside", shown, outside)


def _own_items(project: Path, path: Path, shown: str) -> Iterator[TrustItem]:
    kind = ""
    for place in _PLACES:
        if f"/{place.project}/" in f"/{shown}":
            kind = ACTING[place.kind]
            break
    is_settings = path.name == CONFIG and path.parent.name == FOLDER
    what = "setting" if is_settings else kind or "file"
    try:
        text = settings_text(read_inside(project, path, MAX_BYTES)[0])
        if is_settings:
            for key, value in _leaves(tomllib.loads(text)):
                yield TrustItem(_KINDS.get(key.split(".")[0], "setting"), key, _value_text(value))
        else:
            yield TrustItem(what, shown, _summary(text, kind) if kind else "")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        yield TrustItem(what, shown, f"can't be read: {error}" if is_settings else "")


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            for row in value:
                yield f"{prefix}{key}", row
        else:
            yield f"{prefix}{key}", value


def _value_text(value: object) -> str:
    """Return a setting's value for display: text without quotes, tables as ``KEY = VALUE``.

    The pairs of a table are separated by commas.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_in_json(one)}" for key, one in value.items())
    return _in_json(value)


def _in_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _summary(text: str, kind: str) -> str:
    """Return one line that tells the user what a file does.

    This is a tool file's function names, a skill's description line, or another text's first line.
    """
    if kind == ACTING["tools"]:
        return ", ".join(re.findall(r"^(?:async )?def ([a-zA-Z]\w*)", text, re.MULTILINE))
    lines = [line.strip() for line in text.splitlines() if line.strip(" -\t")]
    if kind == ACTING["skills"]:
        lines.sort(key=lambda line: not line.startswith("description:"))
    if lines:
        return lines[0]
    return ""
