"""Which functions of the program are called while something happens."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any, Self

import tui_agent

OURS = Path(tui_agent.__file__).parent


class CallLog:
    """The calls of functions of the program while it is open; one that waits and goes on is one call."""

    def __init__(self) -> None:
        self._frames: dict[FrameType, str] = {}

    def __enter__(self) -> Self:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(OURS)):
            place = Path(code.co_filename).relative_to(OURS).as_posix()
            self._frames.setdefault(frame, f"{place} {code.co_qualname}")

    @property
    def calls(self) -> list[str]:
        """The functions, ``agent/loop.py Loop.run``, in the order they were called."""
        return list(self._frames.values())
