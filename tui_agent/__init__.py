"""tui-agent: a terminal coding agent whose context window is visible, navigable and reversible.

The names of the library API (``tui_agent.library.__all__``, docs/library.md) can be imported from here;
they are loaded on first use.
"""

from tui_agent.version import __version__ as __version__

TYPE_CHECKING = False  # importing the constant from typing takes as long as the whole module
if TYPE_CHECKING:
    from tui_agent.library import *  # noqa: F403 - library.py has the list


def __getattr__(name: str) -> object:
    from importlib.util import find_spec

    # Python itself looks up attributes such as ``__path__`` in every module.
    if name.startswith("__") and name != "__all__":
        raise AttributeError(name)
    # Python imports a submodule only if this function raises AttributeError for its name.
    if name != "__all__" and find_spec(f"{__name__}.{name}") is not None:
        raise AttributeError(name)
    from tui_agent import library

    if name == "__all__" or name in library.__all__:
        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
