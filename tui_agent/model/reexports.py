"""Loads packages that only re-export name by name, so that one name doesn't bring in a thousand modules.

openai's packages say ``from .thread import Thread`` a thousand times in their ``__init__``; litellm asks for a few of
these names. Here each name is what it would be, imported when somebody asks for it. A package that does anything else
in its ``__init__`` is imported as usual.
"""

import ast
import importlib
import sys
import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

_Names = dict[str, tuple[str, str]]
"""The module, from its package on, and the name in it of each name of a package; no name for a module itself."""


def install(prefix: str) -> None:
    """Import packages within the package ``prefix`` name by name from now on."""
    sys.meta_path.insert(0, _Finder(f"{prefix}."))


class _Package(types.ModuleType):
    """A package that imports a name when it is asked for."""

    def __getattr__(self, name: str) -> Any:
        source = vars(self).get("_names", {}).get(name)
        if source is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module = importlib.import_module(source[0], self.__name__)
        value = getattr(module, source[1]) if source[1] else module
        setattr(self, name, value)
        return value


class _ByName(Loader):
    def __init__(self, names: _Names) -> None:
        self._names = names

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Package(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)["_names"] = self._names


class _Finder(MetaPathFinder):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self._prefix):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or found.submodule_search_locations is None or found.origin is None:
            return None
        names = _reexported(Path(found.origin).read_text(encoding="utf-8"))
        if names is None:
            return None
        spec = ModuleSpec(fullname, _ByName(names), origin=found.origin, is_package=True)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = True
        return spec


def _reexported(source: str) -> _Names | None:
    """Return what an ``__init__`` re-exports, None when it does more than that."""
    names: _Names = {}
    for statement in ast.parse(source).body:
        match statement:
            case ast.ImportFrom(module=module, names=aliases, level=level) if level and aliases[0].name != "*":
                parent = "." * level + (module or "")
                for alias in aliases:
                    own = (parent, alias.name) if module else (parent + alias.name, "")
                    names[alias.asname or alias.name] = own
            case ast.ImportFrom(module="__future__") | ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                continue
            case _:
                return None
    return names
