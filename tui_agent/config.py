"""Defines every setting, and merges its sources into one configuration.

The sources are the defaults, the user's TOML file, a trusted project's file, ``TUI_AGENT_*``
variables and flags. Each overrides those before it, and the origin of every value is recorded. A
project's file can't change the settings that only the user may set, nor widen the sandbox; its
permission rules are returned separately. The caller decides whether the project is trusted. Only
`set_value` writes, and only to the user's file. Unknown keys are reported when a file is read, and
kept when it is written. An error names the file, the key, the value and what is accepted.
"""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, core_schema

from tui_agent.agent.diagnostics.settings import DiagnosticSettings
from tui_agent.agent.hooks.settings import HookSettings
from tui_agent.agent.mcp.settings import McpServerSettings
from tui_agent.agent.run_budget import RunBudget
from tui_agent.context.settings import (
    FIXED,
    ONLY_USER,
    CacheSettings,
    CompactionSettings,
    ContextSettings,
    ImageSettings,
    ModelContextSettings,
    PruneSettings,
    TruncationSettings,
)
from tui_agent.errors import UserFacingError
from tui_agent.files.atomic import write_atomically
from tui_agent.files.inside import OutsideError, read_inside
from tui_agent.json_text import as_dict
from tui_agent.lazy import frozen
from tui_agent.model.settings import HostSettings, ModelSettings, ProviderSettings, RetrySettings
from tui_agent.path_checks import is_file, is_there
from tui_agent.paths import config_dir
from tui_agent.permission import NEVER_ASK
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.session.effort import Effort
from tui_agent.text_files.encodings import settings_text
from tui_agent.tools.language_servers.settings import CodeSettings
from tui_agent.web.settings import FetchSettings, SearchSettings

THEMES = (
    "ansi-dark",
    "ansi-light",
    "atom-one-dark",
    "atom-one-light",
    "catppuccin-frappe",
    "catppuccin-latte",
    "catppuccin-macchiato",
    "catppuccin-mocha",
    "dracula",
    "flexoki",
    "gruvbox",
    "high-contrast",
    "high-contrast-light",
    "monokai",
    "nord",
    "rose-pine",
    "rose-pine-dawn",
    "rose-pine-moon",
    "solarized-dark",
    "solarized-light",
    "textual-dark",
    "textual-light",
    "tokyo-night",
)

Origin = Literal["default", "file", "project", "environment", "flag"]
Table = dict[str, Any]

ENVIRONMENT_PREFIX = "TUI_AGENT_"
_NOT_SETTINGS = {
    "TUI_AGENT_CALL",
    "TUI_AGENT_CONFIG_DIR",
    "TUI_AGENT_DATA_DIR",
    "TUI_AGENT_DEBUG",
    "TUI_AGENT_DETACHED",
}
"""Environment variables that begin with the same prefix as those for settings, but have another
purpose."""

_FORMER = {"host.keep_warm"}
"""Settings of earlier versions that no longer have an effect. They are ignored without a warning."""

_INSTEAD_OF_VALUES = {
    (
        "mode",
        "yolo",
    ): "yolo runs everything without asking, so you choose it at each start: tui-agent --mode yolo. "
    f"To never be asked, in any session: {NEVER_ASK}",
}
"""Advice that is added to the error message if a setting is given this value, by key and value."""
_OTHER_NAMES = {
    "compaction.enabled": "compaction.auto",
    "compaction.prune": "prune",
    "compaction.keepRecentTokens": "compaction.keep_recent",
    "compaction.reserveTokens": "compaction.reserved",
    "autoCompactEnabled": "compaction.auto",
}
"""The names of settings in OpenCode, Pi or Claude Code, with the name of the same setting in this
program."""

_MAX_SUGGESTIONS = 3
_MISTYPED = 0.8
"""Minimum similarity (0 to 1) between a known name and an unknown name at which the unknown one is
probably a misspelling."""
_ALIKE = 0.7
"""Minimum similarity (0 to 1) between an unknown name and a known name that is suggested
instead."""
_MIN_BEGINNING = 3
"""Minimum length, in characters, at which an unknown name is taken for the beginning of a known one."""
_ANY = "NAME"
"""Stands for a name that the user chooses, of a model, provider or server, in a setting's key."""

_EXPECTED = {
    "tuple_type": 'a list, such as ["one", "two"]',
    "list_type": 'a list, such as ["one", "two"]',
    "dict_type": "a table",
    "model_type": "a table",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
}
"""Descriptions of what a setting accepts, by the type of pydantic's error."""

MAX_TOLD = 8
"""Maximum number of invalid values that a single error message names."""

_PRIVATE_TABLES = frozenset({"providers", "websearch", "mcp"})
"""Names of tables in which an invalid value is not shown, because it may be a key that was written
in the wrong place."""

