"""How the modules hang together, every import counted: those in functions and those for types only, too."""

import pytest
from grimp import ImportGraph, build_graph

MAX_SHARE_IN_CIRCLES = 0.03


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return build_graph("tui_agent", cache_dir=None)


def circles(graph: ImportGraph) -> list[list[str]]:
    """Return the groups of modules that reach each other (Tarjan's strongly connected components)."""
    found: list[list[str]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for imported in sorted(graph.find_modules_directly_imported_by(module)):
            if imported not in index:
                visit(imported)
                low[module] = min(low[module], low[imported])
            elif imported in stack:
                low[module] = min(low[module], index[imported])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            found.append(sorted(group))

    for module in sorted(graph.modules):
        if module not in index:
            visit(module)
    return [group for group in found if len(group) > 1]


def test_few_modules_need_each_other(graph: ImportGraph) -> None:
    found = circles(graph)
    assert sum(map(len, found)) <= MAX_SHARE_IN_CIRCLES * len(graph.modules), found
    assert max(map(len, found)) <= 3, found


@pytest.mark.parametrize(
    ("upper", "lower"),
    [
        ("cli", "ui"), ("cli", "app"), ("ui", "app"), ("acp", "app"), ("app", "agent"), ("agent", "tools"),
        ("agent", "model"), ("tools", "context"), ("model", "context"), ("context", "session"),
    ],
)  # fmt: skip
def test_no_import_points_up_however_it_is_written(graph: ImportGraph, upper: str, lower: str) -> None:
    """The import contracts say the same; this holds that they see functions and types."""
    found = graph.find_shortest_chains(f"tui_agent.{lower}", f"tui_agent.{upper}", as_packages=True)
    assert not found, found


def test_imports_in_functions_are_seen(graph: ImportGraph) -> None:
    assert "tui_agent.agent.compactor" in graph.find_modules_directly_imported_by("tui_agent.agent.context_keeper")
