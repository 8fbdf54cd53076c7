"""Runs the command that the arguments name, and turns errors into a message and an exit code.

Decides between the full screen, plain mode and a run without a screen, and reads standard input for
a run without a screen.
"""

import errno
import gc
import os
import sys
import threading
from argparse import Namespace
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from tui_agent.cli.arguments import UsageError, named_run, parse
from tui_agent.cli.interrupts import end_at_once, raise_again
from tui_agent.cli.output import ExitCode, discard_output, provide_streams, say

MAX_STDIN_BYTES = 2_000_000
"""Maximum size of the text on standard input, in bytes."""
STDIN_PATIENCE = 3.0
"""Seconds after which a message says that the program waits for the end of standard input."""

STILL_OPEN = "Waiting for standard input to end. If nothing is piped in, add </dev/null."
_CLOSED_OUTPUT = (
    "Standard output is closed, so the answer would be lost. Send it to a file or to /dev/null."
)
USAGE_ERRORS = {"UsageError", "ConfigError", "RuleError", "UnknownModelError"}
"""Names of the error classes that mean wrong usage.

They are stored as names, so that no class has to be imported.
"""

_MODULES = {
    "logout": "login",
    "config": "settings",
    "schema": "events",
    "completion": "arguments",
    **dict.fromkeys(("detached", "ps", "attach", "logs", "stop"), "detached.commands"),
}
"""Modules of the subcommands whose modules don't have the subcommand's name."""


def run(argv: list[str]) -> int:
    """Parse the arguments, run the command and return the exit code; prints errors.

    With ``--debug``, an error of the command is raised instead.
    """
    provide_streams()
    if not os.environ.get("HOME"):
        from tui_agent.paths import provide_home

        provide_home()
    try:
        try:
            Path.cwd()
        except OSError:
            raise UsageError(
                "The current directory no longer exists. Change to another one."
            ) from None
        arguments = parse(argv)
    except UsageError as error:
        return _fail(str(error), ExitCode.USAGE)
    except SystemExit as done:
        return int(done.code or 0)
    try:
        command = _command(arguments)
        raise_again()
        code = command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reading program, such as head, has closed the output
        discard_output()
        return 0
    except Exception as error:  # reported here, because nothing else handles it
        reported = _report(error, debug=arguments.debug)
        if reported is None:
            raise
        return reported
    return code


def _command(arguments: Namespace) -> Callable[[Namespace], int]:
    """Return the function that runs the command, importing only the module that defines it."""
    name = arguments.command
    if name == "run" and arguments.detach:
        name = "detached"
    if name == "run":
        return _full_screen if arguments.print is None else _headless
    if name in {"tree", "cost", "context", "compact"}:
        return lambda named: _headless(named_run(named))
    run: Callable[[Namespace], int] = getattr(
        import_module(f"tui_agent.cli.{_MODULES.get(name, name)}"), f"run_{name}"
    )
    return run


def _full_screen(arguments: Namespace) -> int:
    end_at_once()
    if "TEXTUAL_DRIVER" in os.environ:  # textual-serve shows the program in a browser
        from tui_agent.cli.ending import run_to_end
        from tui_agent.cli.screen import run_screen

        return run_to_end(run_screen(arguments))
    if sys.stdin is not None and is_plain():
        if sys.__stdout__ is None:
            return _fail(_CLOSED_OUTPUT, ExitCode.FAILED)
        from tui_agent.cli.logs import skip_plugins

        skip_plugins()
        from tui_agent.cli.ending import run_to_end
        from tui_agent.cli.plain import run_plain

        return run_to_end(run_plain(arguments))
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _fail(
            "The full-screen program needs a terminal. Without one, use -p.",
            ExitCode.USAGE,
        )
    from tui_agent.paths import cache_dir
    from tui_agent.ui.early_prompt import early_prompt

    with early_prompt.shown(cache_dir() / "early-prompt.json"):
        from tui_agent.cli.ending import run_to_end
        from tui_agent.cli.screen import run_screen

        return run_to_end(run_screen(arguments))


