"""What the agent is doing now, and how the status line says it. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from tui_agent.app.format import one_line, seconds


class Phase(StrEnum):
    """The kinds of state the status line tells apart."""

    IDLE = "idle"
    WAITING = "waiting"
    THINKING = "thinking"
    STREAMING = "streaming"
    TOOL = "tool"
    PERMISSION = "permission"
    RETRY = "retry"
    COMPACTING = "compacting"


@dataclass(frozen=True, slots=True)
class RunState:
    """What goes on, and since when (seconds, the caller's clock)."""

    phase: Phase = Phase.IDLE
    since: float = 0.0
    detail: str = ""
    until: float | None = None
    """When a scheduled retry goes out."""
    tools: tuple[tuple[str, str], ...] = ()
    """Calls that run now: call id and tool."""
    words: int = 0
    """Words of the summary that is being written."""
    in_run: bool = True
    """Whether a run goes on after this."""
    retried: bool = False
    """Whether the request failed before and nothing has come of it since."""

    @property
    def active(self) -> bool:
        """Whether something goes on (and so the status line has to be kept up to date)."""
        return self.phase is not Phase.IDLE


def describe(state: RunState, now: float) -> str:  # noqa: PLR0911 - one arm per phase
    """Return the state in a few words, empty when idle."""
    passed = seconds(now - state.since)
    match state.phase:
        case Phase.IDLE:
            return ""
        case Phase.WAITING:
            return f"waiting {passed}"
        case Phase.THINKING:
            return f"thinking {passed}"
        case Phase.STREAMING:
            return f"streaming {passed}"
        case Phase.TOOL:
            names = " + ".join(dict.fromkeys(one_line(tool, 20) for _, tool in state.tools))
            return f"running {names} {passed}"
        case Phase.PERMISSION:
            return f"asks about {one_line(state.detail, 20)}"
        case Phase.RETRY:
            left = max(0.0, (state.until or now) - now)
            return f"retry in {seconds(left + 0.999)} ({state.detail})"
        case Phase.COMPACTING:
            return f"compacting {passed}" + (f" · {state.words} words" if state.words else "")
