"""Writes docs/reference/*.md and the tools' parameters from the program's own tables; `--check` compares them."""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import command_line

if TYPE_CHECKING:
    from tui_agent.model.providers import Provider

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by scripts/reference.py. -->"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def _code(*words: str) -> str:
    return " ".join(f"`{word}`" for word in words if word)


def keys() -> str:
    """Return the keys of the prompt, and the actions that can have other keys."""
    import tui_agent.ui.widgets.transcript  # noqa: F401 - before the screens, which it imports in a circle
    from tui_agent.app.commands import command_table
    from tui_agent.ui.key_help import rebindable_actions
    from tui_agent.ui.prompt_keys import PROMPT_KEYS
    from tui_agent.ui.screens.main import MainScreen

    def shown(names: str) -> str:
        return (
            names
            if names.startswith(("/", "!", "any "))
            else " ".join(f"`{key}`" for key in names.split())
        )

    helps = {row.name: row.help for row in command_table()}
    actions = [
        (
            _code(action.id),
            _code(*re.split(r",\s*", action.keys)),
            action.place,
            helps.get(action.id, action.help),
        )
        for action in rebindable_actions(MainScreen.BINDINGS)
        if action.keys
    ]
    prompt = _table(("key", "does"), [(shown(names), text) for names, text in PROMPT_KEYS])
    named = _table(("name", "key", "where", "does"), actions)
    change = (
        'To give an action another key, write, for example, `compact = "f12"` below `[keys]` in `config.toml`. '
        'Put a name with a dot in quotes: `"prompt.editor" = "ctrl+g"`. This takes the key from the action `context`, '
        'to which `context = "f12"` gives another one. An empty text leaves an action without a key. '
        'You can also give a key to a command that has none: `todo = "alt+t"`, or, in the prompt, two keys in '
        'sequence: `todo = "ctrl+x t"`. '
        "Only `escape`, `enter`, `ctrl+c` and `ctrl+q` are fixed. `F1` lists the keys in use."
    )
    return f"# Keys\n\n{prompt}\n\n## Keys that can be changed\n\n{change}\n\n{named}\n"


def commands() -> str:
    """Return the table of commands."""
    from tui_agent.app.commands import command_table

    rows = [
        (
            _code(f"/{row.name}{' ' if row.argument else ''}{row.argument}")
            + "".join(f", `/{alias}`" for alias in row.aliases),
            _code(*row.key.split(",")) if row.key else "",
            "screen" if row.needs_screen else "everywhere",
            row.help,
        )
        for row in command_table()
    ]
    told = (
        "Type a command in the prompt, or choose one with `Ctrl+P`. “Everywhere” includes editors and runs without a "
        "screen. [Project knowledge](../knowledge.md#commands) describes commands of your own."
    )
    return f"# Commands\n\n{told}\n\n{_table(('command', 'key', 'works', 'does'), rows)}\n"


def settings() -> str:
    """Return the table of settings with their default values."""
    from tui_agent.config import load_config
    from tui_agent.setting_rows import UNSET, setting_rows

    with tempfile.TemporaryDirectory() as empty:
        rows = setting_rows(load_config(Path(empty) / "config.toml", environ={}))
    cells = [
        (
            _code(row.key),
            "" if row.value in {UNSET, ""} else _code(row.value.replace(str(Path.home()), "~")),
            row.accepts,
            row.description.replace("``", "`"),
        )
        for row in rows
    ]
    told = (
        "`/settings` shows and changes all settings; `tui-agent config set SETTING VALUE` changes one. The part of a "
        "name before the dot is a table of `config.toml`. Environment variables set settings too: "
        "`TUI_AGENT_COMPACTION__AUTO=false` sets `compaction.auto`. Flags override variables, and variables override "
        "the file. Files in `prompts/` and `styles/` beside `config.toml` replace the program's own files of the same "
        "name."
    )
    return f"# Settings\n\n{told}\n\n{_table(('setting', 'default', 'takes', 'meaning'), cells)}\n"


