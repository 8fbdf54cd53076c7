"""Defines the command line's arguments and their help, and parses and checks them.

main.py decides which command to run. This module also prints the completion script for shells,
which is made from the same parser.
"""

import argparse
import re
import shlex
from argparse import Namespace
from itertools import pairwise
from pathlib import Path
from typing import Literal, NoReturn, get_args

from tui_agent.agent.race.specs import PICKS
from tui_agent.app.format import amount_in, dollars_in
from tui_agent.cli.output import exit_codes_line
from tui_agent.path_checks import is_directory
from tui_agent.session.effort import Effort
from tui_agent.version import __version__
from tui_agent.whole_numbers import whole_number

MODES = ("build", "auto-edit", "plan", "yolo")
SUBCOMMANDS = (
    "sessions",
    "result",
    "tree",
    "context",
    "compact",
    "cost",
    "models",
    "login",
    "logout",
    "config",
    "mcp",
    "doctor",
    "update",
    "adopt",
    "plugin",
    "acp",
    "schema",
    "completion",
    "ps",
    "attach",
    "logs",
    "stop",
)
USUAL_ACTIONS = {"sessions": "list", "config": "get", "mcp": "list", "plugin": "list"}
"""The default action of each subcommand, for when the arguments name no action."""
OutputFormat = Literal["text", "json", "stream-json"]
"""What a run without a screen prints: its answer, one JSON object, or one event per line."""
ON_QUESTION = ("wait", "deny", "stop")
"""Values of ``--on-question``, which say what happens when the run needs a permission."""
RUN_LIMITS = ("max_steps", "max_cost", "max_tokens", "timeout")
"""Command-line options that override, for this run, the settings of the same names."""
_COMMAND = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
"""Matches a word that can be a subcommand of this or another program."""
_CONFIG_OPTIONS = {"-c", "--config"}
_OVERRIDE = re.compile(r"(?P<key>[a-z_]+(?:\.[\w-]+)*)=(?P<value>.+)", re.DOTALL)
"""Matches ``KEY=VALUE``, the argument with which Codex's option ``-c`` changes a setting."""
LIKENESS = 0.75
"""Minimum similarity (0 to 1) to a subcommand at which a word counts as a misspelling of it."""

LAST = "id of a session; default: the last session of this directory"
SESSION = "id of the session, or the last characters of the id"
DETACHED = "name of the run, or the beginning of the name; default: the newest run"
SERVER = "name of the server"
EPILOG = f"""\
commands:
  tui-agent sessions list|search|export|import|delete   manage sessions
  tui-agent result [ID]                        print a session's changes as a patch, or commit them to a branch
  tui-agent tree [ID]                          show the branches of a session; default: the last one here
  tui-agent context [ID]                       show what the model would see, block by block; --request: as it is sent
  tui-agent compact [ID]                       summarise a session's history; --preview: only show the plan
  tui-agent cost [ID]                          show what a session has cost, all branches together
  tui-agent models [NAME]                      list the models you can use; --all: every known model
  tui-agent login|logout [PROVIDER]            enter a provider's API key or sign in, or remove the key
  tui-agent config path|get|set|unset          show and change settings
  tui-agent mcp list|add|remove|test           manage MCP servers
  tui-agent acp                                serve an editor over standard input and output
  tui-agent run --detach PROMPT                start a run that continues without this terminal
  tui-agent ps|attach|logs|stop [NAME]         list detached runs; show, print or end one
  tui-agent doctor                             check the setup and show what is missing
  tui-agent update                             update the program the way it was installed, or say how
  tui-agent adopt                              list files of other programs that take effect here
  tui-agent plugin list|add|remove             manage plugins in Claude Code's layout
  tui-agent schema                             print the JSON schema of the events of --json
  tui-agent completion SHELL                   print a completion script for bash, zsh or fish

exit codes: {exit_codes_line()}
"""


class UsageError(Exception):
    """Raised for wrong arguments; the message explains the mistake to the user."""


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")


