"""Other programs that tests run: installed by ``make neighbours``, a test without them is skipped and says so."""

import os
from pathlib import Path

import pytest

HOME = Path(os.environ.get("TUI_AGENT_NEIGHBOURS", Path(__file__).parents[2] / ".venv" / "neighbours"))


def program(name: str) -> str:
    """Return the path of an installed program, from npm or PyPI."""
    found = [path for path in (HOME / "node_modules" / ".bin" / name, HOME / "python" / "bin" / name) if path.exists()]
    if not found:
        pytest.skip(f"{name} is not installed: make neighbours")
    return str(found[0])


def node_package(name: str) -> Path:
    """Return the directory of an installed npm package."""
    path = HOME / "node_modules" / name
    if not path.is_dir():
        pytest.skip(f"{name} is not installed: make neighbours")
    return path


def python_package(name: str) -> Path:
    """Return the directory of a package from PyPI."""
    found = next((HOME / "python").glob(f"lib/python*/site-packages/{name}"), None)
    if found is None:
        pytest.skip(f"{name} is not installed: make neighbours")
    return found


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which a program finds Node, and a home that is a test's own."""
    node = HOME / "node_modules" / ".bin"
    return {"PATH": f"{node}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "PI_OFFLINE": "1"}