def events() -> str:
    """Return the table of events that ``--json`` prints."""
    from tui_agent.cli.events import events_schema

    schema = events_schema()
    names = [reference["$ref"].rpartition("/")[2] for reference in schema["oneOf"]]
    rows = [
        (
            _code(name),
            ", ".join(
                f"`{field}`" for field in schema["$defs"][name]["properties"] if field != "type"
            ),
            schema["$defs"][name]["description"].replace("``", "`"),
        )
        for name in names
    ]
    told = (
        "`--json` prints one event per line. The first event is `session`, the last event of a run is `run_ended`. "
        "Times are in seconds, except the `created_at` of an entry, which is in milliseconds since 1970. "
        "[events.schema.json](../events.schema.json), which `tui-agent schema` prints, has the type of each field. "
        "Types and fields may be added at any time. If an existing one changes, "
        f"so does `version` in the first line (now {schema['version']})."
    )
    return f"# Events\n\n{told}\n\n{_table(('type', 'fields', 'meaning'), rows)}\n"


_FORMATS = {
    "chat": "chat completions",
    "responses": "Responses",
    "messages": "Messages",
    "gemini": "generateContent",
    "ollama": "Ollama's own",
    None: "litellm",
}


def providers() -> str:
    """Return the providers with the variables for their keys and addresses."""
    from tui_agent.model.providers import PROVIDERS

    told = (
        "Enter an API key with `/login` or `tui-agent login`, or set the variable in the column *key*. To send "
        "requests to another address, set the variable in the column *address*. [Models](../models.md) explains both. "
        "Providers whose format is *litellm* need the extra of that name, which `make` installs. To use a provider "
        "that is not listed, use litellm's name for it, and put its key into the variable `<NAME>_API_KEY`."
    )
    rows = [_provider_row(provider) for provider in PROVIDERS.values()]
    return f"# Providers\n\n{told}\n\n{_table(('models', 'provider', 'key', 'address', 'format'), rows)}\n"


def _provider_row(provider: "Provider") -> tuple[str, ...]:
    keys = _either(provider.keys)
    if provider.local_url is not None:
        keys = "none needed"
    parameters = [
        variables[0] for name, variables in provider.variables.items() if name in provider.required
    ]
    if parameters:
        keys = " and ".join(filter(None, [keys, *(f"`{name}`" for name in parameters)]))
    address = _either(provider.url_variables) if provider.wire is not None else ""
    if provider.local_url is not None:
        address = f"`{provider.local_url.removeprefix('http://')}` or {address}"
    formats = [
        _FORMATS[wire]
        for wire in dict.fromkeys((provider.wire, *(wire for _pattern, wire in provider.wires)))
    ]
    return f"`{provider.id}/…`", provider.name, keys, address, ", ".join(formats)


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)


def environment() -> str:
    """Return the table of environment variables that each kind of child process gets."""
    from tui_agent.isolation import CODE_VARIABLES
    from tui_agent.processes.environment_table import LEFT_OUT, PASSED, TABLE, Reader, Row

    def cell(fate: str) -> str:
        return {PASSED: "yes", LEFT_OUT: "–"}.get(fate) or f"`{fate}`"

    readers = get_args(Reader)

    def cells(row: Row) -> list[str]:
        fates = [getattr(row, reader) for reader in readers]
        # The sandbox passes on what commands have.
        fates[-1] = row.commands if row.sandbox == PASSED else LEFT_OUT
        return [cell(fate) for fate in fates]

    rows = [(_code(*row.names), *cells(row), row.why) for row in TABLE]
    head = (
        "variables",
        "own git",
        "model host",
        "MCP servers",
        "commands, hooks",
        "in the sandbox",
        "why",
    )
    return f"""# The environment

This table shows which environment variables the program passes on to the processes that it starts. If a cell contains
a value, the process gets this value instead. Variables that are not in the table are passed on to servers, commands and
hooks, unless their name or value looks like a [secret](../permissions.md#secrets). `[sandbox] env` passes a variable to
commands in any case. Your editor gets all variables.

{_table(head, rows)}

## The program itself

`tui-agent` starts Python in such a way that Python's own variables and the working directory have no effect: modules
are loaded only from the place where the program is installed, and no code of a project is loaded. That holds for all
`PYTHON…` variables. These are the ones with which Python loads code; commands get them:
{_code(*CODE_VARIABLES)}.

If one of them is set, `python -m tui_agent` starts itself again in the same way. It can't prevent what Python loads
before any program: a `sitecustomize.py` that `PYTHONPATH` leads to, and a `tui_agent` in the working directory. So
use the command `tui-agent`, or `python -E -P -m tui_agent`. Variables that the system's loader and libraries read,
such as `LD_PRELOAD`, `LD_LIBRARY_PATH` and `OPENSSL_CONF`, affect every program.
"""


