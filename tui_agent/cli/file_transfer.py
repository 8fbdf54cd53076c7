"""Sessions that leave and come in by the screen's commands; what does it is imported when it is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tui_agent.app.services import ImportOutcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_agent.app.exporting import ExportOrder
    from tui_agent.session.store import Store


class FileTransfer:
    """The ``TransferPort`` over a store. ``window_of`` returns a model's context window in tokens."""

    def __init__(self, store: Store, window_of: Callable[[str], int] = lambda _model: 0) -> None:
        self._store = store
        self._window_of = window_of

    def text(self, order: ExportOrder) -> str:
        """Return what would be exported."""
        from tui_agent.app.exporting import export_text

        return export_text(self._store, order, os.environ, self._window_of)

    def export(self, order: ExportOrder, target: Path) -> Path:
        """Write a session to a file that is not there yet, or into a directory."""
        from tui_agent.app.exporting import write_export

        if target.is_dir():
            info = self._store.session(order.session_id)
            target /= order.file_name(info.title or info.first_message, target)
        if target.exists():
            raise FileExistsError(str(target))
        write_export(self._store, order, target, os.environ, self._window_of)
        return target

    def import_files(self, path: Path) -> ImportOutcome:
        """Take in a file, or every file of a directory."""
        from tui_agent.app.importing import import_all

        told, imported, failed = import_all(self._store, path.expanduser())
        return ImportOutcome(told, imported[0].session_id if len(imported) == 1 else None, failed)
