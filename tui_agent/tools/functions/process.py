"""Starts the process of a tool file in its view, and reads its answer."""

import asyncio
import base64
import binascii
import json
import os
import sys
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tui_agent.errors import ToolError
from tui_agent.lazy import dataclass
from tui_agent.path_checks import real_path
from tui_agent.processes.capture import plain_text
from tui_agent.sandbox import Grants, Sandbox
from tui_agent.tools.base import ToolContext
from tui_agent.tools.programs import EndedProgram, Program, ending, run_program

MAX_ANSWER_BYTES = 100_000_000
"""An answer larger than this is not read."""
LAST_LINES = 20
"""Lines of its output that tell why a process ended without an answer."""
_PACKAGE = Path(__file__).parents[2]
_BEGIN = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
package, *libraries = sys.argv.pop(1).split("\\n")
sys.path += libraries
# Found by its path: in the view, Landlock's at least, the directory it is in can't be listed.
spec = spec_from_file_location("tui_agent", f"{package}/__init__.py", submodule_search_locations=[package])
sys.modules["tui_agent"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["tui_agent"])
from tui_agent.tools.functions.runner import main
main()
"""


class Frame(BaseModel):
    """A place in a tool file that an error passed."""

    model_config = ConfigDict(defer_build=True)

    file: str
    line: int
    function: str
    code: str

    def __str__(self) -> str:
        where = f"{Path(self.file).name}:{self.line}"
        return f"{where}{f' in {self.function}' if self.function else ''}{f': {self.code}' if self.code else ''}"


class Answer(BaseModel):
    """What the process said. Exactly what it was asked for is filled in, or ``error``."""

    model_config = ConfigDict(defer_build=True)

    error: str = ""
    frames: tuple[Frame, ...] = ()
    text: str = ""
    images: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    problems: tuple[dict[str, Any], ...] = ()
    declared: dict[str, Any] = Field(default_factory=dict)

    def pictures(self) -> tuple[bytes, ...]:
        """Return the bytes of its images.

        Raises:
            ToolError: they are none.
        """
        try:
            return tuple(base64.b64decode(image, validate=True) for image in self.images)
        except (binascii.Error, ValueError):
            raise ToolError("The answer of the tool's process holds a damaged image.") from None


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process of a tool file ended. ``answer`` is None when it said nothing, ``printed`` its last lines."""

    program: EndedProgram
    answer: Answer | None
    printed: str

    def why(self, seconds: float) -> str:
        if self.program.run.timed_out:
            told = f"It took longer than {seconds:g} s and was stopped."
        else:
            told = f"Its process ended without an answer. {ending(self.program.run)}".strip()
        return "\n".join(filter(None, [told, self.printed and f"It printed last:\n{self.printed}", self.program.note]))


async def run_file(  # noqa: PLR0913 - what is run, and how
    path: Path,
    request: dict[str, Any],
    context: ToolContext,
    sandbox: Sandbox | None,
    environment: dict[str, str],
    *,
    name: str,
    seconds: float,
) -> Ended:
    """Run a tool file's process to its end.

    Args:
        path: the file, for messages and for what it imports from beside it.
        request: what it is asked, its ``source`` included.
        context: where, and in which view.
        sandbox: None runs it without.
        environment: what it gets.
        name: what the user is asked about when it lacks something.
        seconds: how long it may take.

    Raises:
        ToolError: it could not be started.
    """
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(request | {"path": str(path)}).encode())
        asked.flush()
        descriptors = (asked.fileno(), said.fileno())
        words = (sys.executable, "-I", "-B", "-c", _BEGIN, "\n".join(_import_places()), *map(str, descriptors))
        ended = await run_program(Program(name, words, environment, seconds, descriptors), context, sandbox)
        answer = await asyncio.to_thread(_answer, said.fileno())
    lines = plain_text(ended.run.capture.raw()).rstrip().splitlines()[-LAST_LINES:]
    return Ended(ended, None if ended.run.timed_out else answer, "\n".join(lines))


def interpreter_grants(project: Path) -> Grants:
    """Return what has to be shown for the program's own Python to run. Looks at files."""
    shown = (real_path(project), Path("/usr"))
    wanted = {real_path(Path(place)) for place in (sys.prefix, sys.base_prefix, *_import_places())}
    return Grants(read=frozenset(p for p in wanted if not any(p.is_relative_to(place) for place in shown)))


@lru_cache(maxsize=1)
def _import_places() -> tuple[str, ...]:
    """Return the directory of this package, and those in which what the runner needs is found."""
    spec = find_spec("pydantic")
    libraries = [str(Path(spec.origin).parents[1])] if spec is not None and spec.origin else []
    return (str(_PACKAGE), *libraries)


def _answer(descriptor: int) -> Answer | None:
    size = os.fstat(descriptor).st_size
    if not size:
        return None
    if size > MAX_ANSWER_BYTES:
        raise ToolError(
            f"The result is larger than {MAX_ANSWER_BYTES // 1_000_000} MB: write a file and return its path."
        )
    try:
        return Answer.model_validate_json(os.pread(descriptor, size, 0))
    except ValidationError:
        return None