def is_plain() -> bool:
    """Return True if plain mode is chosen (``ui.plain``) or the terminal can't move its cursor."""
    if os.environ.get("TERM") in {"dumb", "unknown"}:
        return True
    chosen = os.environ.get("TUI_AGENT_UI__PLAIN", "")
    if chosen:
        return chosen.lower() in {"1", "true", "yes", "on"}
    from tui_agent.paths import config_dir
    from tui_agent.text_files.encodings import settings_text

    try:
        text = settings_text((config_dir() / "config.toml").read_bytes())
        if "plain" not in text:
            return False
        import tomllib

        return tomllib.loads(text).get("ui", {}).get("plain") is True
    except (OSError, ValueError, AttributeError):
        return False


def _headless(arguments: Namespace) -> int:
    end_at_once()
    # Switch the garbage collector off for the startup: nothing that is imported or built then
    # becomes garbage, and looking for it takes a tenth of the time.
    gc.disable()
    from tui_agent.cli.logs import skip_plugins

    skip_plugins()
    from tui_agent.cli.ending import run_to_end
    from tui_agent.cli.one_shot import run_one_shot

    if sys.__stdout__ is None:
        return _fail(_CLOSED_OUTPUT, ExitCode.FAILED)
    message = arguments.print or arguments.goal or ""
    piped = "" if arguments.is_named else _piped()
    if not message.strip() and not piped.strip():
        raise UsageError("There is no prompt. Write one after -p, or pipe it in.")
    return run_to_end(run_one_shot(arguments, message, piped))


def _piped() -> str:
    """Return the text of standard input; "" if standard input is a terminal or closed.

    Raises UsageError if it is binary, or longer than `MAX_STDIN_BYTES`.
    """
    from tui_agent.text_files.encodings import decode_text, user_text

    if sys.stdin is None or sys.stdin.isatty():
        return ""
    # Tell a user who doesn't know it that standard input is still open.
    timer = threading.Timer(STDIN_PATIENCE, say, [STILL_OPEN], {"file": sys.stderr})
    timer.daemon = True
    timer.start()
    try:
        data = sys.stdin.buffer.read(MAX_STDIN_BYTES + 1)
    finally:
        timer.cancel()
    if len(data) > MAX_STDIN_BYTES:
        raise UsageError(
            f"Standard input has more than {MAX_STDIN_BYTES:,} bytes. Name a file in the prompt instead."
        )
    if decode_text(data) is None:
        raise UsageError(
            "Standard input is binary, not text. Save it as a file and name the file in the prompt."
        )
    return user_text(data).strip("\n")


def _report(error: Exception, *, debug: bool) -> int | None:
    """Print the message for an error and return the exit code.

    With ``debug``, only logs the error and returns None. Prints nothing if the terminal was closed.
    """
    if _is_hangup(error):
        discard_output()
        return ExitCode.INTERRUPTED
    from tui_agent.cli.shell_words import in_shell

    message = in_shell(_sentence(error, debug=debug))
    if debug:
        return None
    discard_output()
    if type(error).__name__ in USAGE_ERRORS:
        return _fail(message, ExitCode.USAGE)
    return _fail(message, ExitCode.FAILED)


def _is_hangup(error: Exception) -> bool:
    """Return whether reading or writing failed because the terminal has been closed."""
    if not isinstance(error, OSError) or error.errno != errno.EIO:
        return False
    import termios

    for descriptor in range(3):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as failure:
            if failure.args[0] == errno.EIO:
                return True
    return False


def _sentence(error: Exception, *, debug: bool) -> str:
    """Return the message for an error; logs the traceback of an unexpected error."""
    is_expected = type(error).__module__.startswith("tui_agent.")
    if debug or not is_expected:
        import logging

        if not logging.root.handlers:
            # Set up the log file, which has not happened yet.
            from tui_agent.cli.logs import start_logging

            start_logging(debug=debug)
        logging.getLogger(__name__).error("failed", exc_info=error)
    if is_expected:
        return str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "The disk is full, so nothing more could be written."
    from tui_agent.paths import DATA_VARIABLE, data_dir, log_dir

    if isinstance(error, OSError) and str(error.filename).startswith(str(data_dir())):
        problem = f"{error.filename} can't be used: {error.strerror}."
        return f"{problem} Set {DATA_VARIABLE} to another directory."

    where = Path(log_dir()) / "tui-agent.log"
    return f"Unexpected error: {type(error).__name__}: {error}. Details are in {where}; --debug shows them here."


def _fail(message: str, code: int) -> int:
    say(message, file=sys.stderr)
    return code
