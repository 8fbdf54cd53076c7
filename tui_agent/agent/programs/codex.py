"""Converts supported settings of Codex's ``config.toml``, and its agents; lists other settings.

Its rules are converted by ``codex_rules``, its MCP servers are read by ``foreign_servers``.
Sources: Codex's documentation of its configuration and agents.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent.agent.knowledge.documents import Document, DocumentError
from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.programs.codex_rules import read_codex_rules
from tui_agent.agent.programs.found import (
    ForeignSettings,
    FoundItem,
    ItemState,
    effort_command,
    quoted_key,
    set_command,
    set_table_command,
    settings_files,
    unreadable,
    unused_settings,
)
from tui_agent.foreign_file import ForeignFile
from tui_agent.json_text import as_dict, as_list, table_in
from tui_agent.lazy import LazyPattern
from tui_agent.path_checks import is_file
from tui_agent.permission import NEVER_ASK

PROGRAM = "Codex"

SETTINGS_FILE = ".codex/config.toml"
_FALLBACK = "project_doc_fallback_filenames"
_MAIN = ("AGENTS.override.md", "AGENTS.md")
_READ_ELSEWHERE = {"mcp_servers", _FALLBACK}
_INSTEAD = {
    "model": "choose a model with /model, or set model in config.toml",
    "model_provider": "set [providers] in config.toml",
    "model_reasoning_effort": "set effort in config.toml, or use /effort",
    "approval_policy": "set mode and [permissions] in config.toml",
    "sandbox_mode": "set mode and [sandbox] in config.toml",
    "profiles": "set TUI_AGENT_CONFIG_DIR to a separate settings directory",
    "notify": "write [[hooks]] with run_end in config.toml",
    "hooks": "write [[hooks]] in config.toml",
}
"""For Codex's settings without effect here: how to get their effect in this program."""
_AGENT_FIELDS = {"model_reasoning_effort": "effort"}
"""Fields of a Codex agent that have another name in this program, by Codex's name."""
_PROVIDER_FIELDS = (("base_url", "base_url"), ("wire_api", "wire"), ("env_key", "api_key_env"))
"""Fields of a Codex provider, each with its name in Codex and its name in this program."""
_USUAL_WIRE = "responses"
"""The API format of a Codex provider whose settings contain no ``wire_api``."""
_NOT_COPIED = ("env_http_headers", "experimental_bearer_token", "query_params")
_CREDENTIALS = LazyPattern(r"(?i)auth|cookie|key|token|secret|password")
"""Matches names of headers that hold credentials, which are not printed."""
_READS_ONLY = "read-only"


def read_codex(folders: Folders) -> ForeignSettings:
    """Return Codex's rules and the fallback instruction files that its settings name.

    ``items`` also contains the other settings, which have no effect here or are read elsewhere (MCP
    servers).
    """
    found = list(settings_files(folders, [SETTINGS_FILE], [SETTINGS_FILE]))
    items: list[FoundItem] = []
    table: dict[str, Any] = {}
    for file in found:
        table |= file.table
        items += unreadable(PROGRAM, file)
        unused = unused_settings(PROGRAM, file, _READ_ELSEWHERE, instead=_instead_of(table))
        # The model comes last: it can be set only if its provider is known.
        items += sorted(unused, key=lambda item: item.name == "model")
    others = list(_other_instructions(found, folders))
    instructions = tuple(item.name for item in others)
    rules = read_codex_rules(PROGRAM, folders)
    return ForeignSettings(rules.rules, {}, instructions, (*items, *others, *rules.items))


def _instead_of(table: Mapping[str, Any]) -> dict[str, str]:
    """Return, for each setting, how to get its effect here: advice, or a command to run.

    ``table`` contains the settings of a file and of the files that it overrides.
    """
    model = str(table.get("model", ""))
    provider = str(table.get("model_provider", "openai"))
    given = table_in(table, "model_providers", provider)
    instead = dict(_INSTEAD)
    if table.get("approval_policy") == "never":
        instead["approval_policy"] = NEVER_ASK
    if model:
        instead["model"] = set_command("model", f"{provider}/{model}")
    if effort := effort_command(table.get("model_reasoning_effort")):
        instead["model_reasoning_effort"] = effort
    if given.get("base_url"):
        instead["model_provider"] = _provider_command(provider, given)
    return instead


def server_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return this program's settings for a Codex provider: address, API format, key variable."""
    row: dict[str, Any] = {}
    for theirs, ours in _PROVIDER_FIELDS:
        if value := given.get(theirs):
            row[ours] = str(value)
    row.setdefault("wire", _USUAL_WIRE)
    return row


def _provider_command(name: str, given: Mapping[str, Any]) -> str:
    """Return the command that sets up a Codex provider here, and a note on what it omits."""
    row = server_settings(given)
    headers = {}
    left = [field for field in _NOT_COPIED if given.get(field)]
    for header, value in as_dict(given.get("http_headers")).items():
        if _CREDENTIALS.search(header):
            left.append(f"http_headers.{header}")
        else:
            headers[header] = str(value)
    if headers:
        row["headers"] = headers
    command = set_table_command(f"providers.{quoted_key(name)}", row)
    if left:
        command += f"; not copied: {', '.join(left)}"
    return command


def _other_instructions(files: Sequence[ForeignFile], folders: Folders) -> Iterator[FoundItem]:
    """Yield the fallback instruction files in the project's directories that have no AGENTS.md.

    Codex's settings name the files. The outermost directory comes first.
    """
    chosen = next((file for file in reversed(files) if _FALLBACK in file.table), None)
    if chosen is None:
        return
    names = [str(name) for name in as_list(chosen.table[_FALLBACK])]
    wanted = [name for name in (*_MAIN, *names) if "/" not in name]
    place = chosen.place(_FALLBACK)
    for folder in reversed(folders.upward()):
        there = [name for name in wanted if _says_something(folder / name)]
        if there and there[0] in names:
            name = folders.name(folder / there[0])
            yield FoundItem(PROGRAM, "instructions", name, place, state=ItemState.ACTIVE)


def _says_something(path: Path) -> bool:
    return is_file(path) and path.stat().st_size > 0


def codex_agent(text: str) -> Document:
    """Convert the text of a TOML file in ``.codex/agents`` to a document; raises DocumentError."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    except ValueError as error:
        raise DocumentError(f"it is not valid TOML: {error}") from None
    body = str(table.pop("developer_instructions", ""))
    fields = {_AGENT_FIELDS.get(key, key): value for key, value in table.items()}
    if fields.get("sandbox_mode") == _READS_ONLY:
        del fields["sandbox_mode"]
        fields["permissionMode"] = "plan"
    return Document(fields, body.strip())
