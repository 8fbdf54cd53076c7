"""Writes docs/man/tui-agent.1 from the parser of the command line. `--check` says whether it is up to date."""

import sys
from pathlib import Path

from command_line import Command, commands

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "man" / "tui-agent.1"

FILES = r"""
.SH FILES
.TP
.I ~/.config/tui\-agent/config.toml
The settings; \fBtui\-agent config path\fR prints its path on this platform.
.TP
.I .tui\-agent/config.toml
Settings of a project, used once you trust it.
.TP
.I ~/.local/share/tui\-agent/sessions.db
All sessions, in one SQLite file.
"""


def man_page() -> str:
    """Return the manual page. It depends on nothing but the parser and the version."""
    sys.path.insert(0, str(ROOT))
    from tui_agent.cli.arguments import whole_parser
    from tui_agent.version import __version__

    program, *subcommands = commands(whole_parser())
    parts = [
        f'.TH TUI\\-AGENT "1" "{_roff(__version__)}" "tui\\-agent {_roff(__version__)}" "tui\\-agent"',
        ".ad l",
        ".SH NAME",
        r"tui\-agent \- terminal coding agent with a visible, navigable, reversible context window",
        ".SH SYNOPSIS",
        r".B tui\-agent",
        "[OPTION]... [PROMPT]",
        ".br",
        r".B tui\-agent",
        "COMMAND [ARGUMENT]...",
        ".SH DESCRIPTION",
        _roff(program.about),
        *_groups(program, ".SH"),
        ".SH SUBCOMMANDS",
    ]
    for command in subcommands:
        parts += [f".SS {_roff(command.name)}", _roff(command.about), *_groups(command, "")]
    parts += [".SH EXIT STATUS", _roff(program.epilog.partition(": ")[2]), FILES.strip()]
    return "\n".join(parts) + "\n"


def _groups(command: Command, heading: str) -> list[str]:
    lines = []
    for group in command.groups:
        if heading:
            lines.append(f"{heading} {_roff(group.title.upper())}")
        for written, meaning in group.rows:
            if heading or not written.startswith("-h,"):
                lines += [".TP", f"\\fB{_roff(written)}\\fR", _roff(meaning)]
    return lines


def _roff(text: str) -> str:
    """Return a text as roff has it: no line of it is a request."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    # Named, characters need no preprocessor to know the encoding.
    text = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text)
    return "\\&" + text if text.startswith((".", "'")) else text


def main() -> int:
    """Write the page, or with ``--check`` compare it; returns the exit code."""
    page = man_page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page else 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