def parse(argv: list[str]) -> argparse.Namespace:
    """Parse the arguments; ``command`` of the result is "run" or the name of a subcommand.

    Raises:
        UsageError: the arguments are wrong or contradict each other.
        SystemExit: the help or the version was requested and has been printed.
    """
    if argv[:1] == ["run"]:
        argv = argv[1:]
    if argv and argv[0] in SUBCOMMANDS:
        parser = _Parser(prog="tui-agent")
        _add_commands(parser, required=True)
        usual = USUAL_ACTIONS.get(argv[0])
        if usual is not None and (
            len(argv) == 1 or (argv[1].startswith("-") and argv[1] not in {"-h", "--help"})
        ):
            argv = [argv[0], usual, *argv[1:]]
        if argv[0] == "mcp":
            _refuse_foreign_action(argv[1])
        return parser.parse_args(argv)
    if argv:
        _refuse_slip(argv[0], argv)
    _refuse_override(argv)
    run_parser = _new_parser(EPILOG)
    run_parser.add_argument("prompt", nargs="?", help="send this as the first message")
    _add_run(run_parser)
    try:
        arguments = run_parser.parse_args(argv)
    except UsageError:
        _refuse_foreign(argv)
        raise
    arguments.command = "run"
    arguments.given = argv
    _refuse_slip(arguments.prompt or "", argv)
    if arguments.print is not None and arguments.prompt:
        if arguments.print:
            raise UsageError(
                "The prompt must be a single argument: put it in quotes. See: tui-agent --help"
            )
        arguments.print = arguments.prompt
        arguments.prompt = None
    if arguments.mode is not None:
        _refuse_foreign_mode(arguments.mode)
    if arguments.model is not None:
        _take_demo(arguments)
    _check(arguments)
    _settle_format(arguments)
    if not is_directory(arguments.cwd):
        raise UsageError(f"Argument --cwd: {arguments.cwd} is not a directory")
    return arguments


def _take_demo(arguments: Namespace) -> None:
    """Replace ``-m`` with the demo's model by ``--demo``, which works in a scratch directory."""
    from tui_agent.model.demo import DEMO_MODEL

    if arguments.model == DEMO_MODEL:
        arguments.model = None
        arguments.demo = True


def named_run(arguments: Namespace) -> Namespace:
    """Return the arguments of a run with ``-p`` that carries out a subcommand.

    For ``tree ID``, these are the arguments of ``-r ID -p /tree``. All such subcommands except
    ``compact`` open the session read-only. Without the id of a session, they use the last session.
    """
    given = {name: value for name, value in vars(arguments).items() if value}
    options = ["-c"]
    if "id" in given:
        options = ["-r", given["id"]]
    valued = ["at", "window", "model"]
    if "model" in given and arguments.command == "compact":
        options += ["-m", given["model"]]
        valued.remove("model")
    words = [f"/{arguments.command}"]
    if "up_to" in given:
        words.append(f"#{given['up_to']}")
    words += [f"--{name} {given[name]}" for name in valued if name in given]
    words += [f"--{name}" for name in ("preview", "request", "json") if name in given]
    if "focus" in given:
        words.append(given["focus"])
    run = parse([*options, "-p", " ".join(words)])
    run.is_named = True
    run.read_only = arguments.command != "compact"
    run.debug = arguments.debug
    return run