def options() -> str:
    """Return the options of the command line and of its subcommands."""
    from tui_agent.cli.arguments import whole_parser

    parts = ["# The command line"]
    for depth, command in enumerate(command_line.commands(whole_parser())):
        parts += [f"## {command.name}\n\n{_sentence(command.about)}"] if depth else [command.about]
        if not depth:
            parts.append(
                "`tui-agent [OPTION]... [PROMPT]` starts the program; "
                "`tui-agent COMMAND --help` shows the options of a command."
            )
        for group in command.groups:
            shown = [row for row in group.rows if not (depth and row[0].startswith("-h,"))]
            rows = [(_code(written), meaning) for written, meaning in shown]
            parts += [_table((group.title, "does"), rows)] if rows else []
        parts += [_sentence(command.epilog)] if command.epilog else []
    return "\n\n".join(parts) + "\n"


def _sentence(text: str) -> str:
    text = text.strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


_KEPT = {"server": "for the server", "session": "in the session", "request": "nowhere"}


def refusals() -> str:
    """Return the table of changes that are tried when a provider refuses a part of a request."""
    from tui_agent.model.forms import REMEDIES

    rows = [(part.value, remedy.tried, _KEPT[remedy.kept]) for part, remedy in REMEDIES.items()]
    return _table(("refused", "what is tried", "remembered"), rows)


SECTIONS: dict[tuple[str, str], Callable[[], str]] = {("models.md", "refusals"): refusals}
"""Functions that write parts of pages, by page and by the name in the comments around the part."""


def with_section(text: str, name: str, section: str) -> str:
    """Return a page with the part between the comments of that name replaced."""
    begin, end = f"<!-- {name}: written by scripts/reference.py -->", f"<!-- end of {name} -->"
    before, _begin, rest = text.partition(begin)
    _old, _end, after = rest.partition(end)
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"


def parameters() -> str:
    """Return the parameters of the built-in tools, as the program reads them when it starts."""
    from tui_agent.tools.base import generate_parameters, input_name
    from tui_agent.tools.registry import builtin_inputs

    made = {input_name(accepted): generate_parameters(accepted) for accepted in builtin_inputs()}
    return json.dumps(made, ensure_ascii=False, indent=1) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "keys": keys,
    "commands": commands,
    "settings": settings,
    "options": options,
    "events": events,
    "providers": providers,
    "environment": environment,
}


def page(name: str) -> str:
    """Return the text of a page."""
    return f"{NOTE}\n\n{PAGES[name]()}"


def main() -> int:
    """Write the pages, or with ``--check`` compare them; returns the exit code."""
    from tui_agent.tools.base import PARAMETERS

    FOLDER.mkdir(exist_ok=True)
    stale = 0
    written = {FOLDER / f"{name}.md": page(name) for name in PAGES}
    written[PARAMETERS] = parameters()
    for path, text in written.items():
        if "--check" in sys.argv[1:]:
            stale |= not path.is_file() or path.read_text(encoding="utf-8") != text
        else:
            path.write_text(text, encoding="utf-8")
    for (page_name, section), written in SECTIONS.items():
        path = FOLDER.parent / page_name
        before = path.read_text(encoding="utf-8")
        after = with_section(before, section, written())
        if "--check" in sys.argv[1:]:
            stale |= before != after
        else:
            path.write_text(after, encoding="utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
