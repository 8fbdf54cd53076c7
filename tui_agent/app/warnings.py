"""Warnings that nobody asked for: shown above the prompt until something new begins, kept for the doctor's page."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import field

from tui_agent.lazy import dataclass

MAX_WARNINGS = 100
"""Warnings that are kept, the newest ones."""


@dataclass(slots=True)
class WarningLog:
    """What the program warned of since it was started, and how much of that left the screen unread."""

    said: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=MAX_WARNINGS))
    """When, in seconds since the epoch, and what."""
    unread: int = 0
    """Warnings that something new took from the screen since somebody looked at them all."""

    def add(self, now: float, sentence: str) -> None:
        """Keep a warning."""
        self.said.append((now, sentence))

    def lines(self) -> list[str]:
        """Return all of them as lines of the doctor's page."""
        return [f"! {time.strftime('%H:%M', time.localtime(when)):<14} {sentence}" for when, sentence in self.said]
