"""The help of the command line: nothing in it is without a word of explanation."""

import argparse
from collections.abc import Iterator

from tui_agent.cli.arguments import EPILOG, SUBCOMMANDS, whole_parser


def arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Every argument that the help of a parser, and of the parsers below it, shows; with the parser's name."""
    shown: list[argparse.Action] = []

    class Recording(argparse.HelpFormatter):
        def add_argument(self, action: argparse.Action) -> None:
            shown.append(action)
            super().add_argument(action)

    parser.formatter_class = Recording
    parser.format_help()
    for action in shown:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                yield from arguments(below)
        else:
            yield parser.prog, action


def test_every_argument_has_help() -> None:
    found = list(arguments(whole_parser()))
    assert len(found) > 100
    assert not [f"{name}: {action.option_strings or action.dest}" for name, action in found if not action.help]


def test_the_help_names_every_subcommand() -> None:
    lines = [line.split()[1] for line in EPILOG.splitlines() if line.startswith("  tui-agent ")]
    assert {word for line in lines for word in line.split("|")} == set(SUBCOMMANDS)
