"""Writes docs/man/tui-agent.1 from the parser of the command line. `--check` says whether it is up to date."""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "man" / "tui-agent.1"

FILES = r"""
.TP
.I ~/.config/tui\-agent/config.toml
The settings; \fBtui\-agent config path\fR tells where they are on this platform.
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
    from argparse_manpage.manpage import Manpage

    from tui_agent.cli.arguments import whole_parser
    from tui_agent.version import __version__

    os.environ["COLUMNS"] = "80"  # lines of usage are broken at the terminal's width
    parser = whole_parser()
    # A usage line with the directory of the one who draws it would differ on every machine.
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        if isinstance(action.default, Path):
            action.default = argparse.SUPPRESS
    data = {
        "project_name": "tui-agent",
        "version": __version__,
        "description": "terminal coding agent with a visible, navigable, reversible context window",
        "manual_title": "tui-agent",
        "date": "0.1.0",
    }
    page = Manpage(parser, _data=data)
    page.add_section("files", ">", FILES.strip())
    return str(page)


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
