"""tui-agent: a terminal coding agent whose context window is visible, navigable and reversible.

The names of the library API (``tui_agent.library.__all__``, docs/library.md) can be imported from here;
they are loaded on first use.
"""

from tui_agent.version import __version__ as __version__

TYPE_CHECKING = False  # importing it from typing would take as long as the rest of this module
if TYPE_CHECKING:
    from tui_agent.library import *  # noqa: F403 - library.py has the list


def __getattr__(name: str) -> object:
    from importlib.util import find_spec

    # Python itself looks up attributes such as ``__path__`` in every module.
    if name.startswith("__") and name != "__all__":
        raise AttributeError(name)
    # A submodule that is not imported yet is not an attribute.
    if name != "__all__" and find_spec(f"{__name__}.{name}") is not None:
        raise AttributeError(name)
    from tui_agent import library

    if name == "__all__" or name in library.__all__:
        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