_FREE_TABLES = frozenset({"env", "headers", "args"})
"""Names of tables and lists whose values are not shown, because any of them may be a key."""

_PUBLIC_TABLES = frozenset({"keys", "permissions", "mask"})
"""Names of tables whose values can be shown although their names may tell of a secret: the keys of
actions, rules for files (``*.key``), and hosts that get the value of a variable."""

_SECRET_WORDS = ("key", "token", "secret", "password")
"""Parts of a setting's name that tell of a secret value."""

_PUBLIC_ENDINGS = ("tokens", "_env")
"""Endings of names that tell of no secret value: numbers of tokens, and names of variables."""


class WhenGiven:
    """Annotation of a field whose validator is built only when the field is given a value.

    This saves time, because building the validators of all tables takes 10 ms, and most files set
    only a few of them.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: Any, _make: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(partial(_checked, kind))


class CheckpointSettings(BaseModel):
    """``[checkpoints]``: snapshots of changed files, from which the files can be restored."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    enabled: bool = Field(
        default=True,
        description="Keep snapshots of changed files, so that a move can restore them.",
    )
    megabytes: int = Field(
        default=500,
        ge=1,
        description="Maximum megabytes of file snapshots in all sessions; the oldest are deleted first.",
    )


class MemorySettings(BaseModel):
    """``[memory]``: facts about a project that are kept from one session to the next."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    propose: Literal["attended", "always", "off"] = Field(
        default="attended",
        description="Which runs propose lines for /memory at their end: all except those with -p (attended), all "
        "(always), or none (off).",
        json_schema_extra=ONLY_USER,
    )
    tokens: int = Field(
        default=2_000,
        ge=0,
        description="Maximum tokens of memory and project notes sent to the model; 0: none.",
    )


class ConfigError(UserFacingError):
    """Raised when the configuration has a mistake.

    The message names the file, the setting and what is accepted.
    """


class UiSettings(BaseModel):
    """``[ui]``: appearance and behaviour of the full-screen program."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    theme: str | None = Field(
        default=None, description="A Textual theme; if unset, the theme follows the terminal."
    )
    reduced_motion: bool = Field(default=False, description="Turn animations off.")
    fold_turns: Literal["off", "work", "all"] = Field(
        default="work",
        description="What to fold in a turn when the next one begins: nothing (off), its work, or also its last "
        "answer (all).",
    )
    tree_filter: Literal["default", "no tools", "user only", "labelled", "everything"] = Field(
        default="default", description="Entries that /tree shows when it opens; ctrl+o switches."
    )
    plain: bool = Field(
        default=False,
        description="Print lines of text instead of a full screen, for screen readers; takes effect at the next start.",
        json_schema_extra=ONLY_USER,
    )
    cursor_blink: bool = Field(
        default=False, description="Let cursors blink; this wakes the program up while it is idle."
    )
    permission_grace: float = Field(
        default=0.5,
        ge=0,
        le=10,
        description="Seconds for which a permission question ignores keys after it appears.",
    )
    typing_pause: float = Field(
        default=1.0,
        ge=0,
        le=10,
        description="Seconds without typing before a permission question accepts keys, or a delayed page opens.",
    )
    vim: bool = Field(
        default=False, description="Use vi keys in the prompt; escape enters normal mode."
    )
    copy_on_select: bool = Field(
        default=False, description="Copy text as soon as it is selected with the mouse."
    )
    closed_terminal: Literal["stop", "detach"] = Field(
        default="stop",
        description="What happens to a working agent when its terminal closes: it stops, or continues detached.",
    )
    status_line: str | None = Field(
        default=None,
        description="A command whose first line of output is shown above the last line of the screen; "
        "it receives the state as JSON on standard input.",
        json_schema_extra=ONLY_USER,
    )
    notify: Literal["off", "bell", "desktop"] = Field(
        default="desktop",
        description="How to signal a question, or the end of a run of over 10 s, while the terminal has no focus: "
        "not at all, with the bell, or with the bell and the terminal's own notification.",
    )
    notify_command: str | None = Field(
        default=None,
        description="A command to run for each signal of notify; it receives the event as JSON on standard input.",
        json_schema_extra=ONLY_USER,
    )


class OtherPrograms(BaseModel):
    """``[other_programs]``: other programs' files to ignore. ``tui-agent adopt`` lists them."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    leave_out: tuple[str, ...] = Field(
        default=(),
        description="Programs (“Codex”), or kinds of their files (“Claude Code/hooks”), to ignore.",
        json_schema_extra=ONLY_USER,
    )


class AddOnSettings(BaseModel):
    """The table ``[add_ons]``: settings for installed packages that add tools."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    leave_out: tuple[str, ...] = Field(
        default=(),
        description="Add-on packages not to load; “*” for all.",
        json_schema_extra=ONLY_USER,
    )


