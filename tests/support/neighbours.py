"""Other programs that tests run: installed by ``make neighbours``, a test without them is skipped and says so."""

import os
from pathlib import Path

import pytest

HOME = Path(
    os.environ.get("TUI_AGENT_NEIGHBOURS", Path(__file__).parents[2] / ".venv" / "neighbours")
)


def _installed(name: str, *patterns: str) -> Path:
    found = next((path for pattern in patterns for path in HOME.glob(pattern)), None)
    if found is None:
        pytest.skip(f"{name} is not installed: make neighbours")
    return found


def program(name: str) -> str:
    """Return the path of an installed program, from npm or PyPI."""
    return str(_installed(name, f"node_modules/.bin/{name}", f"python/bin/{name}"))


def package(name: str) -> Path:
    """Return the directory of an installed package, from npm or PyPI."""
    return _installed(name, f"node_modules/{name}", f"python/lib/python*/site-packages/{name}")


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which a program finds Node, and a home that is a test's own."""
    node = HOME / "node_modules" / ".bin"
    return {"PATH": f"{node}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "PI_OFFLINE": "1"}
