"""How the modules hang together, every import counted: those in functions and those for types only, too."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph
from textual.actions import parse
from textual.app import App
from textual.binding import BindingsMap
from textual.dom import DOMNode
from textual.screen import Screen

import tui_agent.ui
from tests.support.parsed import parsed

LETTERS = {
    letter: frozenset(actions.split())
    for letter, actions in {
        "a": "add", "b": "edit_restore request_restore", "c": "runner_go_on choose", "C": "runner_compare",
        "d": "diff runner_diff", "D": "contexts", "e": "rename request_edit edit edit_content", "E": "export",
        "f": "fork", "g": "request_jump go",
        "G": "go", "h": "close", "i": "login", "j": "focus_block scroll move", "k": "focus_block scroll move",
        "l": "label", "m": "edit_mask", "M": "merge runner_merge", "n": "hit next_match step focus_message",
        "N": "hit next_match step focus_message",
        "o": "request request_open request_enter subagent log", "p": "edit_pin", "P": "parent", "q": "dismiss back",
        "r": "request_retry restart race", "s": "request_compact compact", "t": "runner_take take",
        "u": "undo undelete request_undo step_undo", "v": "toggle_here arrange_order", "V": "arrange_grouping",
        "w": "runner_steer take_over", "x": "stop runner_stop delete edit_drop drop", "X": "stop_all",
        "y": "copy request_copy",
    }.items()
}  # fmt: skip
"""The actions a letter may have. An argument that says what an action does is joined to its name.

The answers to a question have letters of their own: there is nothing else on the screen then that takes one.
"""

Imported = tuple[dict[str, set[str]], set[tuple[str, str]]]


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return build_graph("tui_agent", cache_dir=None)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Every file, parsed, by the name of its module."""
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): parsed(path.read_text())
        for path in sorted(Path("tui_agent").rglob("*.py"))
    }


def circles(graph: ImportGraph) -> list[list[str]]:
    """Return the groups of modules that reach each other."""
    below = {module: graph.find_upstream_modules(module) for module in graph.modules}
    groups = {
        frozenset([module, *(one for one in below[module] if module in below[one])])
        for module in below
    }
    return [sorted(group) for group in groups if len(group) > 1]


def test_no_modules_need_each_other(graph: ImportGraph) -> None:
    assert circles(graph) == []


