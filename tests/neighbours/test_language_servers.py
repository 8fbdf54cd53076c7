"""Real language servers answer in the sandbox; ``make neighbours`` installs them."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.agents import make_agent
from tests.support.neighbours import HOME, program
from tests.support.scripted_client import Call, Reply
from tui_agent.context.projection import ModelTraits
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.settings import SandboxSettings
from tui_agent.tools.code import CodeTool
from tui_agent.tools.language_servers.settings import CodeSettings

pytestmark = [pytest.mark.neighbours, pytest.mark.timeout(300)]

PYTHON = {
    "shapes.py": """class Shape:
    def area(self) -> float:
        return 0


def total(shapes: list[Shape]) -> float:
    return sum(shape.area() for shape in shapes)
""",
    "use.py": "from shapes import Shape, total\n\nprint(total([Shape()]))\n",
}
TYPESCRIPT = {
    "tsconfig.json": '{"compilerOptions": {"strict": true}}',
    "shapes.ts": """export class Shape {
  area(): number {
    return 0;
  }
}
export const total = (shapes: Shape[]): number => shapes.reduce((sum, shape) => sum + shape.area(), 0);
""",
    "use.ts": 'import { Shape, total } from "./shapes";\n\nconsole.log(total([new Shape()]));\n',
}
CPP = {
    "compile_flags.txt": "-std=c++17\n",
    "shapes.hpp": """#pragma once
struct Shape {
  double area() const;
};
""",
    "shapes.cpp": """#include "shapes.hpp"
double Shape::area() const {
  return 0;
}
double total(const Shape& shape) { return shape.area(); }
""",
}


def code(op: str, symbol: str = "", path: str = "") -> Call:
    return Call("code", json.dumps({"op": op, "symbol": symbol, "path": path}))


CALLS = (
    code("definition", "total"),
    code("references", "Shape.area"),
    code("callers", "Shape.area"),
    code("hover", "total"),
    code("symbols", "tot"),
)


@pytest.mark.parametrize(
    ("name", "files", "definition", "call"),
    [
        (
            "basedpyright-langserver", PYTHON,
            "shapes.py:6: def total(shapes: list[Shape]) -> float:",
            "shapes.py:7:     return sum(shape.area() for shape in shapes)",
        ),
        (
            "typescript-language-server", TYPESCRIPT,
            "shapes.ts:6: export const total = (shapes: Shape[]): number =>",
            "shapes.ts:6: export const total = (shapes: Shape[]): number =>",
        ),
        (
            "clangd", CPP,
            "shapes.cpp:5: double total(const Shape& shape) { return shape.area(); }",
            "shapes.cpp:5: double total(const Shape& shape) { return shape.area(); }",
        ),
    ],
)  # fmt: skip
async def test_a_server_answers_with_places(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: dict[str, str],
    definition: str,
    call: str,
) -> None:
    place = Path(program(name)).parent
    node = shutil.which("node") or program("node")
    monkeypatch.setenv("PATH", os.pathsep.join([str(place), str(Path(node).parent), os.defpath]))
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "home").mkdir()
    for file, text in files.items():
        (project / file).write_text(text)
    box = Sandbox(
        SandboxSettings(read=(str(HOME), str(HOME.resolve()))),
        cache=tmp_path / "cache", home=tmp_path / "home", project=project,
    )  # fmt: skip
    tool = CodeTool(project, CodeSettings())
    script = [*(Reply(calls=(one,)) for one in CALLS), Reply("Done.")]
    harness = make_agent(tmp_path, script, tools=(tool,), sandbox=box)
    harness.agent.ports.environment = {"PATH": os.environ["PATH"]}
    assert tool.offered_to(ModelTraits("any"))
    await harness.say("go")
    await harness.agent.aclose()
    found = [result.output for result in harness.results()]
    assert definition in found[0]
    assert call in found[1]
    assert call in found[2]
    assert found[3].splitlines()[0].startswith(definition)
    assert "total" in "".join(found[3].splitlines()[1:])
    assert definition in found[4]
