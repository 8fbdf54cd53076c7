"""What a start imports, compiles and builds: ``python -m benchmarks start-up --why``.

The program runs in a process of its own in which imports, regular expressions, classes and style sheets are counted and
timed, each without what it causes in turn, so that the sums add up. Times are CPU time of the thread that did it.
"""

import atexit
import builtins
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from threading import local
from typing import Any

SHOWN = 25
"""Lines of each kind that are printed; the rest is one line."""
KINDS = ("module", "dataclass", "pydantic model", "class", "expression", "style sheet")
REPORT = "TUI_AGENT_BENCH_WHY"
"""The variable with the file that the measured process writes."""

Found = dict[str, dict[str, list[float]]]
"""Kind → what → how often, seconds until the first paint, seconds after it."""


class Ledger:
    """Adds up who used how much, without what was done on the way for somebody else."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, list[float]]] = {kind: defaultdict(lambda: [0, 0.0, 0.0]) for kind in KINDS}
        self.is_painted = False
        self._open = local()

    @contextmanager
    def entry(self, kind: str, what: str) -> Iterator[None]:
        """Count what is done meanwhile."""
        inner: list[float] = getattr(self._open, "inner", None) or [0.0]
        self._open.inner = inner
        inner.append(0.0)
        start = time.thread_time()
        try:
            yield
        finally:
            whole = time.thread_time() - start
            line = self.found[kind][what]
            line[0] += 1
            line[2 if self.is_painted else 1] += whole - inner.pop()
            inner[-1] += whole


def _wrapped(ledger: Ledger, kind: str, act: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
    def counted(*given: Any, **named: Any) -> Any:
        with ledger.entry(kind, name(*given, **named)):
            return act(*given, **named)

    return counted


def _watch(ledger: Ledger) -> None:
    """Put the ledger around everything that a start is made of."""
    import dataclasses
    import re

    load = SourceFileLoader.exec_module
    SourceFileLoader.exec_module = _wrapped(ledger, "module", load, lambda _self, module: module.__name__)  # type: ignore[method-assign]
    process = dataclasses._process_class  # type: ignore[attr-defined]  # noqa: SLF001
    dataclasses._process_class = _wrapped(ledger, "dataclass", process, lambda kind, *_: _full(kind))  # type: ignore[attr-defined]  # noqa: SLF001
    compiler = re._compiler  # type: ignore[attr-defined]  # noqa: SLF001
    compiler.compile = _wrapped(ledger, "expression", compiler.compile, lambda pattern, *_: _caller(pattern))
    build = builtins.__build_class__

    def build_class(body: Any, name: str, *bases: Any, **named: Any) -> Any:
        kind = "pydantic model" if any(type(base).__name__ == "ModelMetaclass" for base in bases) else "class"
        with ledger.entry(kind, f"{body.__module__}.{name}"):
            return build(body, name, *bases, **named)

    builtins.__build_class__ = build_class  # type: ignore[assignment]


def _watch_textual(ledger: Ledger) -> None:
    from textual.css import stylesheet

    from tui_agent.ui.app import TuiAgentApp

    parse = stylesheet.Stylesheet._parse_rules  # noqa: SLF001
    stylesheet.Stylesheet._parse_rules = _wrapped(  # type: ignore[method-assign]  # noqa: SLF001
        ledger, "style sheet", parse, lambda _self, _css, read_from, **_named: "/".join(read_from)[-60:]
    )
    painted = TuiAgentApp._painted  # noqa: SLF001

    def note(app: TuiAgentApp) -> None:
        ledger.is_painted = True
        painted(app)

    TuiAgentApp._painted = note  # type: ignore[method-assign, assignment]  # noqa: SLF001


def _full(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _caller(pattern: object) -> str:
    """Return which module wanted an expression, and its beginning."""
    frame = sys._getframe(2)  # noqa: SLF001
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in {
        "re",
        "contextlib",
        __name__.split(".")[0],
    }:
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}: {str(pattern)[:50]!r}"


def _child(arguments: list[str]) -> int:
    """Run the program as it was asked for, and write down what it did when it ends."""
    ledger = Ledger()
    _watch(ledger)
    atexit.register(lambda: Path(os.environ[REPORT]).write_text(json.dumps(_told(ledger)), encoding="utf-8"))
    if "-p" not in arguments:
        _watch_textual(ledger)
    from tui_agent.cli.main import run

    return run(arguments)


def _told(ledger: Ledger) -> dict[str, Any]:
    return {"found": ledger.found, "modules": len(sys.modules), "cpu": time.process_time()}


if __name__ == "__main__":
    sys.exit(_child(sys.argv[1:]))