class OwnProjectSettings(BaseModel):
    """``[projects."/home/me/app"]``: settings for one project, kept in the user's file."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    permissions: dict[str, str | dict[str, str]] = Field(
        default_factory=dict, description="Permission rules: allow, ask or deny."
    )
    check: str = Field(
        default="", description="The command that tests each runner of a race; exit code 0 passes."
    )


class BudgetSettings(BaseModel):
    """``[budget]``: the costs at which the program asks whether to continue."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    session: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="US dollars a session may cost before the program asks whether to continue.",
    )
    day: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="US dollars all sessions of a day may cost before the program asks whether to continue.",
    )


class Config(BaseModel):
    """All settings of the program, as one model."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    model: str | None = Field(default=None, description="The model, as provider/name.")
    small_model: str | None = Field(
        default=None,
        description="A cheap model for titles, goals, the memory and other short questions.",
    )
    fallback_models: tuple[str, ...] = Field(
        default=(),
        description="Models to try, in order, when the model is overloaded, out of quota or no longer offered.",
    )
    effort: Effort | None = Field(
        default=None,
        description="How much models think; if unset, each model's default. If a model lacks the level, a lower "
        "one is used.",
    )
    mode: Literal["build", "auto-edit", "plan"] = Field(
        default="build",
        description="Mode of a new session: build asks, auto-edit edits without asking, plan only reads.",
    )
    max_steps: int = Field(
        default=200,
        ge=1,
        description="Maximum requests for one message; the last one asks the model to wrap up.",
    )
    max_cost: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Maximum US dollars for one message, subagents included.",
    )
    max_tokens: int | None = Field(
        default=None,
        gt=0,
        description="Maximum tokens for one message, requests and answers together.",
    )
    timeout: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Maximum seconds for one message."
    )
    parallel_calls: int = Field(
        default=8,
        ge=1,
        description="Maximum read-only tool calls and subagents that run in parallel; 1: one at a time.",
    )
    instructions: tuple[str, ...] = Field(
        default=(), description="Additional instruction files for the model: paths and globs."
    )
    instructions_order: tuple[str, ...] = Field(
        default=(),
        description="Names of instruction files in order of preference, for directories with several; "
        "if unset, AGENTS.md, then CLAUDE.md.",
    )
    other_programs: Annotated[OtherPrograms, WhenGiven] = OtherPrograms.model_construct()
    add_ons: Annotated[AddOnSettings, WhenGiven] = AddOnSettings.model_construct()
    memory: Annotated[MemorySettings, WhenGiven] = MemorySettings.model_construct()
    models: Annotated[dict[str, ModelSettings], WhenGiven] = Field(
        default_factory=dict,
        description="Settings for individual models, including ones that the catalog doesn't have.",
    )
    providers: Annotated[dict[str, ProviderSettings], WhenGiven] = Field(
        default_factory=dict, description="API keys and base URLs of providers."
    )
    compaction: Annotated[CompactionSettings, WhenGiven] = CompactionSettings.model_construct()
    prune: Annotated[PruneSettings, WhenGiven] = PruneSettings.model_construct()
    truncation: Annotated[TruncationSettings, WhenGiven] = TruncationSettings.model_construct()
    images: Annotated[ImageSettings, WhenGiven] = ImageSettings.model_construct()
    cache: Annotated[CacheSettings, WhenGiven] = CacheSettings.model_construct()
    permissions: dict[str, str | dict[str, str]] = Field(
        default_factory=dict, description="Permission rules: allow, ask or deny."
    )
    projects: Annotated[dict[str, OwnProjectSettings], WhenGiven] = Field(
        default_factory=dict,
        description="Your permission rules and race check for single projects, by directory.",
        json_schema_extra=ONLY_USER,
    )
    budget: Annotated[BudgetSettings, WhenGiven] = BudgetSettings.model_construct()
    retry: Annotated[RetrySettings, WhenGiven] = RetrySettings.model_construct()
    host: Annotated[HostSettings, WhenGiven] = HostSettings.model_construct()
    webfetch: Annotated[FetchSettings, WhenGiven] = FetchSettings.model_construct()
    websearch: Annotated[SearchSettings, WhenGiven] = SearchSettings.model_construct()
    sandbox: Annotated[SandboxSettings, WhenGiven] = SandboxSettings.model_construct()
    diagnostics: Annotated[DiagnosticSettings, WhenGiven] = DiagnosticSettings.model_construct()
    code: Annotated[CodeSettings, WhenGiven] = CodeSettings.model_construct()
    checkpoints: Annotated[CheckpointSettings, WhenGiven] = CheckpointSettings.model_construct()
    mcp: Annotated[dict[str, McpServerSettings], WhenGiven] = Field(
        default_factory=dict, description="MCP servers, which offer tools."
    )
    hooks: Annotated[tuple[HookSettings, ...], WhenGiven] = Field(
        default=(), description="Commands to run at events."
    )
    ui: Annotated[UiSettings, WhenGiven] = UiSettings.model_construct()
    keys: dict[str, str] = Field(
        default_factory=dict,
        description='Your key bindings, such as compact = "f12"; /keys lists the actions.',
    )

    @property
    def context(self) -> ContextSettings:
        return ContextSettings.model_construct(
            compaction=self.compaction,
            prune=self.prune,
            truncation=self.truncation,
            images=self.images,
            cache=self.cache,
            models={
                name: ModelContextSettings.model_construct(
                    threshold=model.threshold,
                    reserved=model.reserved,
                    keep_recent=model.keep_recent,
                )
                for name, model in self.models.items()
            },
        )

    @property
    def run_budget(self) -> RunBudget:
        spending = self.budget
        return RunBudget(
            self.max_cost, self.max_tokens, self.timeout, session=spending.session, day=spending.day
        )

    def preset_effort(self, model: str) -> Effort | None:
        """Return the effort configured for a model, or else for all models.

        None means the model's own default.
        """
        own = self.models.get(model)
        return (own.effort or own.reasoning_effort if own is not None else None) or self.effort


@frozen
class LoadedConfig:
    """A configuration, with the origin of each value, and warnings to show to the user.

    ``path`` is the user's file. ``origins`` contains the origin of each value by dotted key, except
    for values left at their default.
    """

    config: Config
    path: Path
    origins: dict[str, Origin] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    project_permissions: dict[str, str | dict[str, str]] = field(default_factory=dict)
    """The table ``[permissions]`` in the settings file of the project."""
    project_hooks: int = 0
    """Number of hooks in the settings file of the project; they are the last of the hooks."""

    def origin(self, key: str) -> Origin:
        """Return where the setting with a dotted key was set; "default" if nowhere.

        For a table, returns where one of its values was set.
        """
        return _origin(key, self.origins)


def _origin(key: str, origins: Mapping[str, Origin]) -> Origin:
    for known, origin in origins.items():
        if known == key or known.startswith(f"{key}.") or key.startswith(f"{known}."):
            return origin
    return "default"


def config_path() -> Path:
    return config_dir() / "config.toml"


def load_config(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Table | None = None,
    *,
    project: Path | None = None,
) -> LoadedConfig:
    """Load the user's settings, and merge them with the project's, the environment's and the flags.

    ``path`` is the user's file, by default `config_path`. ``environ`` is by default the process's
    environment. ``flags`` are nested tables. ``project`` is the settings file of a project that the
    user trusts. Its permission rules are not merged into the user's; they are returned separately,
    as ``project_permissions``.

    Raises:
        ConfigError: a value is not accepted, or a file is not valid TOML or can't be read.
    """
    path = path or config_path()
    environ = os.environ if environ is None else environ
    brought, left_out = _project_table(project) if project is not None else ({}, ())
    rules = brought.pop("permissions", {})
    brought = _without_users(Config, brought)
    if (wider := _tighten(brought)) and project is not None:
        left_out = (
            *left_out,
            f"{project}: ignoring sandbox.{', sandbox.'.join(wider)}: a project can't widen your sandbox.",
        )
    own = read_table(path)
    layers: list[tuple[Origin, Table]] = [
        ("file", own),
        ("project", _ready_to_merge(own, brought)),
        ("environment", environment_table(environ)),
        ("flag", flags or {}),
    ]
    merged: Table = {}
    origins: dict[str, Origin] = {}
    for origin, table in layers:
        _merge(merged, table)
        origins.update(dict.fromkeys((".".join(key) for key, _value in _leaves(table)), origin))
    warnings = list(left_out)
    if (
        isinstance(compaction := merged.get("compaction"), dict)
        and compaction.get("style") == "notes"
    ):
        del compaction["style"]
        warnings.append(
            'compaction.style = "notes" no longer exists; summaries are written instead. Use /remember for notes.'
        )
    former = merged.pop("notes_tokens", None)
    memory = merged.get("memory", {})
    if former is not None and isinstance(memory, dict):
        merged["memory"] = {"tokens": former, **memory}
    known, unknown_keys = split_known(Config, merged)
    unknown = [".".join(keys) for keys in unknown_keys]
    in_file = [keys for keys in unknown_keys if ".".join(keys) not in _FORMER]
    if project is not None and "hooks" in brought:
        # The hooks of both files are merged, so errors would count them wrongly.
        _validated({"hooks": own.get("hooks") or []}, path)
        _validated({"hooks": brought["hooks"]}, project)
    permissions = _validated({"permissions": rules}, project or path).permissions
    config = _validated(known, path, origins, project)
    for keys in in_file:
        if origins.get(".".join(keys)) == "environment":
            warnings.append(_unknown_variable(keys))
        else:
            warnings.append(_unknown(path, keys))
    warnings += [_unknown_variable(keys) for keys in _unknown_in(environ)]
    for name in unknown:
        # An unknown setting is ignored, so no origin is shown for it.
        origins.pop(name, None)
    holds_key = os.name == "posix" and any(key[-1] == "api_key" for key, _value in _leaves(own))
    if holds_key and path.stat().st_mode & 0o077:
        warnings.append(f"Other users can read the API key in your settings; run: chmod 600 {path}")
    if (theme := config.ui.theme) is not None and theme not in THEMES:
        origin = origins.get("ui.theme", "file")
        said = (
            f"There is no theme “{theme}” (ui.theme, set in the {origin}), so the default is used."
        )
        warnings.append(f"{said} /theme in the program lists the themes.")
    if any(name.lower().endswith("_proxy") for name in environ):
        from tui_agent.web.proxies import read_proxies

        warnings += read_proxies(environ).problems
    hooks = len(config.hooks) - len(own.get("hooks") or []) if "hooks" in brought else 0
    return LoadedConfig(config, path, origins, tuple(warnings), permissions, hooks)


def _project_table(project: Path) -> tuple[Table, tuple[str, ...]]:
    """Return the raw contents of a project's settings file, and warnings for the user.

    A file outside the project is not read; in that case, the contents are empty, and there is one
    warning. Raises ConfigError if the file is not valid TOML or can't be read.
    """
    try:
        return _parsed(project, lambda: read_inside(project.parent.parent, project)[0]), ()
    except OutsideError as error:
        return {}, (f"{project}: left out, as {error.strerror}.",)


def _without_users(model: type[BaseModel], table: Table) -> Table:
    """Return a project's settings, except those that only the user may set."""
    left: Table = {}
    for key, value in table.items():
        info = model.model_fields.get(key)
        inner, keyed = _table_model(info) if info is not None else (None, False)
        if info is None or info.json_schema_extra != ONLY_USER:
            nested = inner is not None and not keyed and isinstance(value, dict)
            if nested and inner is not None:
                left[key] = _without_users(inner, value)
            else:
                left[key] = value
    return left


