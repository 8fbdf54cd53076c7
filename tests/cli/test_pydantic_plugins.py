"""Plugins of pydantic: none is looked for."""

import pytest
from pydantic.plugin import _loader

from tui_agent.cli.logs import skip_plugins


def test_what_is_installed_is_not_read_in_search_of_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(**_group: str) -> None:
        raise AssertionError("every installed package was read")

    monkeypatch.setattr(_loader, "_plugins", None)
    monkeypatch.setattr(_loader, "entry_points", read)
    skip_plugins()
    assert not list(_loader.get_plugins())
