"""How servers are configured and named."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.agent.mcp.records import MAX_LENGTH, portable_name, tidy_schema
from tui_agent.agent.mcp.settings import McpConfigError, McpServerSettings, expanded, find_servers

OURS = {"tracker": McpServerSettings(command="ours")}


def project(tmp_path: Path, servers: object) -> Path:
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return tmp_path


def test_a_project_is_not_asked_before_it_is_trusted(tmp_path: Path) -> None:
    here = project(tmp_path, {"build": {"command": "evil"}})
    assert [spec.name for spec in find_servers(OURS, here, trusted=False).specs] == ["tracker"]
    found = find_servers(OURS, here, trusted=True)
    assert [(spec.name, spec.source) for spec in found.specs] == [("tracker", "user"), ("build", "project")]


def test_a_project_cannot_take_the_place_of_the_users_server(tmp_path: Path) -> None:
    here = project(tmp_path, {"tracker": {"command": "theirs"}})
    (spec,) = find_servers(OURS, here, trusted=True).specs
    assert spec.settings.command == "ours"


def test_what_is_wrong_in_a_projects_file_is_said_and_the_rest_is_used(tmp_path: Path) -> None:
    here = project(tmp_path, {"good": {"type": "http", "url": "https://x.test/mcp"}, "bad": {"args": []}})
    found = find_servers({}, here, trusted=True)
    assert [spec.name for spec in found.specs] == ["good"]
    assert found.specs[0].transport == "http"
    assert "bad: a server has either a command or a url" in found.problems[0]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": 3}'])
def test_a_projects_file_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / ".mcp.json").write_text(text)
    assert ".mcp.json" in find_servers({}, tmp_path, trusted=True).problems[0]


def test_variables_are_filled_in_everywhere() -> None:
    settings = McpServerSettings(url="https://${HOST}/mcp", headers={"Authorization": "Bearer ${KEY:-none}"})
    filled = expanded(settings, {"HOST": "x.test"})
    assert (filled.url, filled.headers) == ("https://x.test/mcp", {"Authorization": "Bearer none"})
    with pytest.raises(McpConfigError, match="HOST is not set"):
        expanded(settings, {})


@given(st.text(min_size=1, max_size=90), st.text(min_size=1, max_size=90), st.booleans())
def test_names_are_what_every_provider_takes(server: str, tool: str, taken: bool) -> None:
    plain = portable_name(server, tool)
    name = portable_name(server, tool, taken={plain} if taken else ())
    assert name.replace("-", "_").isascii()
    assert name.replace("-", "_").isidentifier()
    assert len(name) <= MAX_LENGTH
    assert (name == plain) is not taken


def test_names_that_differ_only_in_what_is_left_out_are_told_apart() -> None:
    first = portable_name("s", "a.b")
    assert portable_name("s", "a/b", taken={first}) != first
    assert portable_name("s", "x" * 100 + "1") != portable_name("s", "x" * 100 + "2")


def test_schemas_lose_what_says_nothing_but_no_field() -> None:
    schema = {"$schema": "x", "title": "Args", "properties": {"title": {"title": "Title", "type": "string"}}}
    assert tidy_schema(schema) == {"properties": {"title": {"type": "string"}}}
