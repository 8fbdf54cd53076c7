"""Add-ons: installed distributions whose functions are tools of the program.

A distribution names a function in the entry-point group `GROUP`. The function gets an `AddOn` and
registers tools with it. Its code runs in this process, so nothing is imported before somebody needs
the tools, and nothing is read but the `entry_points.txt` of the installed distributions.
"""

import os
import sys
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.errors import UserFacingError
from tui_agent.files.inside import read_regular
from tui_agent.lazy import frozen

if TYPE_CHECKING:
    from tui_agent.tools.functions.add_on_tool import AddOnTool

# The code that makes tools is loaded when there is an add-on.

GROUP = "tui_agent.add_ons"
"""The group of entry points that add-ons declare."""
MAX_BYTES = 1_000_000
"""Maximum bytes read of an ``entry_points.txt``."""
EVERY = "*"
"""The name that leaves out every add-on."""
_PLACES = ("site-packages", "dist-packages")
"""Names of the directories that hold installed distributions. The working directory, which may be
an untrusted project, is never one."""
_SUFFIX = ".dist-info"


@frozen
class Declared:
    """An entry point of the group: its distribution, its version and the function it names."""

    distribution: str
    version: str
    name: str
    value: str

    @property
    def shown(self) -> str:
        return f"Add-on {self.distribution} {self.version}"


@frozen
class AddOns:
    """The tools of all add-ons, and one sentence for each thing that can't be offered."""

    tools: "tuple[AddOnTool, ...]" = ()
    problems: tuple[str, ...] = ()


def load_add_ons(left_out: Collection[str], reserved: Collection[str]) -> AddOns:
    """Import the installed add-ons and return their tools. Takes a moment.

    Args:
        left_out: distributions that are not imported; `EVERY` for all.
        reserved: names that no tool may have.
    """
    if EVERY in left_out:
        return AddOns()
    skipped = {_plain(name) for name in left_out}
    tools: list[AddOnTool] = []
    problems: list[str] = []
    for declared in declared_add_ons():
        if _plain(declared.distribution) in skipped:
            continue
        loaded = _loaded(declared)
        tools += loaded.tools
        problems += loaded.problems
    offered, clashes = without_clashes(tools, dict.fromkeys(reserved, "the program"))
    return AddOns(offered, (*problems, *clashes))


def without_clashes(
    tools: "Iterable[AddOnTool]", taken: dict[str, str]
) -> "tuple[tuple[AddOnTool, ...], list[str]]":
    """Return the tools whose names are free, and a sentence for each of the others.

    ``taken`` says who has each name that is taken; the returned tools are added to it.
    """
    free: list[AddOnTool] = []
    problems: list[str] = []
    for tool in tools:
        if tool.name in taken:
            problems.append(
                f"{tool.shown}: its tool {tool.name} is left out; {taken[tool.name]} has a tool of that name."
            )
        else:
            taken[tool.name] = tool.shown
            free.append(tool)
    return tuple(free), problems


def declared_add_ons() -> list[Declared]:
    """Return the entry points of the group in all installed distributions, by name.

    Reads the files itself, because `importlib.metadata` takes several times as long.
    """
    found: dict[str, list[Declared]] = {}
    for place in map(Path, sys.path):
        if place.name not in _PLACES or _is_working_directory(place):
            continue
        try:
            names = os.listdir(place)  # noqa: PTH208 - a path for each of hundreds takes longer
        except OSError:
            continue
        for name in names:
            # Of a distribution that is installed twice, the first one counts, as for imports.
            if name.endswith(_SUFFIX) and (rows := _rows(place, name)):
                found.setdefault(_plain(rows[0].distribution), rows)
    return [row for _name, rows in sorted(found.items()) for row in rows]


def _is_working_directory(place: Path) -> bool:
    try:
        return place.samefile(".")
    except OSError:
        return False


def _rows(place: Path, name: str) -> list[Declared]:
    data = read_regular(f"{place}/{name}/entry_points.txt", MAX_BYTES)
    if data is None or f"[{GROUP}]".encode() not in data:
        return []
    distribution, _, version = name.removesuffix(_SUFFIX).partition("-")
    rows: list[Declared] = []
    section = ""
    for line in data.decode(errors="replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        elif section == f"[{GROUP}]" and "=" in text and not text.startswith("#"):
            key, _, value = text.partition("=")
            rows.append(Declared(distribution, version, key.strip(), value.strip()))
    return rows


@lru_cache(maxsize=100)
def _loaded(declared: Declared) -> AddOns:
    """Import an add-on and have it register, once in this process."""
    from importlib.metadata import EntryPoint

    from tui_agent.tools.functions.add_on_tool import AddOn, add_on_running

    add_on = AddOn(declared.shown)
    try:
        with add_on_running():
            register = EntryPoint(declared.name, declared.value, GROUP).load()
            register(add_on)
    except BaseException as error:  # noqa: BLE001 - the add-on's own, whatever it is
        return AddOns(add_on.tools, (f"{declared.shown} could not be loaded: {_why(error)}.",))
    return AddOns(add_on.tools)


def _why(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, UserFacingError):
        return text
    return f"{type(error).__name__}: {text}".removesuffix(": ")


def _plain(distribution: str) -> str:
    return distribution.replace("-", "_").replace(".", "_").lower()
