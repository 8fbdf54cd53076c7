"""Runs in a tool file's process, where it loads the file and lists or calls its functions.

The request is JSON in one inherited open file, and the answer is written as JSON to another. Text
that the functions print is shown to the user, and isn't part of the answer.
"""

import base64
import inspect
import io
import json
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tui_agent.tools.functions.signature import (
    FunctionError,
    FunctionSignature,
    returned,
    signature_of,
)

DECLARATIONS = ("NETWORK", "READS", "WRITES", "ENVIRONMENT", "READ_ONLY", "TIMEOUT")
"""Names of the constants with which a tool file declares what its functions need."""
MAX_FRAMES = 5
"""Maximum number of frames that are reported of a traceback, counted from the innermost frame."""


def main() -> None:
    """Read the request from one file descriptor, carry it out, and write the answer to another.

    The program's two arguments are the numbers of these descriptors. Ends the process with exit
    code 1 if the file raised an error, otherwise with 0.
    """
    request, answer = (int(word) for word in sys.argv[1:3])
    process = os.getpid()
    for descriptor in (request, answer):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - it has no name
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, errors="replace")
    failed = False
    try:
        said = _carry_out(json.loads(os.pread(request, os.fstat(request).st_size, 0)))
    except BaseException as error:  # noqa: BLE001 - whatever the file does, sys.exit included
        frames = _frames(error)
        failed = True
        said = {
            "error": _error_text(error),
            "line": frames[-1].lineno if frames else 0,
            "frames": [_frame_text(frame) for frame in frames],
        }
        sys.stderr.write("\n  ".join([_error_text(error), *said["frames"]]) + "\n")
    if os.getpid() != process:
        os._exit(0)  # the function has forked, and this is the child: only the parent answers
    # File names that aren't UTF-8 contain lone surrogates, which UTF-8 can't encode, so they are
    # replaced.
    data = json.dumps(said, ensure_ascii=False).encode(errors="replace")
    os.ftruncate(answer, 0)
    while data:
        data = data[os.pwrite(answer, data, os.fstat(answer).st_size) :]
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(1 if failed else 0)  # This doesn't wait for threads that the function left running.


def _carry_out(request: dict[str, Any]) -> dict[str, Any]:
    """Call the function that the request names, and return its value as text and images.

    If the request names no function, return a description of the file's tools.
    """
    module = _load(Path(request["path"]), request["source"])
    if "function" not in request:
        return _describe(module)
    name = request["function"]
    functions = {function.__name__: function for function in _functions(module)}
    if name not in functions:
        raise FunctionError(f"the file has no function {name} any more")
    import asyncio  # not above: describing a file doesn't need it, and would take a fifth longer

    value = returned(asyncio.run(signature_of(functions[name]).call(request["arguments"])))
    return {
        "text": value.text,
        "images": [base64.b64encode(image).decode() for image in value.images],
    }


def _load(path: Path, source: str) -> ModuleType:
    """Run ``source``, the text of the file ``path``, as a module, and return the module."""
    module = ModuleType(f"tools_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    # The directory is added at the end of the path, so that a file in it can't replace a standard
    # module.
    sys.path.append(str(path.parent))
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102 - this process's purpose
    return module


def _functions(module: ModuleType) -> list[Callable[..., Any]]:
    """Return the functions of a tool file's module that become tools, in order.

    The functions that ``__all__`` names become tools, in its order. If the module has no
    ``__all__``, all functions with a docstring and a public name that the file itself defines
    become tools, in the order of the file.
    """
    named = getattr(module, "__all__", None)
    held = vars(module)
    if named is not None:
        return [held[name] for name in named if inspect.isfunction(held.get(name))]
    found: dict[Callable[..., Any], None] = {}
    for name, thing in held.items():
        is_own = inspect.isfunction(thing) and thing.__module__ == module.__name__
        if is_own and thing.__doc__ and not name.startswith("_"):
            found[thing] = None
    return list(found)


def _describe(module: ModuleType) -> dict[str, Any]:
    """Return the module's tools, the problems with its other functions, and its declared needs."""
    tools: list[dict[str, Any]] = []
    problems: list[dict[str, Any]] = []
    for function in _functions(module):
        try:
            signature: FunctionSignature = signature_of(function)
        except FunctionError as error:
            problems.append({"text": str(error), "line": function.__code__.co_firstlineno})
        else:
            tools.append(
                {
                    "name": signature.name,
                    "description": signature.description,
                    "parameters": signature.parameters,
                }
            )
    declared = {name: getattr(module, name) for name in DECLARATIONS if hasattr(module, name)}
    return {
        "tools": tools,
        "problems": problems,
        "declared": json.loads(json.dumps(declared, default=list)),
    }


def _error_text(error: BaseException) -> str:
    if isinstance(error, FunctionError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    return "".join(traceback.format_exception_only(error)).strip()


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of an error's traceback that are in the tool file's directory.

    At most ``MAX_FRAMES`` frames are returned, the innermost one last. For a syntax error, one
    frame with the line of the error is returned.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return [traceback.FrameSummary(error.filename, error.lineno or 0, "<module>", line="")]
    places = set()
    for name, module in tuple(sys.modules.items()):
        if name.startswith("tools_") and module.__file__:
            places.add(str(Path(module.__file__).parent))
    passed = traceback.extract_tb(error.__traceback__)
    return [frame for frame in passed if str(Path(frame.filename).parent) in places][-MAX_FRAMES:]


def _frame_text(frame: traceback.FrameSummary) -> str:
    shown = f"{Path(frame.filename).name}:{frame.lineno}"
    if frame.name != "<module>":
        shown = f"{shown} in {frame.name}"
    if frame.line:
        shown = f"{shown}: {frame.line}"
    return shown


if __name__ == "__main__":
    main()
