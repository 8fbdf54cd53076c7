"""Counts how densely the code is written, by package: `python scripts/density.py`; `--worst` lists modules.

Lines are no goal: what counts is how much a reader has to take in at once. Figures are per 1,000 lines that are not
blank. Code tokens leave out comments and docstrings. Fan-out is how many modules of the program a module imports in
the mean, those for types and those within functions included.
"""

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tui_agent"
LONG_LINE = 100
MANY_POSITIONALS = 6
GOALS = {"conditionals": 15.0, "comprehensions": 20.0, "tuples": 1.0, "long_lines": 20.0}
"""What the whole program should stay below, per 1,000 lines."""
MOST_FAN_OUT = 5.4

_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass
class Density:
    """Counts of one or more modules."""

    lines: int = 0
    tokens: int = 0
    conditionals: int = 0
    comprehensions: int = 0
    tuples: int = 0
    long_lines: int = 0
    format_skips: int = 0
    positional_calls: int = 0
    late_constants: int = 0
    modules: int = 1
    imports: int = 0

    def add(self, other: "Density") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def per_thousand(self, name: str) -> float:
        return 1_000 * getattr(self, name) / max(1, self.lines)

    @property
    def fan_out(self) -> float:
        return self.imports / max(1, self.modules)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--worst", type=int, default=0, metavar="N", help="list the N densest modules"
    )
    parser.add_argument(
        "--check", action="store_true", help="fail where the whole program is over its goals"
    )
    arguments = parser.parse_args()
    counted = {path: density_of(path.read_text(encoding="utf-8")) for path in modules()}
    print_table(by_package(counted))
    if arguments.worst:
        print_worst(counted, arguments.worst)
    whole = total(counted.values())
    over = [name for name, goal in GOALS.items() if whole.per_thousand(name) > goal]
    if whole.fan_out > MOST_FAN_OUT:
        over.append("fan_out")
    return 1 if arguments.check and over else 0


def modules() -> list[Path]:
    return sorted((ROOT / PACKAGE).rglob("*.py"))


def density_of(text: str) -> Density:
    tree = ast.parse(text)
    rows = [line for line in text.splitlines() if line.strip()]
    found = Density(lines=len(rows), tokens=count_tokens(text, tree))
    found.long_lines = sum(len(line) > LONG_LINE for line in rows)
    found.format_skips = text.count("# fmt: skip")
    found.late_constants = len(list(late_constants(tree)))
    found.imports = len(set(imported_modules(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            found.conditionals += 1
        elif isinstance(node, _COMPREHENSIONS):
            found.comprehensions += 1
        elif isinstance(node, ast.Assign) and is_tuple_assignment(node):
            found.tuples += 1
        elif isinstance(node, ast.Call) and len(node.args) >= MANY_POSITIONALS:
            found.positional_calls += 1
    return found


def is_tuple_assignment(node: ast.Assign) -> bool:
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def late_constants(tree: ast.Module) -> Iterator[str]:
    """Yield the constants that stand below the first function or class."""
    is_below = False
    for node in tree.body:
        if isinstance(node, _DEFINITIONS):
            is_below = True
        elif is_below and isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of the program that are imported anywhere in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_own(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and is_own(node.module):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if is_own(inner) else node.module


def is_own(module: str) -> bool:
    place = ROOT / module.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def count_tokens(text: str, tree: ast.Module) -> int:
    documented = set(docstring_lines(tree))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(1 for token in tokens if is_code(token, documented))


def is_code(token: tokenize.TokenInfo, documented: set[int]) -> bool:
    if token.type in _LAYOUT:
        return False
    return token.type != tokenize.STRING or token.start[0] not in documented


def docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def by_package(counted: dict[Path, Density]) -> dict[str, Density]:
    packages: dict[str, Density] = {}
    for path, density in counted.items():
        parts = path.relative_to(ROOT / PACKAGE).parts
        name = parts[0] if len(parts) > 1 else "(top)"
        packages.setdefault(name, Density(modules=0)).add(density)
    packages["whole"] = total(counted.values())
    return packages


def total(densities: Iterable[Density]) -> Density:
    whole = Density(modules=0)
    for density in densities:
        whole.add(density)
    return whole


def print_table(packages: dict[str, Density]) -> None:
    names = [field.name for field in fields(Density)]
    names[names.index("imports")] = "fan_out"
    print("  ".join(["package".ljust(10), *(name.replace("_", " ").rjust(16) for name in names)]))
    for package, density in packages.items():
        cells = [f"{getattr(density, name):,}" for name in names]
        for index, name in enumerate(names):
            if name in GOALS:
                cells[index] = f"{density.per_thousand(name):.1f}"
            elif name == "fan_out":
                cells[index] = f"{density.fan_out:.2f}"
        print("  ".join([package.ljust(10), *(cell.rjust(16) for cell in cells)]))


def print_worst(counted: dict[Path, Density], number: int) -> None:
    large = {path: density for path, density in counted.items() if density.lines >= 60}
    worst = sorted(large, key=lambda path: large[path].per_thousand("conditionals"), reverse=True)
    for path in worst[:number]:
        density = large[path]
        print(
            f"{path.relative_to(ROOT)}: {density.per_thousand('conditionals'):.0f} conditional expressions, "
            f"{density.per_thousand('comprehensions'):.0f} comprehensions, {density.late_constants} late constants, "
            f"{density.imports} modules imported"
        )


if __name__ == "__main__":
    sys.exit(main())