def _settle_format(arguments: Namespace) -> None:
    """Make ``json`` and ``output_format`` of the arguments agree; the default format is text."""
    if arguments.json:
        arguments.output_format = "stream-json"
    arguments.output_format = arguments.output_format or "text"
    arguments.json = arguments.output_format == "stream-json"


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError if options contradict each other, or need an option that is missing."""
    has_screen = arguments.print is None
    is_race = arguments.race is not None
    check = arguments.check
    ways = []
    for name in ("continue_", "resume", "fork"):
        if getattr(arguments, name) is not None:
            ways.append(name)
    others = {
        "-c": arguments.continue_,
        "-r": arguments.resume,
        "--fork": arguments.fork,
        "--race": arguments.race,
    }
    others |= {"--no-session": arguments.no_session or None, "--demo": arguments.demo or None}
    clashing = " and ".join(name for name, value in others.items() if value is not None)
    key = arguments.key
    more = "See: tui-agent --help"
    rules = (
        (
            has_screen and arguments.json and not arguments.detach,
            f"--json needs -p or --detach. {more}",
        ),
        (
            has_screen and arguments.output_format is not None,
            f"--output-format needs -p. {more}",
        ),
        (
            arguments.json and arguments.output_format in {"text", "json"},
            "--json is the same as --output-format stream-json, so use only one of them.",
        ),
        (
            has_screen and arguments.result is not None,
            f"--result needs -p; on the screen use /result. {more}",
        ),
        (
            arguments.detach and not has_screen,
            f"--detach can't be used with -p: leave out -p. {more}",
        ),
        (has_screen and key is not None, f"--key needs -p. {more}"),
        (key is not None and not key.strip(), "--key needs a name."),
        (
            key is not None and clashing,
            f"--key already selects the session, so leave out {clashing}.",
        ),
        (has_screen and is_race, f"--race needs -p; on the screen use /race. {more}"),
        (
            has_screen and check is not None,
            f"--check needs -p; on the screen use /check. {more}",
        ),
        (
            arguments.output_schema is not None and (has_screen or is_race),
            f"--output-schema needs -p and can't be combined with --race. {more}",
        ),
        (
            arguments.goal is not None and (has_screen or is_race),
            f"--goal needs -p and can't be combined with --race; on the screen use /goal. {more}",
        ),
        (arguments.goal is not None and not arguments.goal.strip(), "--goal needs a text."),
        (not is_race and arguments.pick is not None, f"--pick needs --race. {more}"),
        (
            arguments.check_rounds is not None and (check is None or is_race),
            f"--check-rounds needs --check and can't be combined with --race. {more}",
        ),
        (arguments.pick == "first-green" and check == "", "--pick first-green needs a --check."),
        (len(ways) > 1, f"Use only one of -c, -r and --fork. {more}"),
        (
            arguments.resume == "" and (not has_screen or bool(arguments.prompt)),
            f"With -p or a prompt, -r needs a session's id; -c continues the last session. {more}",
        ),
        (arguments.fork == "", f"--fork needs a session's id. {more}"),
        (
            arguments.take_over and not (arguments.continue_ or arguments.resume),
            f"--take-over needs -c or -r ID. {more}",
        ),
    )
    for is_broken, why in rules:
        if is_broken:
            raise UsageError(why)


def _refuse_foreign(argv: list[str]) -> None:
    """Refuse an option that only other programs know, and a file as an argument (``@FILE``).

    Raises:
        UsageError: there is such an argument; the message says what to use instead.
    """
    from tui_agent.cli.names_elsewhere import OPTIONS

    for argument in argv:
        name = argument.partition("=")[0]
        if name in OPTIONS:
            raise UsageError(f"tui-agent has no {name}: {OPTIONS[name]}. See: tui-agent --help")
    files = [argument for argument in argv if argument.startswith("@") and " " not in argument]
    if files:
        raise UsageError(
            f'Name a file within the prompt: tui-agent "{files[0]} …". See: tui-agent --help'
        )


def _refuse_foreign_mode(mode: str) -> None:
    """Raise UsageError for a value of ``--mode`` that only other programs know."""
    from tui_agent.cli.names_elsewhere import MODES as MODES_ELSEWHERE

    if instead := MODES_ELSEWHERE.get(mode):
        raise UsageError(f"There is no --mode {mode}: {instead}. See: tui-agent --help")


def _refuse_override(argv: list[str]) -> None:
    """Refuse ``-c KEY=VALUE``, which sets a setting in Codex but would be sent as a message here.

    Raises:
        UsageError: the arguments contain it; the message says how to set the setting here.
    """
    from tui_agent.cli.names_elsewhere import CONFIG_KEYS

    for option, value in pairwise([*argv, ""]):
        if option == "--":
            return
        if option in _CONFIG_OPTIONS:
            written = value
        else:
            written = option.removeprefix("-c") if option.startswith("-c") else ""
        found = _OVERRIDE.match(written)
        if found is None:
            continue
        key = found["key"]
        first = key.partition(".")[0]
        if " " in written and first not in CONFIG_KEYS:
            continue
        raise UsageError(f"{_how_to_set(key, found['value'])} See: tui-agent --help")


def _how_to_set(key: str, value: str) -> str:
    """Return a sentence that says how to set here what Codex's ``-c KEY=VALUE`` sets."""
    from tui_agent.cli.names_elsewhere import CONFIG_KEYS
    from tui_agent.config import Config

    first = key.partition(".")[0]
    said = f"-c continues the last session and changes no setting. Instead of {key}"
    if first in CONFIG_KEYS:
        return f"{said}: {CONFIG_KEYS[first]}."
    if first not in Config.model_fields:
        return f"{said}: tui-agent config get lists the settings of tui-agent."
    variable = f"TUI_AGENT_{key.upper().replace('.', '__')}={shlex.quote(value)}"
    command = f"tui-agent config set {key} {shlex.quote(value)}"
    return f"{said}: {variable} in the environment sets it for one run, {command} saves it."


