"""Installs and reads plugins in Claude Code's layout: skills, commands, agents, hooks and MCP servers.

`PluginStore` copies an added plugin into the data directory and records a digest of its files
there, in ``plugins.json``. A plugin is not used if its copy has changed. A plugin's parts are only
read here; other modules offer its skills, run its hooks and start its servers. Source: Claude
Code's plugins reference.
"""

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from tui_agent.claude_settings import effect_of_hook, hook_rows
from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.files.stamps import Stamp, settled_stamp
from tui_agent.foreign_file import ForeignFile, read_foreign
from tui_agent.json_text import objects
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.path_checks import is_inside
from tui_agent.places import Kind
from tui_agent.server_rows import effect_of_server

PLUGINS = "plugins"
"""Name of the directory with the installed plugins, within the data directory."""
MANIFEST = ".claude-plugin/plugin.json"
MARKETPLACE = ".claude-plugin/marketplace.json"
ROOT_VARIABLE = "CLAUDE_PLUGIN_ROOT"
MAX_FILES = 5_000
"""Maximum number of files in a plugin."""
MAX_BYTES = 50_000_000
"""Maximum total size of a plugin's files, in bytes."""

_REGISTRY = "plugins.json"
_NAME = LazyPattern(r"[a-z0-9][a-z0-9_-]{0,63}")
KINDS: tuple[Kind, ...] = ("skills", "commands", "agents", "output-styles")
"""The kinds of documents that a plugin may contain."""
_KEYS = {"output-styles": "outputStyles"}
"""Keys in a plugin's manifest that differ from the name of the kind of documents that they list."""
_NOT_READ = {
    "lspServers": "language servers",
    "monitors": "monitors",
}
"""Parts of a plugin's manifest that this program doesn't support: the key, and the name that is
shown to the user."""
_FOLDERS_NOT_READ = {"bin": "programs"}

Files = tuple[tuple[Path, int], ...]
"""The files of a plugin. Each is a path, and the executable bits of the file's mode."""


class PluginError(UserFacingError):
    """Raised when a plugin can't be read, added or removed. The message says why."""


@frozen
class Plugin:
    """A plugin that was read from the folder ``root``.

    ``unused`` names the parts of the plugin that this program ignores.
    """

    name: str
    description: str
    version: str
    root: Path
    manifest: Mapping[str, Any]
    unused: tuple[str, ...] = ()

    def folders(self, kind: Kind) -> list[Path]:
        """Return the plugin's folders with one kind of documents, the usual folder first.

        The other folders are named in the manifest. Folders that don't exist or are outside the
        plugin are left out.
        """
        named = _listed(self.manifest, _KEYS.get(kind, kind))
        names = [name for name in named if isinstance(name, str)]
        paths = [self.root / kind, *(self.root / name for name in names)]
        folders = []
        for path in dict.fromkeys(map(_normal, paths)):
            if path.is_dir() and path.is_relative_to(self.root):
                folders.append(path)
        return folders

    def hooks(self) -> Iterator[ForeignFile]:
        """Yield the plugin's hooks, as settings files with the table ``{"hooks": …}``.

        The hooks in the plugin's manifest come first.
        """
        yield from self._tables("hooks", "hooks/hooks.json")

    def servers(self) -> Iterator[ForeignFile]:
        """Yield the plugin's MCP servers, as settings files with the table ``{"mcpServers": …}``.

        The servers in the plugin's manifest come first.
        """
        yield from self._tables("mcpServers", ".mcp.json")

    def brings(self) -> Iterator[tuple[str, str]]:
        """Yield the kind and the name or effect of every part of the plugin.

        This is shown to the user before the plugin is installed. For parts that this program
        ignores, the kind is "no effect here".
        """
        for kind in KINDS:
            for folder in self.folders(kind):
                pattern = "*/SKILL.md" if kind == "skills" else "**/*.md"
                for path in sorted(folder.glob(pattern)):
                    name = path.parent.name if kind == "skills" else path.stem
                    yield kind.removesuffix("s"), name
        for file in self.hooks():
            for event, groups in file.section("hooks").items():
                yield "hook", f"{event}: {'; '.join(map(effect_of_hook, hook_rows(groups)))}"
        for file in self.servers():
            for name, row in file.section("mcpServers").items():
                effect = "cannot be read"
                if isinstance(row, dict):
                    effect = effect_of_server(row)
                yield "MCP server", f"{name}: {effect}"
        for text in self.unused:
            yield "no effect here", text

    def _tables(self, key: str, usual: str) -> Iterator[ForeignFile]:
        given = _listed(self.manifest, key)
        for inline in given:
            if isinstance(inline, dict):
                yield self._file(self.root / MANIFEST, inline if key in inline else {key: inline})
        names = [usual, *(name for name in given if isinstance(name, str))]
        for path in dict.fromkeys(_normal(self.root / name) for name in names):
            file = read_foreign(path, f"{self.name}: {path.name}", self.root)
            if file is not None:
                table = file.table if key in file.table else {key: file.table}
                yield self._file(path, table, file.text)

    def _file(self, path: Path, table: Mapping[str, Any], text: str = "") -> ForeignFile:
        return ForeignFile(
            path=path,
            shown=f"{self.name}: {path.name}",
            of_project=False,
            table=_replaced(table, self.root),
            text=text,
        )


