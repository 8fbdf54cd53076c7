"""What a start imports, compiles and builds: ``python -m benchmarks start-up --why``.

The program runs in a process of its own in which imports, regular expressions, classes and style sheets are counted and
timed, each without what it causes in turn, so that the sums add up. Times are CPU time of the thread that did it.
"""

import atexit
import builtins
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from threading import local
from typing import Any

SHOWN = 20
"""Lines of each kind that are printed; the sum is of all."""
KINDS = ("module", "dataclass", "pydantic model", "class", "expression", "style sheet")
REPORT = "TUI_AGENT_BENCH_WHY"
"""The variable with the file that the measured process writes."""


class Ledger:
    """Adds up who used how much, without what was done on the way for somebody else."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, list[float]]] = {
            kind: defaultdict(lambda: [0, 0.0, 0.0]) for kind in KINDS
        }
        """Kind → what → how often, seconds until the first paint, seconds after it."""
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


def explain() -> str:
    """Run the program without and with a screen, each a second time, and return what the second starts were made of."""
    from benchmarks.headless import MODEL
    from benchmarks.program import PROMPT_HINT, sandbox
    from tests.support.terminal import Terminal

    root = str(Path(__file__).parent.parent)
    told = []
    with sandbox() as box:
        report = box.root / "why.json"
        env = {**box.env, REPORT: str(report), "PYTHONPATH": root}
        env |= {"OPENAI_BASE_URL": box.server.openai_url, "OPENAI_API_KEY": "none"}
        command = [sys.executable, "-m", "benchmarks.why"]
        for _ in range(2):
            with Terminal(
                command, size=(120, 40), env=env, cwd=box.project, echo=False
            ) as terminal:
                terminal.wait_for(PROMPT_HINT)
                terminal.wait_quiet(1)
                terminal.press("ctrl+q")
                terminal.wait_exit()
        told.append(_report("the screen", json.loads(report.read_text(encoding="utf-8"))))
        words = [*command, "-p", "hello", "-m", MODEL, "--cwd", str(box.project)]
        for _ in range(2):
            subprocess.run(
                words,
                env={"PATH": os.environ["PATH"], **env},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
            )
        told.append(
            _report("a run without a screen", json.loads(report.read_text(encoding="utf-8")))
        )
    return "\n\n".join(told)


def _report(name: str, read: dict[str, Any]) -> str:
    lines = [
        f"{name}: {read['modules']} modules, {read['cpu'] * 1000:.0f} ms of CPU with the measuring"
    ]
    for kind, found in read["found"].items():
        before, after = (sum(line[part] for line in found.values()) * 1000 for part in (1, 2))
        lines.append(
            f"\n{kind}: {len(found)}, {before:.1f} ms, {after:.1f} ms after the first paint"
        )
        ordered = sorted(found.items(), key=lambda item: -sum(item[1][1:]))
        lines += [
            f"{line[1] * 1000:8.2f} {line[2] * 1000:8.2f}  {what}" for what, line in ordered[:SHOWN]
        ]
    return "\n".join(lines)


# -- the measured process -----------------------------------------------------------------------------------


def _wrapped(
    ledger: Ledger, kind: str, act: Callable[..., Any], name: Callable[..., str]
) -> Callable[..., Any]:
    def counted(*given: Any, **named: Any) -> Any:
        with ledger.entry(kind, name(*given, **named)):
            return act(*given, **named)

    return counted


def _watch(ledger: Ledger) -> None:
    """Put the ledger around everything that a start is made of."""
    import dataclasses
    import re

    load = SourceFileLoader.exec_module
    named = _wrapped(ledger, "module", load, lambda _self, module: module.__name__)
    SourceFileLoader.exec_module = named  # type: ignore[method-assign]
    process = dataclasses._process_class  # type: ignore[attr-defined]  # noqa: SLF001
    watched = _wrapped(ledger, "dataclass", process, lambda kind, *_: _full(kind))
    dataclasses._process_class = watched  # type: ignore[attr-defined]  # noqa: SLF001
    compiler = re._compiler  # type: ignore[attr-defined]  # noqa: SLF001
    compiler.compile = _wrapped(
        ledger, "expression", compiler.compile, lambda pattern, *_: _caller(pattern)
    )
    build = builtins.__build_class__

    def build_class(body: Any, name: str, *bases: Any, **named: Any) -> Any:
        kind = (
            "pydantic model"
            if any(type(base).__name__ == "ModelMetaclass" for base in bases)
            else "class"
        )
        with ledger.entry(kind, f"{body.__module__}.{name}"):
            return build(body, name, *bases, **named)

    builtins.__build_class__ = build_class  # type: ignore[assignment]


def _watch_screen(ledger: Ledger) -> None:
    from textual.css import stylesheet

    from tui_agent.ui.app import TuiAgentApp

    parse = stylesheet.Stylesheet._parse_rules  # noqa: SLF001
    stylesheet.Stylesheet._parse_rules = _wrapped(  # type: ignore[method-assign]  # noqa: SLF001
        ledger,
        "style sheet",
        parse,
        lambda _self, _css, read_from, **_named: "/".join(read_from)[-60:],
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
    while frame.f_back and frame.f_globals.get("__name__") in {"re", "contextlib", __name__}:
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}: {str(pattern)[:50]!r}"


def _child(arguments: list[str]) -> int:
    """Run the program as it was asked for, and write down what it did when it ends."""
    ledger = Ledger()
    _watch(ledger)

    def tell() -> None:
        told = {"found": ledger.found, "modules": len(sys.modules), "cpu": time.process_time()}
        Path(os.environ[REPORT]).write_text(json.dumps(told), encoding="utf-8")

    atexit.register(tell)
    if "-p" not in arguments:
        _watch_screen(ledger)
    from tui_agent.cli.main import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(_child(sys.argv[1:]))