def test_a_protocol_with_one_implementation_is_needed_by_a_layer(
    graph: ImportGraph, trees: Mapping[str, ast.Module]
) -> None:
    """Its implementation is in another room, or could not be named there without a circle."""
    classes: list[tuple[str, str, set[str], bool]] = []
    for module, tree in trees.items():
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                is_protocol = any(ast.unparse(base).startswith("Protocol") for base in node.bases)
                classes.append((module, node.name, members(node), is_protocol))
    needless = []
    for module, name, wanted, is_protocol in classes:
        made = [where for where, _, has, abstract in classes if not abstract and wanted <= has]
        if (
            is_protocol
            and wanted
            and len(made) == 1
            and made[0].split(".")[1] == module.split(".")[1]
        ):
            needed_below = module in graph.find_upstream_modules(made[0])
            needless += [] if needed_below else [f"{module}.{name}: name the class in {made[0]}"]
    assert needless == []


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a node, at any depth, but for expressions, which are most of the nodes."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def members(node: ast.ClassDef) -> set[str]:
    """Return the names of a class's methods and fields, dunder methods apart."""
    methods = {
        one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    fields = {
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    own = {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and getattr(one.value, "id", "") == "self"
    }
    return {name for name in methods | fields | own if not name.startswith("__")}


def test_imports_in_functions_keep_something_from_being_loaded(imported: Imported) -> None:
    """What a module has loaded anyway is imported at its top."""
    at_top, deferred = imported
    loaded = {module: reachable(module, at_top) for module in at_top}
    assert sorted((one, two) for one, two in deferred if two in loaded[one]) == []
    assert [(one, two) for one, two in deferred if one in loaded[two]] == []


def test_every_module_can_be_imported_first(imported: Imported) -> None:
    """What a module loads, the packages included that it enters, never leads back to it while it is loaded itself."""
    loads: dict[str, set[str]] = {}
    for module, names in imported[0].items():
        packages = {name[: dot.start()] for name in names for dot in re.finditer(r"\.", name)}
        loads[module] = names | {
            package for package in packages if not f"{module}.".startswith(f"{package}.")
        }
    assert [module for module in loads if module in reachable(module, loads)] == []


@pytest.fixture(scope="module")
def imported(trees: Mapping[str, ast.Module]) -> Imported:
    """Return what each module imports at its top, and which module imports which in a function."""
    at_top: dict[str, set[str]] = {}
    deferred: set[tuple[str, str]] = set()
    for module, tree in trees.items():
        at_top[module] = set()
        for kind, imported in imports(tree, trees.keys()):
            if kind == "top":
                at_top[module].add(imported)
            elif kind == "function":
                deferred.add((module, imported))
    return at_top, deferred


def imports(
    node: ast.AST, modules: Collection[str], kind: str = "top"
) -> Iterator[tuple[str, str]]:
    """Yield the modules of ours that are imported: at the top, in a function, or for types only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        inner = kind
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = "function"
        elif isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            inner = "type"
        if isinstance(child, ast.ImportFrom) and child.module is not None:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                found = whole if whole in modules else child.module
                if found in modules:
                    yield inner, found
        yield from imports(child, modules, inner)


def reachable(module: str, at_top: Mapping[str, set[str]]) -> set[str]:
    """Return what is loaded with a module."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = at_top[waiting.pop()] - found
        found |= new
        waiting += new
    return found


TEXTUALS = re.compile(r"^from textual", re.MULTILINE)
OURS = re.compile(r"^(?:from|import) tui_agent", re.MULTILINE)
"""A helper that imports Textual and nothing of ours is about Textual, some of whose names are names of ours."""

DEFINED = re.compile(r"(?:def |self\.|^)(_[a-z]\w*)", re.MULTILINE)
TOUCHED = re.compile(
    r"(?<!self)(?<!cls)\.(_[a-z]\w*)|import (_[a-z]\w*)|setattr\([^\"]*\"(_[a-z]\w*)\""
)


OF_OTHERS = (
    r"tui_agent\.(agent|app|acp|files|library|session\.formats|shell|tools|trust|ui|web)(\.|$)"
)


def test_paths_that_others_name_are_looked_at_where_a_refusal_is_an_answer(
    trees: Mapping[str, ast.Module],
) -> None:
    raising = [
        f"{name}:{node.lineno}: use tui_agent.path_checks"
        for name, tree in trees.items()
        if re.match(OF_OTHERS, name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and not node.args and not node.keywords
        and isinstance(node.func, ast.Attribute) and node.func.attr in {"is_dir", "is_file", "exists", "resolve"}
    ]  # fmt: skip
    assert raising == []


CONVERTING = frozenset(
    {
        "tui_agent.whole_numbers",
        "tui_agent.processes.table",
        "tui_agent.sandbox.landlock_start",
    }
)
"""The module with the function, and those that read the names in /proc."""


def test_a_text_becomes_a_whole_number_in_one_way(trees: Mapping[str, ast.Module]) -> None:
    """``"²".isdigit()`` is true, and ``int`` raises an error for it, as for thousands of digits."""
    raising = [
        f"{module}:{function.lineno}: use tui_agent.whole_numbers"
        for module, tree in trees.items()
        if module not in CONVERTING
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(isinstance(node, ast.Name) and node.id == "int" for node in calls_in(function))
        and any(isinstance(node, ast.Attribute) and node.attr in {"isdigit", "isdecimal", "isnumeric"}
                for node in calls_in(function))
    ]  # fmt: skip
    assert raising == []


def calls_in(function: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield node.func


def test_no_test_looks_at_what_is_private() -> None:
    """It would break when that changes though nobody can tell; ask what a user of the class can ask."""
    own = {
        name
        for path in Path("tui_agent").rglob("*.py")
        for name in DEFINED.findall(path.read_text())
    }
    found = []
    for path in sorted(Path("tests").rglob("*.py")):
        text = path.read_text()
        if path.parent.name == "support" and TEXTUALS.search(text) and not OURS.search(text):
            continue
        theirs = own - set(DEFINED.findall(text))
        for number, line in enumerate(text.splitlines(), 1):
            if theirs & {name for names in TOUCHED.findall(line) for name in names}:
                found.append(f"{path}:{number}: {line.strip()}")
    assert found == []


def test_no_handler_calls_the_one_it_overrides(trees: dict[str, ast.Module]) -> None:
    """Textual calls the handlers of every class itself: one called again listens twice."""
    calls = [
        f"{module}:{node.lineno}"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in {"on_mount", "on_unmount", "on_resize", "_on_click"}
        if isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "super"
    ]
    assert calls == []


def test_a_letter_does_one_thing_on_every_page(trees: dict[str, ast.Module]) -> None:
    used: dict[str, set[str]] = {}
    for module, tree in trees.items():
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in (
            call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Binding"
        ):
            keys, action = (
                argument.value if isinstance(argument, ast.Constant) else ""
                for argument in call.args[:2]
            )
            if module.startswith("tui_agent.ui") and "permission" not in module:
                name = re.sub(r"^(?:screen|app)\.|\W(?:[-\d]+|True|False|None)\W$", "", action)
                for key in keys.split(","):
                    if len(key) == 1 and key.isalpha():
                        used.setdefault(key, set()).add(re.sub(r"\W+", "_", name).strip("_"))
    assert used
    assert {key: actions - LETTERS.get(key, set()) for key, actions in used.items()} == {
        key: set() for key in used
    }


TESTS = Path(__file__).parent
STOPWATCHES = {
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "thread_time",
}
WORDS = re.compile("|".join([*STOPWATCHES, r"(sleep|pause)\(\s*[\d.]"]))
"""Files without any of these need not be parsed."""

FOR_EVER = 60
"""Seconds from which on a sleep plays something that hangs."""


def test_no_text_names_a_function_key(trees: dict[str, ast.Module]) -> None:
    """Every command's key can be changed in ``[keys]``: texts name the command, or ask `key_of`."""
    named = [
        f"{module}: {node.value}"
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.search(r"(?<!-)\bF(\d|1[0-2])\b(?! of xterm)", node.value)
    ]
    assert named == []


def unsteady(tree: ast.AST) -> Iterator[str]:
    """Say what in a test depends on how fast the machine is."""
    polls = {
        id(inner)
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While)
        for inner in ast.walk(loop)
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        seconds = next((one.value for one in call.args if isinstance(one, ast.Constant)), None)
        waits = isinstance(seconds, int | float) and 0 < seconds < FOR_EVER
        if name in STOPWATCHES:
            yield f"line {call.lineno} reads a stopwatch: count what is done, or measure it in benchmarks"
        elif name in {"sleep", "pause"} and waits and id(call) not in polls:
            yield f"line {call.lineno} waits for {seconds} s: wait for the state it stands for"


def test_no_test_depends_on_how_fast_the_machine_is() -> None:
    found = [
        f"{file.relative_to(TESTS)}: {what}"
        for file in sorted(TESTS.rglob("test_*.py"))
        if WORDS.search(text := file.read_text(encoding="utf-8"))
        for what in unsteady(parsed(text))
    ]
    assert not found, "\n".join(found)


BY_NAME = {
    "tui_agent.agent.checkpoints.restoring": "a file that was just written by descriptors",
    "tui_agent.agent.race.copies": "counts files of the project, which no command changes in place of a copy",
    "tui_agent.files.atomic": "a file of this program's own",
    "tui_agent.files.descriptors": "the primitives, which are given descriptors",
    "tui_agent.files.git_writing": "a scratch working tree of this program's own",
    "tui_agent.files.own_git": "a scratch repository of this program's own",
    "tui_agent.files.ripgrep": "names of ignore files",
    "tui_agent.sandbox.landlock_start": "a descriptor",
    "tui_agent.sandbox.layer": "a layer that no command has been on yet",
    "tui_agent.sandbox.plan": "counts files",
}
"""Modules that call by name what follows a link that another process puts in the way, and why they may."""
_FOLLOWS = frozenset({
    "chmod", "lchmod", "rmtree", "walk", "fwalk", "copytree", "copy", "copy2", "copyfile", "copymode", "makedirs",
    "removedirs", "move", "chown", "utime",
})  # fmt: skip
_OF_NAMES = frozenset(
    {"os", "shutil", "path", "place", "target", "file", "parent", "upper", "Path"}
)


def test_trees_of_others_are_worked_on_by_descriptors(trees: dict[str, ast.Module]) -> None:
    """Such a call on a tree that a command changes has harmed the user's home more than once."""
    rooms = (
        "tui_agent.sandbox.",
        "tui_agent.files.",
        "tui_agent.agent.checkpoints.",
        "tui_agent.agent.race.",
    )
    found = {
        module
        for module, tree in trees.items()
        if module.startswith(rooms)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _FOLLOWS
        if not isinstance(node.func.value, ast.Name) or node.func.value.id in _OF_NAMES
    }
    assert found <= BY_NAME.keys(), found - BY_NAME.keys()
    assert found == BY_NAME.keys(), "no longer needed"


def test_every_binding_names_an_action_that_there_is() -> None:
    """A renamed method would leave a key without effect: Textual says nothing then."""
    for module in pkgutil.walk_packages(tui_agent.ui.__path__, "tui_agent.ui."):
        importlib.import_module(module.name)
    ours = [kind for kind in _below(DOMNode) if kind.__module__.startswith("tui_agent.")]
    owners = {
        "app": [kind for kind in ours if issubclass(kind, App)],
        "screen": [kind for kind in ours if issubclass(kind, Screen)],
    }
    missing = []
    for kind in ours:
        for key, binding in BindingsMap(vars(kind).get("BINDINGS", ())):
            namespace, action, _parameters = parse(binding.action)
            kinds = owners.get(namespace, [kind])
            names = (f"action_{action}", f"_action_{action}")
            if not any(hasattr(one, name) for one in kinds for name in names):
                missing.append(f"{kind.__name__}: {key} → {binding.action}")
    assert missing == []


def _below(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)