def _refuse_foreign_action(action: str) -> None:
    """Raise UsageError for an action of ``mcp`` that only other programs know."""
    from tui_agent.cli.names_elsewhere import MCP_ACTIONS

    if instead := MCP_ACTIONS.get(action):
        raise UsageError(f"tui-agent has no mcp {action}: {instead}. See: tui-agent mcp --help")


def _refuse_slip(word: str, argv: list[str]) -> None:
    """Refuse a message that is probably a mistyped command, because sending it costs money.

    Raises:
        UsageError: the message is a single word that is another program's subcommand, or is (or
            resembles) a subcommand of this program, and the arguments contain no ``--``.
    """
    if not _COMMAND.fullmatch(word) or "--" in argv:
        return
    from difflib import get_close_matches

    from tui_agent.cli.names_elsewhere import COMMANDS

    written = next((pair for more in argv if (pair := f"{word} {more}") in COMMANDS), word)
    if instead := COMMANDS.get(written):
        said = f"“{written}” is not a command of tui-agent: {instead}."
        raise UsageError(f"{said} To send the word as a message: tui-agent -- {word}")
    for meant in get_close_matches(word.lower(), SUBCOMMANDS, n=1, cutoff=LIKENESS):
        if word != meant:
            said = f"“{word}” is not a command. Did you mean {meant}?"
        else:
            said = f"The command {meant} has to be the first argument."
        raise UsageError(f"{said} To send the word as a message: tui-agent -- {word}")


def whole_parser() -> argparse.ArgumentParser:
    """Return a parser with all options and subcommands, for shell completion and the manual."""
    parser = _new_parser(EPILOG[EPILOG.index("exit codes") :])
    _add_run(parser)
    _add_commands(parser, required=False)
    return parser


