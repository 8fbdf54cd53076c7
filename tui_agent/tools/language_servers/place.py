"""Where a language server runs: what it may see of a project, and the addresses of its files."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from tui_agent.files.secret_files import is_secret_file
from tui_agent.lazy import frozen
from tui_agent.permission import rule_path
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.view import RuleOfReading


@frozen
class ServerPlace:
    """Where a server runs: the directory, project and sandbox of the session's commands."""

    project: Path
    environment: Mapping[str, str]
    sandbox: Sandbox | None
    reading: RuleOfReading | None = None
    """The rules' verdict on reading a file, None if there are no rules about reading."""
    stands_for: Path | None = None
    """The project that this one is a copy of, whose place it has in the sandbox; None if it is
    none."""

    @property
    def root(self) -> Path:
        """The project as the server sees it."""
        if self.stands_for is not None and self.in_sandbox and self._is_at_its_place:
            return self.stands_for
        return self.project

    def keeps_back(self, path: Path) -> bool:
        """Return whether a file is kept from programs: it may hold secrets, or rules are against reading it."""
        if is_secret_file(path):
            return True
        return self.reading is not None and bool(self.reading(rule_path(path, self.project)))

    @property
    def in_sandbox(self) -> bool:
        return self.sandbox is not None and self.sandbox.active

    @property
    def _is_at_its_place(self) -> bool:
        return self.sandbox is not None and self.sandbox.state.kind == "bubblewrap"

    def uri_of(self, path: Path) -> str:
        if path.is_relative_to(self.project):
            return (self.root / path.relative_to(self.project)).as_uri()
        return path.as_uri()

    def path_of(self, uri: str) -> Path | None:
        """Return the file of a URI, None if it isn't a file's."""
        try:
            parts = urlsplit(uri)
            path = Path(os.path.normpath(os.fsdecode(unquote_to_bytes(parts.path))))
        except ValueError:
            return None
        if parts.scheme != "file" or not path.is_absolute() or "\0" in str(path):
            return None
        if path.is_relative_to(self.root):
            return self.project / path.relative_to(self.root)
        return path
