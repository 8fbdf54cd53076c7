"""Runs the program's command line in the process of the test."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tui_agent.cli.main import run

Run = Callable[..., SimpleNamespace]
"""Runs the program with arguments; returns its exit code, ``out`` and ``err``."""


def in_process(capsys: pytest.CaptureFixture[str]) -> Run:
    def ran(*arguments: str) -> SimpleNamespace:
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return ran