def _new_parser(epilog: str) -> argparse.ArgumentParser:
    return _Parser(
        prog="tui-agent",
        description="A terminal coding agent whose context window is visible, navigable and reversible.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(is_named=False, read_only=False)
    parser.add_argument("-V", "--version", action="version", version=f"tui-agent {__version__}")
    session = parser.add_argument_group("session")
    session.add_argument(
        "-c",
        "--continue",
        dest="continue_",
        action="store_true",
        default=None,
        help="open the last session of this directory",
    )
    session.add_argument(
        "-r",
        "--resume",
        nargs="?",
        const="",
        metavar="ID",
        help="pick a session, or open one by id",
    )
    session.add_argument(
        "--fork", metavar="ID[#N]", help="continue in a copy of a session, up to entry N"
    )
    session.add_argument(
        "--take-over",
        action="store_true",
        help="with -c or -r ID: take over the session from another program, which can then only read it",
    )
    session.add_argument("--no-session", action="store_true", help="keep no record of the session")
    session.add_argument(
        "--detach",
        action="store_true",
        help="run without this terminal; tui-agent attach shows the run",
    )
    session.add_argument(
        "--on-question",
        choices=ON_QUESTION,
        default="wait",
        metavar="HOW",
        help="what to do when a permission is needed: wait (the default), deny it, or stop the run",
    )
    headless = parser.add_argument_group("without a screen")
    headless.add_argument(
        "-p",
        "--print",
        nargs="?",
        const="",
        metavar="PROMPT",
        help="print the answer and exit; standard input is added to the prompt",
    )
    headless.add_argument(
        "--race",
        metavar="RUNNERS",
        help="run the prompt several times at once, each time in a copy of the project: 3, 'same, sonnet, 2x "
        "effort=high', or with different contexts: 'whole; pruned; without #12 #14; compacted'",
    )
    headless.add_argument(
        "--check",
        metavar="COMMAND",
        help="run this command when the model is done, and send failures back to the model; in a race, run it "
        "in each copy",
    )
    headless.add_argument(
        "--output-schema",
        metavar="FILE",
        help="a file with a JSON Schema, or the schema itself: the last answer must be JSON that matches it, "
        "otherwise the model has to correct it. Prints only the JSON",
    )
    headless.add_argument(
        "--goal",
        metavar="TEXT",
        help="continue until this goal is reached; whenever the model stops, a small model judges whether it is",
    )
    headless.add_argument(
        "--check-rounds",
        type=_positive,
        metavar="N",
        help="send a failed check back to the model up to N times; default: 3",
    )
    headless.add_argument(
        "--key",
        metavar="NAME",
        help="name this run; with the same name again, an interrupted run continues, "
        "and a finished one prints its answer",
    )
    headless.add_argument(
        "--pick",
        choices=PICKS,
        default=None,
        help="how to choose the runner whose changes are taken into the project; default: none",
    )
    headless.add_argument(
        "--result",
        metavar="FILE|branch:NAME",
        help="write the changes as a patch, or commit them to a new branch",
    )
    headless.add_argument(
        "--json", action="store_true", help="print one JSON event per line instead of the answer"
    )
    headless.add_argument(
        "--output-format",
        choices=get_args(OutputFormat),
        metavar="FORMAT",
        help="text; json: one object at the end, with the answer, session, usage and cost; "
        "stream-json: the same as --json",
    )
    how = parser.add_argument_group("settings of this run")
    how.add_argument(
        "--demo",
        action="store_true",
        help="try the program with a scripted model: no API key, no network, a scratch directory",
    )
    how.add_argument("-m", "--model", metavar="NAME", help="use this model, named provider/name")
    how.add_argument(
        "--effort",
        choices=[level.value for level in Effort],
        metavar="LEVEL",
        help=f"how much the model thinks: {', '.join(Effort)}",
    )
    modes = f"{', '.join(MODES)}, or the name of one of your agents"
    how.add_argument("--mode", "--agent", dest="mode", metavar="NAME", help=modes)
    how.add_argument(
        "--trust",
        action="store_true",
        help="trust this project's own settings and commands for this run",
    )
    how.add_argument(
        "--cwd", type=Path, default=Path.cwd(), metavar="DIR", help="work in this directory"
    )
    how.add_argument(
        "--max-steps", type=_positive, metavar="N", help="maximum requests for a message"
    )
    how.add_argument(
        "--max-cost",
        type=_dollars,
        metavar="USD",
        help="maximum cost of a message, in US dollars",
    )
    how.add_argument(
        "--max-tokens",
        type=_positive,
        metavar="N",
        help="maximum tokens for a message, requests and answers together",
    )
    how.add_argument(
        "--timeout",
        type=_seconds,
        metavar="TIME",
        help="maximum time for a message: 90 (seconds), 15m, 2h",
    )
    how.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="RULE",
        help="allow what this rule matches, such as edit or 'bash:make *'",
    )
    how.add_argument(
        "--deny",
        action="append",
        default=[],
        metavar="RULE",
        help="refuse what this rule matches, such as 'bash:git push*'",
    )
    how.add_argument("--debug", action="store_true", help="log more, and show tracebacks")