def _tighten(brought: Table) -> list[str]:
    """Remove the project's sandbox settings from its table.

    Settings that make the sandbox stricter stay. Returns the names of the removed settings, except
    ``mode`` if its value was ``auto``.
    """
    held = brought.pop("sandbox", {})
    settings = as_dict(held)
    if isinstance(held, str):
        settings = {"mode": held}
    is_required = settings.get("mode") == "required" or settings.get("required") is True
    if is_required:
        brought["sandbox"] = {"mode": "required"}
    strict = {"mode", "required"} if is_required else set()
    found = []
    for name in settings:
        if name not in strict and (name, settings[name]) != ("mode", "auto"):
            found.append(name)
    return found


def _ready_to_merge(own: Table, brought: Table) -> Table:
    """Prepare a project's settings (``brought``) for merging them over the user's (``own``).

    The project's hooks are added after the user's. An MCP server of the project is left out if the
    user has one with the same name. All of the project's hooks and servers are marked to run in the
    sandbox.
    """
    beside = dict(brought)

    def sandboxed(row: Any) -> Any:
        if isinstance(row, dict):
            return {**row, "sandboxed": True}
        return row

    if isinstance(hooks := brought.get("hooks"), list):
        beside["hooks"] = [*(own.get("hooks") or []), *map(sandboxed, hooks)]
    if isinstance(servers := brought.get("mcp"), dict):
        beside["mcp"] = {
            name: sandboxed(row)
            for name, row in servers.items()
            if name not in (own.get("mcp") or {})
        }
    return beside


