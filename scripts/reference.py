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
        'Give an action another key in `config.toml`: `[keys]`, then `compact = "f12"`. '
        'A name with a dot is in quotes: `"prompt.editor" = "ctrl+g"`, which takes this key from `context`; '
        '`context = "f12"` gives that another. An empty text leaves an action without a key. '
        'A command without a key can get one: `todo = "alt+t"`, or two keys for the prompt: `todo = "ctrl+x t"`. '
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
        "Type one in the prompt, or choose it with `Ctrl+P`. “Everywhere” means editors and runs without a screen too. "
        "Commands of your own are described in [knowledge](../knowledge.md)."
    )
    return f"# Commands\n\n{told}\n\n{_table(('command', 'key', 'works', 'does'), rows)}\n"


def settings() -> str:
    """Return every setting with its value as the program comes."""
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
        "`/settings` shows and changes them; `tui-agent config set KEY VALUE` writes one. Dots are tables of "
        "`config.toml`. In the environment, `TUI_AGENT_COMPACTION__AUTO=false` sets `compaction.auto`. "
        "Flags win over variables, and variables over the file. Files of the same name in `prompts/` and `styles/` "
        "beside `config.toml` replace the program's own."
    )
    return f"# Settings\n\n{told}\n\n{_table(('setting', 'default', 'takes', 'meaning'), cells)}\n"


def events() -> str:
    """Return the kinds of lines that ``--json`` prints."""
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
        f"`--json` prints one of these per line. `session` is the first, `run_ended` the last of a run. Times are "
        "seconds, except `created_at` of an entry: milliseconds since 1970. "
        "[events.schema.json](../events.schema.json), or `tui-agent schema`, has the type of each field. "
        "New types and fields may be added. If others change, "
        f"so does `version` in the first line, now {schema['version']}."
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
        "Enter a key with `/login` or `tui-agent login`, or set the variable under *key*. The variable under *address* "
        "sends requests to another address. [Models](../models.md) explains the rest. Providers marked *litellm* need "
        "the extra of that name, which `make` installs. A provider that is not listed is called through litellm by "
        "litellm's name for it, with its key in `<NAME>_API_KEY`."
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
    """Return the table of the environment: what each kind of program that is started gets."""
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

Which of the variables it was started with the program passes on. A value in a cell is what is given instead. Variables
without a row reach servers, commands and hooks unless their name or value looks like a
[secret](../permissions.md#secrets); `[sandbox] env` lets a variable into commands whatever it is. Your editor gets
everything.

{_table(head, rows)}

## The program itself

`tui-agent` starts Python so that it heeds neither Python's variables nor the working directory: modules are loaded from
where the program is installed, and nothing of a project runs in it. That holds for all `PYTHON…` variables; those by
which Python loads code are
{_code(*CODE_VARIABLES)}.
Commands keep them.

`python -m tui_agent` begins anew in the same way where one of them is set. What Python loads before any program is out
of its reach: a `sitecustomize.py` that `PYTHONPATH` leads to, and a `tui_agent` in the working directory. Use the
command, or `python -E -P -m tui_agent`. What the system's own loader obeys, such as `LD_PRELOAD`, `LD_LIBRARY_PATH` and
`OPENSSL_CONF`, holds for every program.
"""


def options() -> str:
    """Return the options of the command line and of its subcommands."""
    from tui_agent.cli.arguments import whole_parser

    parts = ["# The command line"]
    for depth, command in enumerate(command_line.commands(whole_parser())):
        parts += [f"## {command.name}\n\n{_sentence(command.about)}"] if depth else [command.about]
        if not depth:
            parts.append(
                "`tui-agent [OPTION]... [PROMPT]` starts it; `tui-agent COMMAND --help` shows a command's own."
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
    """Return the table of what is tried when a provider refuses a part of a request."""
    from tui_agent.model.forms import REMEDIES

    rows = [(part.value, remedy.tried, _KEPT[remedy.kept]) for part, remedy in REMEDIES.items()]
    return _table(("refused", "what is tried", "remembered"), rows)


SECTIONS: dict[tuple[str, str], Callable[[], str]] = {("models.md", "refusals"): refusals}
"""Parts of pages that are written here, by page and by the name that their first line has."""


def with_section(text: str, name: str, section: str) -> str:
    """Return a page with the part between the lines of that name written anew."""
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
    """Return a page as it should be."""
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
