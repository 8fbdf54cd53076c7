"""Which session ``-c`` goes on with."""

from pathlib import Path

import pytest

from tests.support.texts import said
from tui_agent.cli.sessions import named_or_last
from tui_agent.session.errors import StoreError
from tui_agent.session.session import Session
from tui_agent.session.store import Store


def test_a_directory_without_a_session_goes_on_with_that_of_its_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    deep = project / "src/deep"
    deep.mkdir(parents=True)
    (project / ".git").mkdir()
    with Store(tmp_path / "sessions.db") as store:
        outside = store.create_session(tmp_path)
        Session(store, outside.id, estimate=lambda _entry: 1).append(said("outside"))
        with pytest.raises(StoreError):
            named_or_last(store, "", deep)
        inside = store.create_session(project)
        Session(store, inside.id, estimate=lambda _entry: 1).append(said("inside"))
        assert named_or_last(store, "", deep).id == inside.id
        assert named_or_last(store, "", project).id == inside.id