def read_table(path: Path) -> Table:
    """Read a settings file and return its raw contents; empty if the file doesn't exist.

    Raises:
        ConfigError: the file is not valid TOML or can't be read.
    """
    if is_there(path) and not is_file(path):
        raise ConfigError(f"{path} is not a regular file. Move it away.")
    return _parsed(path, path.read_bytes)


def _parsed(path: Path, read: Callable[[], bytes]) -> Table:
    try:
        return tomllib.loads(settings_text(read()))
    except FileNotFoundError:
        return {}
    except OutsideError:
        raise
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path} is not valid TOML: {error}. Correct it or move the file away."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}. "
            "Set TUI_AGENT_CONFIG_DIR to use another directory for settings."
        ) from None
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from None


def environment_table(environ: Mapping[str, str]) -> Table:
    """Return the settings in ``TUI_AGENT_*`` variables as a nested table; ignore other variables.

    ``__`` in a variable's name separates tables and keys. Values are TOML or plain text. Raises
    ConfigError if a variable sets a key of a table to which an earlier variable gave a plain value.
    """
    table: Table = {}
    for variable, text in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _NOT_SETTINGS:
            continue
        keys = _keys_of(variable)
        if keys[0] in Config.model_fields:
            _put(table, keys, parse_value(text))
    return table