@frozen
class Installed:
    """An installed plugin in the registry.

    ``source`` is the folder or address that it was copied from, ``digest`` the digest of its files.
    """

    source: str
    digest: str


class PluginStore:
    """Keeps the plugins that the user installed, and their registry, in the directory ``place``."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def installed(self) -> dict[str, Installed]:
        """Return the installed plugins by name; empty if the registry file can't be read."""
        try:
            rows = json.loads((self._place / _REGISTRY).read_bytes())
            return {
                name: Installed(str(row["source"]), str(row["digest"]))
                for name, row in rows.items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def plugins(self, problems: list[str] | None = None) -> list[Plugin]:
        """Return the installed plugins whose files have not changed since they were installed.

        Appends a sentence to ``problems`` about each plugin that is left out.
        """
        said = [] if problems is None else problems
        found: list[Plugin] = []
        for name, row in self.installed().items():
            root = self._place / name
            try:
                is_same = digest_of(root) == row.digest
                plugin = read_plugin(root)
            except (PluginError, OSError) as error:
                said.append(str(error))
                continue
            if is_same:
                found.append(plugin)
            else:
                said.append(
                    f"The plugin {name} has changed since you added it and is not used. "
                    f"To add it again: tui-agent plugin add {row.source}"
                )
        return found

    def add(self, plugin: Plugin, source: str, digest: str) -> None:
        """Copy a plugin's files into the store and register it; replace a plugin of the same name.

        ``source`` is where the plugin came from, ``digest`` is the digest of the files that the
        user agreed to.

        Raises:
            PluginError: the files can't be used (see `digest_of`), or no longer have this digest.
            OSError: the files can't be copied.
        """
        target = self._place / plugin.name
        self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
        staged = self._place / f".{plugin.name}.new"
        shutil.rmtree(staged, ignore_errors=True)
        shutil.copytree(plugin.root, staged, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        if digest_of(staged) != digest:
            raise PluginError(
                f"The plugin {plugin.name} has changed since its contents were shown. Add it again."
            )
        shutil.rmtree(target, ignore_errors=True)
        staged.rename(target)
        rows = self.installed() | {plugin.name: Installed(source, digest)}
        self._write(rows)

    def remove(self, name: str) -> None:
        """Remove a plugin and its files. Raises PluginError if no plugin has this name."""
        rows = self.installed()
        if name not in rows:
            if not rows:
                raise PluginError(f"There is no plugin {name}; no plugins are installed.")
            raise PluginError(
                f"There is no plugin {name}. Installed plugins: {', '.join(sorted(rows))}."
            )
        del rows[name]
        self._write(rows)
        shutil.rmtree(self._place / name, ignore_errors=True)

    def _write(self, rows: Mapping[str, Installed]) -> None:
        text = json.dumps({name: asdict(row) for name, row in sorted(rows.items())}, indent=1)
        write_atomically(self._place / _REGISTRY, text.encode(), mode=0o600)


def read_plugin(root: Path) -> Plugin:
    """Read and return the plugin in a folder.

    Raises:
        PluginError: the folder is not a plugin, or its manifest or name is not valid.
    """
    file = read_foreign(root / MANIFEST, MANIFEST, root)
    if file is not None and file.problem:
        raise PluginError(f"{root / MANIFEST} {file.problem}.")
    manifest: Mapping[str, Any] = {} if file is None else file.table
    name = str(manifest.get("name") or root.name).lower().replace(" ", "-").lstrip(".")
    if not _NAME.fullmatch(name):
        raise PluginError(
            f"“{name}” can't be a plugin's name; use lower-case letters, digits, hyphens and underscores."
        )
    unused = [what for key, what in _NOT_READ.items() if key in manifest]
    unused += [what for folder, what in _FOLDERS_NOT_READ.items() if (root / folder).is_dir()]
    unused += _ignored_parts(manifest, root)
    plugin = Plugin(
        name=name,
        description=str(manifest.get("description") or ""),
        version=str(manifest.get("version") or ""),
        root=root,
        manifest=manifest,
        unused=tuple(dict.fromkeys(unused)),
    )
    if file is None and not any(True for _row in plugin.brings()):
        raise PluginError(
            f"{root} is not a plugin: it has neither {MANIFEST} nor skills, commands, agents, hooks or servers."
        )
    return plugin


def _listed(manifest: Mapping[str, Any], key: str) -> list[Any]:
    """Return the value of ``key`` in a plugin's manifest as a list.

    If the value is not a list, returns a list with that single value; if there is no value, [].
    """
    given = manifest.get(key)
    if isinstance(given, list):
        return given
    return [] if given is None else [given]


def _ignored_parts(manifest: Mapping[str, Any], root: Path) -> Iterator[str]:
    """Yield descriptions of the parts of a plugin that its manifest names but this program ignores.

    These are documents given as single files or within the manifest, and missing folders and files.
    """
    for kind in KINDS:
        for name in _listed(manifest, _KEYS.get(kind, kind)):
            if not isinstance(name, str):
                yield f"{kind} described in {MANIFEST}"
            elif not (root / name).is_dir():
                yield f"{kind}: {name} (only folders are read)"
    for key in ("hooks", "mcpServers"):
        for name in _listed(manifest, key):
            if isinstance(name, str) and not (root / name).is_file():
                yield f"{key}: {name} (there is no such file)"


def market_of(root: Path) -> dict[str, Path | str]:
    """Return the plugins of the marketplace in ``root`` by name; empty if there is none.

    Each value is the folder of the plugin. If the plugin is kept elsewhere, the value is its
    source, as JSON.
    """
    file = read_foreign(root / MARKETPLACE, MARKETPLACE, root)
    if file is None or file.problem:
        return {}
    base = _normal(root / str(file.section("metadata").get("pluginRoot") or "."))
    found: dict[str, Path | str] = {}
    for row in objects(file.table.get("plugins")):
        source = row.get("source")
        place: Path | str = json.dumps(source)
        if isinstance(source, str) and (path := _normal(base / source)).is_relative_to(root):
            place = path
        found[str(row.get("name"))] = place
    return found


def digest_of(root: Path) -> str:
    """Return a SHA-256 digest of the names, executable bits and contents of a folder's files, as hex.

    Folders named ``.git`` are left out. If no file has changed since the last call, the files are not
    read again.

    Raises:
        PluginError: the folder is too large, has a link that leads out of it, or has a file that
            can't be read or isn't a regular file.
    """
    files = tuple(_files(root))
    stamps = tuple(settled_stamp(path) for path, _mode in files)
    if None in stamps:
        return _digest(root, files)
    return _digest_once(root, files, stamps)


@lru_cache(maxsize=50)
def _digest_once(root: Path, files: Files, _stamps: tuple[Stamp | None, ...]) -> str:
    return _digest(root, files)


def _digest(root: Path, files: Files) -> str:
    whole = hashlib.sha256()
    for path, mode in files:
        data = path.read_bytes()
        shown = path.relative_to(root).as_posix().encode("utf-8", "surrogateescape")
        whole.update(b"%d %s %d %d " % (len(shown), shown, len(data), mode))
        whole.update(data)
    return whole.hexdigest()


def _files(root: Path) -> Iterator[tuple[Path, int]]:
    """Yield a plugin's files with their executable bits, sorted by directory and name.

    Raises PluginError for the same reasons as `digest_of`.
    """
    count = 0
    size = 0
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in (*folders, *names):
            if not is_inside(root, Path(directory) / name):
                raise PluginError(f"{Path(directory) / name} leads out of the plugin.")
        for name in sorted(names):
            path = Path(directory) / name
            count += 1
            try:
                status = path.stat()
            except OSError as error:
                raise PluginError(f"{path} can't be read: {error.strerror}.") from None
            if not stat.S_ISREG(status.st_mode):
                raise PluginError(f"{path} is not a regular file.")
            size += status.st_size
            if count > MAX_FILES or size > MAX_BYTES:
                raise PluginError(
                    f"{root} has more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} MB."
                )
            yield path, status.st_mode & 0o111


def _normal(path: Path) -> Path:
    return Path(os.path.normpath(path))


def _replaced(value: Any, root: Path) -> Any:
    """Return a JSON value in which ``${CLAUDE_PLUGIN_ROOT}`` is replaced by the plugin's directory.

    Keys are not changed.
    """
    if isinstance(value, dict):
        return {key: _replaced(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, root) for item in value]
    if isinstance(value, str):
        return value.replace(f"${{{ROOT_VARIABLE}}}", str(root))
    return value