def _add_commands(parser: argparse.ArgumentParser, *, required: bool) -> None:
    commands = parser.add_subparsers(dest="command", required=required, parser_class=_Parser)

    sessions = commands.add_parser(
        "sessions", help="list, search, export, import and delete sessions"
    )
    _add_sessions(sessions)

    result = commands.add_parser(
        "result", help="print a session's changes to its project as a patch, or commit them"
    )
    result.add_argument(
        "id",
        nargs="?",
        default="",
        metavar="ID[#N]",
        help=f"{LAST}; with #N: at entry N, on any branch",
    )
    where = result.add_mutually_exclusive_group()
    where.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the patch to this file"
    )
    where.add_argument(
        "--branch", metavar="NAME", help="commit the changes on a new branch that starts at HEAD"
    )
    where.add_argument(
        "--json", action="store_true", help="print the list of changed files as JSON"
    )

    for name, about in (
        ("tree", "show the branches of a session"),
        ("cost", "show what a session has cost, all branches together"),
    ):
        report = commands.add_parser(name, help=about)
        report.add_argument("id", nargs="?", default="", help=LAST)
        report.add_argument("--json", action="store_true", help="print JSON")

    context = commands.add_parser("context", help="show what the model would see of a session")
    context.add_argument("id", nargs="?", default="", help=LAST)
    context.add_argument(
        "--at", type=_positive, metavar="N", help="show it at entry N instead of at the leaf"
    )
    context.add_argument("-m", "--model", metavar="NAME", help="show it for another model")
    context.add_argument(
        "--window", type=_positive, metavar="TOKENS", help="show it for a window of another size"
    )
    how = context.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print JSON")
    how.add_argument(
        "--request", action="store_true", help="print the exact request that would be sent"
    )

    compact = commands.add_parser("compact", help="summarise a session's history")
    compact.add_argument("id", nargs="?", default="", help=LAST)
    compact.add_argument("-m", "--model", metavar="NAME", help="use another model")
    compact.add_argument("--focus", metavar="TEXT", help="name what the summary must keep")
    compact.add_argument(
        "--up-to", type=_positive, metavar="N", help="summarise only what comes before entry N"
    )
    compact.add_argument(
        "--preview", action="store_true", help="show what would be done, and change nothing"
    )
    compact.add_argument("--json", action="store_true", help="print JSON; only with --preview")

    models = commands.add_parser("models", help="list the models you can use")
    models.add_argument("filter", nargs="?", default="", help="list only names that contain this")
    models.add_argument(
        "--all", action="store_true", help="also list models that you have no API key for"
    )
    models.add_argument("--json", action="store_true", help="print JSON")
    models.add_argument(
        "--forget",
        metavar="NAME",
        help="forget which parts of requests a model's server refused, and send them again",
    )

    _add_login(commands)

    _add_detached(commands)
    _add_config(commands.add_parser("config", help="show and change settings"))
    _add_mcp(commands.add_parser("mcp", help="manage MCP (Model Context Protocol) servers"))
    doctor = commands.add_parser("doctor", help="check the setup and show what is missing")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument(
        "--clean", action="store_true", help="remove project copies that no race uses any more"
    )
    commands.add_parser("update", help="update the program the way it was installed, or say how")
    _add_adopt(commands)
    _add_plugin(commands.add_parser("plugin", help="manage plugins in Claude Code's layout"))
    _add_acp(commands)
    commands.add_parser("schema", help="print the JSON schema of the lines that --json prints")
    completion = commands.add_parser("completion", help="print a completion script for a shell")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")
    for sub in commands.choices.values():
        if sub.get_default("debug") is None:
            sub.set_defaults(debug=False)


