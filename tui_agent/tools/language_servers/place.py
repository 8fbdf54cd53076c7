"""Decides which files of a project a language server may see, and converts paths and URIs."""

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
    """The project for which a language server runs, with the server's environment and sandbox."""

    project: Path
    environment: Mapping[str, str]
    sandbox: Sandbox | None
    reading: RuleOfReading | None = None
    """The user's permission rules about reading files of the project; None if there are none."""
    stands_for: Path | None = None
    """The original project if ``project`` is a copy of it; otherwise None. In the bubblewrap
    sandbox, the copy is mounted at the path of the original project."""

    @property
    def root(self) -> Path:
        """The project's directory as the server sees it."""
        if self.stands_for is not None and self.in_sandbox and self._is_at_its_place:
            return self.stands_for
        return self.project

    def withholds(self, path: Path) -> bool:
        """Return True if the server must not see a file.

        This applies to secrets, and to files whose reading a permission rule denies or asks about.
        ``path`` is absolute.
        """
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
        """Return the URI under which the language server sees a file; ``path`` is absolute."""
        if path.is_relative_to(self.project):
            return (self.root / path.relative_to(self.project)).as_uri()
        return path.as_uri()

    def path_of(self, uri: str) -> Path | None:
        """Return the absolute path of the file that a server's URI names; None for other URIs."""
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
