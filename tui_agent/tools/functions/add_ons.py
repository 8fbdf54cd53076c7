"""Finds and loads add-ons, which are installed Python packages that add tools to the program.

A distribution names a function in the entry-point group `GROUP`. The function is called with an
`AddOn` and registers tools with it. An add-on's code runs in this process, so it is imported only
when the tools are needed; until then only the `entry_points.txt` of the installed distributions is
read.
"""

import os
import sys
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tui_agent.errors import UserFacingError
from tui_agent.files.inside import read_regular
from tui_agent.lazy import frozen

if TYPE_CHECKING:
    from tui_agent.tools.functions.add_on_tool import AddOnTool

# The module that creates tools from functions is imported only if an add-on is installed.

GROUP = "tui_agent.add_ons"
"""Name of the group of entry points in which packages declare add-ons."""
MAX_BYTES = 1_000_000
"""Maximum number of bytes that are read from an ``entry_points.txt`` file."""
LOAD_SECONDS = 20.0
"""Time limit, in seconds, for importing an add-on and registering its tools."""
EVERY = "*"
"""Value that stands for all distributions in the list of distributions that are left out."""
_PLACES = ("site-packages", "dist-packages")
"""Names of directories on ``sys.path`` that contain installed distributions. The current working
directory is skipped even if it has such a name, because it may be an untrusted project."""
_SUFFIX = ".dist-info"


@frozen
class DeclaredAddOn:
    """An add-on that an installed package declares as an entry point of the group `GROUP`.

    ``distribution`` and ``version`` belong to the package that declares it. ``value`` names the
    function as ``module:function``.
    """

    distribution: str
    version: str
    name: str
    value: str

    @property
    def shown(self) -> str:
        return f"Add-on {self.distribution} {self.version}"


@frozen
class AddOns:
    """The tools of add-ons, and a sentence for the user on each add-on or tool left out."""

    tools: "tuple[AddOnTool, ...]" = ()
    problems: tuple[str, ...] = ()


def load_add_ons(left_out: Collection[str], reserved: Collection[str]) -> AddOns:
    """Import the installed add-ons and return their tools. May take seconds, so use a thread.

    Args:
        left_out: names of distributions not to import; `EVERY` for all.
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
        loaded = _load_in_time(declared)
        tools += loaded.tools
        problems += loaded.problems
    offered, clashes = without_clashes(tools, dict.fromkeys(reserved, "the program"))
    return AddOns(offered, (*problems, *clashes))


def without_clashes(
    tools: "Iterable[AddOnTool]", taken: dict[str, str]
) -> "tuple[tuple[AddOnTool, ...], list[str]]":
    """Return the tools whose names aren't taken, and a sentence for the user on each other tool.

    ``taken`` maps each name that is taken to the name's owner, which the sentence mentions. The
    returned tools are added to ``taken``.
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


def declared_add_ons() -> list[DeclaredAddOn]:
    """Return the entry points of `GROUP` in all installed distributions, sorted by distribution.

    A directory is read again when its modification time has changed, because each installation adds
    or removes a ``.dist-info`` directory in it.
    """
    found: dict[str, list[DeclaredAddOn]] = {}
    for place in map(Path, sys.path):
        if place.name not in _PLACES or _is_working_directory(place):
            continue
        try:
            changed = place.stat().st_mtime_ns
        except OSError:
            continue
        for name, rows in _declared_in(place, changed).items():
            # If a distribution is installed twice, the first one is used, as for imports.
            found.setdefault(name, rows)
    return [row for _name, rows in sorted(found.items()) for row in rows]


@lru_cache(maxsize=20)
def _declared_in(place: Path, _changed: int) -> dict[str, list[DeclaredAddOn]]:
    """Return the entry points of `GROUP` in one directory, by the distribution's plain name.

    ``_changed`` is the directory's modification time in nanoseconds. The function parses the files
    itself, because `importlib.metadata` takes several times as long.
    """
    found: dict[str, list[DeclaredAddOn]] = {}
    try:
        names = os.listdir(place)  # noqa: PTH208 - a path for each of hundreds takes longer
    except OSError:
        return found
    for name in names:
        if name.endswith(_SUFFIX) and (rows := _rows(place, name)):
            found.setdefault(_plain(rows[0].distribution), rows)
    return found


def _is_working_directory(place: Path) -> bool:
    try:
        return place.samefile(".")
    except OSError:
        return False


def _rows(place: Path, name: str) -> list[DeclaredAddOn]:
    """Return the entry points of `GROUP` in the ``*.dist-info`` directory ``name``.

    Returns an empty list if there are none.
    """
    data = read_regular(f"{place}/{name}/entry_points.txt", MAX_BYTES)
    if data is None or f"[{GROUP}]".encode() not in data:
        return []
    distribution, _, version = name.removesuffix(_SUFFIX).partition("-")
    rows: list[DeclaredAddOn] = []
    section = ""
    for line in data.decode(errors="replace").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        elif section == f"[{GROUP}]" and "=" in text and not text.startswith("#"):
            key, _, value = text.partition("=")
            rows.append(DeclaredAddOn(distribution, version, key.strip(), value.strip()))
    return rows


@lru_cache(maxsize=100)
def _load_in_time(declared: DeclaredAddOn) -> AddOns:
    """Load an add-on, once in this process.

    If that takes more than `LOAD_SECONDS`, the thread that loads it is left running, and a problem
    is returned instead of tools.
    """
    found: list[AddOns] = []
    loading = Thread(target=lambda: found.append(_load(declared)), name=declared.shown, daemon=True)
    loading.start()
    loading.join(LOAD_SECONDS)
    if found:
        return found[0]
    problem = (
        f"{declared.shown} could not be loaded: its import took longer than {LOAD_SECONDS:g} s. "
        f'To leave it out, set leave_out = ["{declared.distribution}"] in [add_ons] of your settings.'
    )
    return AddOns(problems=(problem,))


def _load(declared: DeclaredAddOn) -> AddOns:
    """Import an add-on, call its function, and return the tools that it registered.

    If the add-on raises anything, even SystemExit, a problem that quotes it is returned, too.
    """
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