def _add_detached(commands: "argparse._SubParsersAction[_Parser]") -> None:
    listing = commands.add_parser("ps", help="list detached runs")
    listing.add_argument("--json", action="store_true", help="print JSON")
    for name, about in (
        ("attach", "show a detached run on this terminal; Ctrl+\\ detaches"),
        ("logs", "print the messages of a detached run"),
        ("stop", "end a detached run; its session is kept"),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("id", nargs="?", default="", metavar="NAME", help=DETACHED)
        if name == "logs":
            command.add_argument(
                "-f", "--follow", action="store_true", help="keep printing until the run ends"
            )


def _add_config(config: argparse.ArgumentParser) -> None:
    steps = config.add_subparsers(dest="action", required=True, parser_class=_Parser)
    steps.add_parser("path", help="print the path of the settings file")
    get = steps.add_parser(
        "get", help="print one setting, or all settings and where each comes from"
    )
    get.add_argument("key", nargs="?", help="a setting, such as ui.theme; default: all of them")
    change = steps.add_parser("set", help="write one setting")
    change.add_argument("key", help="a setting, such as ui.theme")
    change.add_argument("value", help="its new value")
    steps.add_parser("unset", help="remove one setting, so that its default applies").add_argument(
        "key", help="a setting, such as ui.theme"
    )


def _add_sessions(sessions: argparse.ArgumentParser) -> None:
    actions = sessions.add_subparsers(dest="action", required=True, parser_class=_Parser)
    listing = actions.add_parser("list", help="list sessions, newest first")
    listing.add_argument(
        "--here", action="store_true", help="list only the sessions of this directory"
    )
    listing.add_argument("--json", action="store_true", help="print JSON")
    search = actions.add_parser("search", help="search the text of all branches of all sessions")
    search.add_argument("query", help="words to look for")
    search.add_argument("--json", action="store_true", help="print JSON")
    _add_transfer(actions)
    delete = actions.add_parser("delete", help="delete a session for good")
    delete.add_argument("id", help=SESSION)
    delete.add_argument("--yes", action="store_true", help="delete it without asking")


def _add_mcp(mcp: argparse.ArgumentParser) -> None:
    actions = mcp.add_subparsers(dest="action", required=True, parser_class=_Parser)
    listing = actions.add_parser("list", help="list the servers that would be started here")
    listing.add_argument("--json", action="store_true", help="print JSON")
    add = actions.add_parser("add", help="add a server to your settings, by its command or its URL")
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an environment variable for the server",
    )
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="send this header with each request",
    )
    add.add_argument(
        "--sse", action="store_true", help="use SSE; without this, the transport is detected"
    )
    add.add_argument("--force", action="store_true", help="replace a server with the same name")
    add.add_argument("name", help="your name for the server")
    add.add_argument(
        "words",
        nargs=argparse.REMAINDER,
        metavar="COMMAND … | URL",
        help="the server's command and arguments, or its URL",
    )
    actions.add_parser("remove", help="remove a server from your settings").add_argument(
        "name", help=SERVER
    )
    actions.add_parser(
        "test",
        help="start a server, show what it offers and how many tokens that takes, and stop it",
    ).add_argument("name", help=SERVER)


def _add_adopt(commands: "argparse._SubParsersAction[_Parser]") -> None:
    adopt = commands.add_parser("adopt", help="list files of other programs that take effect here")
    adopt.add_argument("--json", action="store_true", help="print JSON")
    adopt.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="GROUP",
        help="stop using a program's files, or one group of them",
    )
    adopt.add_argument(
        "--with",
        dest="with_",
        action="append",
        default=[],
        metavar="GROUP",
        help="use a program's files, or one group of them, again",
    )


def _add_plugin(plugin: argparse.ArgumentParser) -> None:
    actions = plugin.add_subparsers(dest="action", required=True, parser_class=_Parser)
    listing = actions.add_parser("list", help="list the plugins you added")
    listing.add_argument("--json", action="store_true", help="print JSON")
    add = actions.add_parser("add", help="show what a plugin contains, and add it")
    add.add_argument(
        "source",
        metavar="FOLDER|GIT-URL",
        help="the folder of a plugin or a marketplace, or the URL of a Git repository",
    )
    add.add_argument("name", nargs="?", default="", help="name of the plugin in a marketplace")
    add.add_argument("--yes", action="store_true", help="add it without asking")
    actions.add_parser("remove", help="remove a plugin").add_argument(
        "name", help="the plugin's name"
    )