def _keys_of(variable: str) -> list[str]:
    return variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")


def parse_value(text: str) -> Any:
    """Parse a text as a TOML value, such as ``true``.

    Returns the text itself if it is not valid TOML.
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def set_value(key: str, value: Any, path: Path | None = None) -> LoadedConfig:
    """Set one dotted key in the user's file, and return the configuration read from it.

    ``None`` removes the key, and the tables that become empty. All other keys stay; comments are
    lost. The configuration returned doesn't include the environment, flags or a project's settings.

    Raises:
        ConfigError: the file can't be read, the key is unknown, or the value is not accepted; the
            file is then unchanged.
        OSError: the file can't be written.
    """
    path = path or config_path()
    table = read_table(path)
    keys = split_key(key)
    if value is None and keys[0] in table:
        _remove(table, keys)
    elif keys[0] not in Config.model_fields:
        raise _no_setting(keys)
    elif value is not None:
        _put(table, keys, value)
    known, unknown = split_known(Config, table)
    for name in unknown:
        # Either the key is in an unknown table, or its value is a table that contains an unknown
        # key.
        shared = min(len(name), len(keys))
        if value is not None and list(name[:shared]) == keys[:shared]:
            raise _no_setting(name)
    _validated(known, path)
    import tomli_w

    write_atomically(path, tomli_w.dumps(table).encode(), mode=0o600)
    return load_config(path, environ={})


def split_key(key: str) -> list[str]:
    """Split a dotted key such as ``models."openai/x".base_url`` at the dots outside quotes.

    Raises:
        ConfigError: ``key`` is not valid as a key in TOML.
    """
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        raise ConfigError(
            f'“{key}” is not a key. Write it as in TOML: table.key or models."name".key.'
        ) from None
    keys = []
    while isinstance(table, dict):
        name = next(iter(table))
        keys.append(name)
        table = table[name]
    return keys


def get_value(loaded: LoadedConfig, key: str) -> Any:
    """Return the value of a dotted key; for a table of settings, a dict of its values except None.

    Returns None if the key contains a name chosen by the user, as in ``models`` or ``keys``, and
    the table has no such name.

    Raises:
        ConfigError: there is no such setting.
    """
    value: Any = loaded.config
    for name in split_key(key):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, BaseModel) and name in _settings_in(value):
            value = getattr(value, name)
        else:
            raise _no_setting(split_key(key))
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True, include=_settings_in(value))
    return value


def _settings_in(table: BaseModel) -> set[str]:
    """Return the names of the fields in a settings table that users can set."""
    return {name for name, info in type(table).model_fields.items() if not is_fixed(info)}


def _merge(into: Table, table: Table) -> None:
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = deepcopy(value)


def _put(table: Table, keys: list[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(
                f"“{'.'.join(keys)}” can't be set, because “{key}” is a value and not a table."
            )
        table = inner
    table[keys[-1]] = value


def _remove(table: Table, keys: list[str]) -> None:
    """Remove a key from a table, and the enclosing tables that become empty."""
    first, *rest = keys
    inner = table.get(first)
    if not rest:
        table.pop(first, None)
    elif isinstance(inner, dict):
        _remove(inner, rest)
        if not inner:
            del table[first]


def _leaves(table: Table, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*prefix, key))
        else:
            yield (*prefix, key), value


def split_known(
    model: type[BaseModel], table: Table, prefix: tuple[str, ...] = ()
) -> tuple[Table, list[tuple[str, ...]]]:
    """Separate a table's known settings, which ``model`` has, from the keys of unknown settings.

    Returns both. ``prefix`` contains the keys that lead to the table.
    """
    known: Table = {}
    unknown: list[tuple[str, ...]] = []
    for key, value in table.items():
        name = (*prefix, key)
        info = model.model_fields.get(key)
        if info is None or is_fixed(info):
            unknown.append(name)
            continue
        inner, keyed = _table_model(info)
        if inner is None or not isinstance(value, dict):
            known[key] = value
        elif keyed:
            known[key] = {}
            for item, table_of_item in value.items():
                if isinstance(table_of_item, dict):
                    known[key][item], more = split_known(inner, table_of_item, (*name, item))
                    unknown += more
                else:
                    known[key][item] = table_of_item
        else:
            known[key], more = split_known(inner, value, name)
            unknown += more
    return known, unknown


def is_fixed(info: FieldInfo) -> bool:
    """Return True if a settings field is a constant of the program, which the user can't set."""
    return FIXED in info.metadata


