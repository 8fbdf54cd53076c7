"""Where the program keeps things."""

import warnings

import pytest

from tui_agent import paths


@pytest.fixture(autouse=True)
def _no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TUI_AGENT_DATA_DIR", raising=False)


def test_a_system_without_a_directory_for_sockets_is_nothing_to_warn_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    # platformdirs warns once for each cause in a process.
    monkeypatch.setattr("platformdirs._runtime._WARNED", set(), raising=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        directory = paths.runtime_dir()
    assert directory.is_absolute()
    assert not said


def test_a_place_for_sockets_that_is_somebody_elses_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr("platformdirs.user_runtime_dir", refused)
    assert paths.runtime_dir() == paths.data_dir() / "run"