def _add_login(commands: "argparse._SubParsersAction[_Parser]") -> None:
    login = commands.add_parser(
        "login", help="enter a provider's API key, or sign in if the provider offers that"
    )
    login.add_argument(
        "provider",
        nargs="?",
        default="",
        help="id or name of the provider; without it, list the providers",
    )
    login.add_argument("--force", action="store_true", help="save a key even if it can't be tried")
    logout = commands.add_parser("logout", help="remove an API key that you entered")
    logout.add_argument(
        "provider",
        nargs="?",
        default="",
        help="id or name of the provider; without it, list the providers",
    )


def _add_acp(commands: "argparse._SubParsersAction[_Parser]") -> None:
    acp = commands.add_parser(
        "acp", help="serve an editor with the Agent Client Protocol, over standard input and output"
    )
    acp.set_defaults(on_question="wait")
    acp.add_argument(
        "--demo", action="store_true", help="use the scripted model: no API key, no network"
    )
    acp.add_argument("-m", "--model", metavar="NAME", help="use this model, named provider/name")
    acp.add_argument(
        "--effort",
        choices=[level.value for level in Effort],
        metavar="LEVEL",
        help=f"how much the model thinks: {', '.join(Effort)}",
    )
    acp.add_argument("--mode", metavar="MODE", choices=MODES, help=f"one of {', '.join(MODES)}")
    acp.add_argument(
        "--trust", action="store_true", help="use this project's own settings and commands"
    )
    acp.add_argument(
        "--login",
        action="store_true",
        help="ask for a provider's API key in this terminal, and save it",
    )
    acp.add_argument("--debug", action="store_true", help="log more")
    acp.set_defaults(cwd=Path.cwd(), allow=[], deny=[], no_session=False, print=None)
    acp.set_defaults(**dict.fromkeys(RUN_LIMITS))


def _add_transfer(actions: "argparse._SubParsersAction[_Parser]") -> None:
    from tui_agent.session.formats.table import FORMATS

    export = actions.add_parser(
        "export",
        help="print a session, or write it to a file: as Markdown, HTML or JSON lines, or for another program",
    )
    export.add_argument(
        "id", metavar="ID[#N]", help="the session; with #N: the branch that leads to entry N"
    )
    export.add_argument(
        "--format",
        choices=("markdown", "html", "json", "claude-code", "codex"),
        help="the format; default: by the suffix of -o, otherwise markdown",
    )
    which = export.add_mutually_exclusive_group()
    which.add_argument(
        "--branch", action="store_true", help="write only the current branch (default for markdown)"
    )
    which.add_argument(
        "--all", action="store_true", help="write every branch (default for html and json)"
    )
    export.add_argument(
        "--redact", action="store_true", help="leave out secrets, and user names in paths"
    )
    export.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to this file or directory; default: print it",
    )
    export.add_argument("--force", action="store_true", help="replace the file if it exists")
    importing = actions.add_parser("import", help="import sessions of tui-agent or another program")
    importing.add_argument("file", type=Path, nargs="?", help="a file, or a directory with files")
    importing.add_argument(
        "--detect",
        type=_positive,
        nargs="?",
        const=0,
        metavar="N",
        help="list the sessions of other programs on this machine; with a number, import that one",
    )
    importing.add_argument(
        "--from",
        dest="source",
        default="auto",
        choices=("auto", *(row.name for row in FORMATS)),
        help="the format; default: detect it",
    )
    importing.add_argument(
        "--skip-damaged", action="store_true", help="skip lines that can't be read"
    )
    importing.add_argument(
        "--keep-directories",
        action="store_true",
        help="let sessions work in the directories that the files name; only for your own files",
    )
    importing.add_argument(
        "--json", action="store_true", help="print a line of JSON for each session"
    )


def _positive(text: str) -> int:
    value = whole_number(text)
    if not value:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return value


def _dollars(text: str) -> float:
    try:
        return dollars_in(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is not an amount above 0 in US dollars, such as 5 or 0.50"
        ) from None


def _seconds(text: str) -> float:
    """Parse a duration, a number with the unit s (the default), m or h; return seconds."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    try:
        return amount_in(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is not a time above 0, such as 90 (seconds), 15m or 2h"
        ) from None


def run_completion(arguments: Namespace) -> int:
    import shtab

    print(shtab.complete(whole_parser(), shell=arguments.shell))
    return 0
