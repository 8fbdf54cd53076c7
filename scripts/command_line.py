"""The command line as data, for its two pages: they must not depend on how a version of argparse words its help."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

HELP = "show this help and exit"
VERSION = "show the version and exit"


@dataclass(frozen=True)
class Group:
    """Arguments that stand together; each row has how it is written and what it does."""

    title: str
    rows: list[tuple[str, str]]


@dataclass(frozen=True)
class Command:
    """The program or one of its subcommands."""

    name: str
    about: str
    groups: list[Group]
    epilog: str = ""


def commands(parser: argparse.ArgumentParser, about: str = "") -> Iterator[Command]:
    """Yield a parser and then, in order, everything below it."""
    below: list[tuple[str, argparse.ArgumentParser, str]] = []
    groups = []
    for group in parser._action_groups:  # noqa: SLF001 - argparse has no other way to list them
        rows = []
        for action in group._group_actions:  # noqa: SLF001
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                helps = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
                below += [(name, sub, helps.get(name, "")) for name, sub in action.choices.items()]
                rows += [(name, helps.get(name, "")) for name in action.choices]
            elif action.help != argparse.SUPPRESS:
                rows.append((_written(action), _meaning(action)))
        if rows:
            title = {"positional arguments": "commands" if below else "arguments"}.get(
                group.title or "", group.title
            )
            groups.append(Group(title or "", rows))
    yield Command(parser.prog, parser.description or about, groups, parser.epilog or "")
    for _name, sub, said in below:
        yield from commands(sub, said)


def _written(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else None
    if value is None:
        names = action.choices
        value = "{" + ",".join(map(str, names)) + "}" if names else action.dest
        value = value.upper() if action.option_strings and not names else value
    if action.nargs == 0:
        value = ""
    elif action.nargs in {"?", "*"}:
        value = f"[{value}]"
    return " ".join(part for part in (", ".join(action.option_strings), value) if part)


def _meaning(action: argparse.Action) -> str:
    if "--help" in action.option_strings:
        return HELP
    return VERSION if "--version" in action.option_strings else action.help or ""