def _table_model(info: FieldInfo) -> tuple[type[BaseModel] | None, bool]:
    """Return the model of the table that a field contains; None if it contains no table.

    Also returns True if the field contains several such tables, by name.
    """
    annotation = info.annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    arguments = get_args(annotation)
    if (
        get_origin(annotation) is dict
        and isinstance(arguments[1], type)
        and issubclass(arguments[1], BaseModel)
    ):
        return arguments[1], True
    return None, False


def _place(error: ErrorDetails, table: Table) -> tuple[int | str, ...]:
    """Return the nested keys of an invalid value in ``table``.

    If a value may have several types, pydantic adds the name of a type to the keys, such as
    ``dict[str,str]``. These names are left out.
    """
    place: list[int | str] = []
    value: Any = table
    for key in error["loc"]:
        is_entry = isinstance(value, dict) and key in value
        is_item = isinstance(value, list | tuple) and isinstance(key, int)
        if is_entry or is_item:
            place.append(key)
            value = value[key]
    if error["type"] == "missing":
        place.append(error["loc"][-1])
    return tuple(place)


def _expected(error: ErrorDetails) -> str:
    """Describe what the setting in an error accepts; "" if only pydantic's own message can tell."""
    if error["type"] == "literal_error":
        return str(error["ctx"]["expected"])
    return _EXPECTED.get(error["type"], "")


def _no_setting(keys: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"There is no setting “{'.'.join(keys)}”.{_suggestion(keys)} tui-agent config get lists them all."
    )


def _unknown_in(environ: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the keys of variables that look like settings but name no table or setting."""
    for variable in environ:
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in _NOT_SETTINGS:
            keys = _keys_of(variable)
            if keys[0] not in Config.model_fields:
                yield keys


def _unknown_variable(keys: Sequence[str]) -> str:
    variable = f"{ENVIRONMENT_PREFIX}{'__'.join(keys).upper()}"
    return f"The variable {variable} names no setting that this version knows.{_suggestion(keys)}"


def _unknown(path: Path, keys: Sequence[str]) -> str:
    return f"{path} has a setting that this version does not know: {'.'.join(keys)}.{_suggestion(keys)}"


def _suggestion(keys: Sequence[str]) -> str:
    """Return a sentence, after a space, that suggests settings to use instead of an unknown one.

    Returns "" if there is no suggestion.
    """
    key = ".".join(keys)
    if key in _OTHER_NAMES:
        return f" Here it is called {_OTHER_NAMES[key]}."
    if found := similar_settings(keys):
        return f" Did you mean {' or '.join(found)}?"
    return ""


def similar_settings(keys: Sequence[str]) -> list[str]:
    """Return the dotted keys of settings that the user may have meant by an unknown key.

    Returns at most `_MAX_SUGGESTIONS`. ``keys`` are the parts of the unknown key. Its last part is
    compared with the last part of each setting's key: first in the same table, then in all tables,
    and in each case first by `_is_almost`, then by `_is_akin`. Returns the matches of the first
    comparison that has any.
    """
    *table, name = keys
    everywhere = list(_names_in(Config))
    here = [(*table, one[-1]) for one in everywhere if _same_table(one[:-1], table)]
    for names in (here, everywhere):
        for fits in (_is_almost, _is_akin):
            if found := [".".join(one) for one in names if fits(one[-1], name)]:
                return found[:_MAX_SUGGESTIONS]
    return []


def _names_in(model: type[BaseModel], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the nested keys of every setting of a model.

    `_ANY` stands for a name in a key that the user chooses, such as a server's name.
    """
    for name, info in model.model_fields.items():
        if is_fixed(info):
            continue
        yield (*prefix, name)
        inner, keyed = _table_model(info)
        if inner is not None:
            yield from _names_in(inner, (*prefix, name, _ANY) if keyed else (*prefix, name))


def _same_table(known: Sequence[str], table: Sequence[str]) -> bool:
    """Return True if ``table`` is the table ``known``. `_ANY` in ``known`` matches any name."""
    return len(known) == len(table) and all(
        one in {_ANY, other} for one, other in zip(known, table, strict=True)
    )


def _is_almost(known: str, name: str) -> bool:
    """Return True if a name is spelled almost like a known setting's name, or is a word of it."""
    name = name.lower()
    return name in known.split("_") or SequenceMatcher(None, known, name).ratio() >= _MISTYPED


def _is_akin(known: str, name: str) -> bool:
    """Return True if a name is similar to the name of a setting.

    This is also the case if it shares a word with that name, or is its beginning.
    """
    name = name.lower().replace("-", "_")
    shares = not set(name.split("_")).isdisjoint(known.split("_"))
    begins = len(name) >= _MIN_BEGINNING and known.startswith(name)
    return shares or begins or SequenceMatcher(None, known, name).ratio() >= _ALIKE


def _validated(
    table: Table,
    path: Path,
    origins: Mapping[str, Origin] | None = None,
    project: Path | None = None,
) -> Config:
    """Return the configuration that a table contains.

    Values whose origin is not in ``origins`` come from the file ``path``.

    Raises:
        ConfigError: a value is not accepted.
    """
    try:
        return Config.model_validate(table)
    except ValidationError as error:
        raise ConfigError(_explain(error, table, path, origins or {}, project)) from None


def _explain(
    error: ValidationError,
    table: Table,
    path: Path,
    origins: Mapping[str, Origin],
    project: Path | None,
) -> str:
    """Return the message about the invalid settings in ``table``.

    It has a line for each of the first `MAX_TOLD`. A line names the source of the value, the key,
    the value, and what is accepted. Values that may be secret are not shown.
    """
    by_place: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    for one in error.errors(include_url=False):
        by_place.setdefault(_place(one, table), []).append(one)
    lines: list[str] = []
    for place, errors in by_place.items():
        if any(len(other) > len(place) and other[: len(place)] == place for other in by_place):
            # A value of several types has an error for each; the one inside it says most.
            continue
        is_missing = errors[0]["type"] == "missing"
        keys = [str(key) for key in place]
        given = keys[:-1] if is_missing else keys
        source = _source(_origin(".".join(given), origins), path, project)
        if is_missing:
            said = f"{'.'.join(keys)} is missing."
        else:
            said = _refusal(keys, errors)
        lines.append(f"{source}: {said}")
    if left := lines[MAX_TOLD:]:
        lines[MAX_TOLD:] = [f"… and {len(left)} more"]
    return "\n".join(lines)


def _source(origin: Origin, path: Path, project: Path | None) -> str:
    """Return where a setting's value comes from, in words for an error message."""
    named = {
        "environment": "the environment",
        "flag": "the command line",
        "project": str(project),
    }
    return named.get(origin, str(path))


def _refusal(keys: Sequence[str], errors: Sequence[ErrorDetails]) -> str:
    """Return the sentence about a setting's invalid value. ``errors`` are all its errors."""
    # The error with the longest location is about the value itself. The others may be about a table
    # that contains the value.
    error = max(errors, key=lambda one: len(one["loc"]))
    value = error["input"]
    key = ".".join(keys)
    expected = [_expected(one) for one in errors]
    if all(expected):
        message = "it takes " + " or ".join(dict.fromkeys(expected))
    else:
        message = error["msg"].removeprefix("Value error, ").rstrip(".")
    may_be_key = not _PRIVATE_TABLES.isdisjoint(keys)
    is_table = isinstance(value, dict | list | tuple)
    if may_be_key or is_table or may_be_secret(keys, value):
        shown = "…"
    else:
        shown = repr(value)[:80]
    refusal = f"{key} = {shown} is not accepted: {message}."
    advice = _INSTEAD_OF_VALUES.get((key, str(value)), "")
    return f"{refusal} {advice}".rstrip()


def may_be_secret(keys: Sequence[str], value: object) -> bool:
    """Return True if a value must not be shown, because it may be or contain a secret.

    ``keys`` are the nested keys of the value. A table is never secret as a whole: see
    `without_secrets`.
    """
    from tui_agent.secret_detector import has_secret, is_secret_in_variable, is_secret_name

    if isinstance(value, bool | dict):
        return False
    if not _FREE_TABLES.isdisjoint(keys):
        return True
    name = keys[-1].casefold()
    is_named = is_secret_name(name) or any(word in name for word in _SECRET_WORDS)
    is_public = name.endswith(_PUBLIC_ENDINGS) or not _PUBLIC_TABLES.isdisjoint(keys)
    if is_named and not is_public:
        return True
    return isinstance(value, str) and (has_secret(value) or is_secret_in_variable(value))


def without_secrets(keys: Sequence[str], value: object) -> object:
    """Return a setting's value with every value in it that may be secret replaced by “…”.

    URLs are shown without user, password and query.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        return {name: without_secrets((*keys, name), item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(keys, item) for item in value]
    if value not in (None, "") and may_be_secret(keys, value):
        return "…"
    if isinstance(value, str) and keys[-1].endswith("url"):
        from tui_agent.model.addresses import plain_url

        return plain_url(value)
    return value


def _checked(kind: Any, value: object) -> Any:
    return _checks_of(kind).validate_python(value)


@cache
def _checks_of(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
