"""The agent's current activity as data, and the texts that describe it on the screen.

All functions are pure; run_progress.py derives the activity from the agent's events.
"""

from enum import StrEnum

from tui_agent.app.format import one_line, seconds, token_count
from tui_agent.lazy import frozen

CHARACTERS_PER_TOKEN = 4
"""Assumed characters per token, to estimate the tokens of an answer that is being streamed."""

_PATIENCE = 3.0
"""Seconds of waiting after which the line about the agent's activity gives a hint.

It says that the model is silent, or offers the key that moves a command to the background.
"""

_STOPS = "esc stops it"


class Phase(StrEnum):
    """Kinds of activity of the agent, which the status line describes."""

    IDLE = "idle"
    WAITING = "waiting"
    THINKING = "thinking"
    STREAMING = "streaming"
    TOOL = "tool"
    CHECKING = "checking"
    ASKING = "asking"
    """The agent waits for the user's permission, or for an answer to the model or an MCP server."""
    RETRY = "retry"
    LOADING = "loading"
    READING = "reading"
    COMPACTING = "compacting"


@frozen
class RunState:
    """What the agent is doing, and since when. Times are in seconds of the caller's clock."""

    phase: Phase = Phase.IDLE
    since: float = 0.0
    """Time at which the phase began, in seconds of the caller's clock."""
    detail: str = ""
    """Details of the phase, such as the tool that needs a permission, or the attempt's number.

    While checkers run, these are their names; while the server reads the prompt, how much it has
    read.
    """
    until: float | None = None
    """Time of the next attempt at a request, in seconds of the caller's clock; None if none."""
    tools: tuple[tuple[str, str], ...] = ()
    """Running tool calls, each as call id and tool name."""
    words: int = 0
    """Number of words of the summary that is being written."""
    began: float = 0.0
    """Time at which the run began, in seconds of the caller's clock."""
    asked: bool = False
    """Whether a request was sent and nothing of the answer has been received yet."""
    in_run: bool = True
    """Whether the activity is part of a run. A shell command or compaction between runs isn't."""
    hook: str = ""
    """Name of the hook whose answer the agent waits for; "" if it waits for none."""
    hook_since: float = 0.0
    """Time at which the hook was started."""

    @property
    def active(self) -> bool:
        """Whether the agent is doing anything, in a run or outside one."""
        return self.phase is not Phase.IDLE or bool(self.hook)


def describe(state: RunState, now: float) -> str:  # noqa: PLR0911 - one arm per phase
    """Return the agent's state in a few words; "" if it is idle."""
    passed = seconds(now - state.since)
    if state.hook and state.phase is not Phase.ASKING:
        return f"hook “{one_line(state.hook, 40)}” {seconds(now - state.hook_since)}"
    match state.phase:
        case Phase.IDLE:
            return ""
        case Phase.WAITING | Phase.THINKING | Phase.STREAMING:
            return f"{state.phase} {passed}"
        case Phase.TOOL:
            names = " + ".join(dict.fromkeys(one_line(tool, 20) for _, tool in state.tools))
            return f"running {names} {passed}"
        case Phase.CHECKING:
            return f"checking with {state.detail} {passed}"
        case Phase.ASKING if state.detail:
            return f"asks about {one_line(state.detail, 20)}"
        case Phase.ASKING:
            return "asks you"
        case Phase.RETRY:
            left = max(0.0, (state.until or now) - now)
            return f"retry in {seconds(left + 0.999)}, {state.detail}"
        case Phase.LOADING:
            return f"{state.detail}, {passed}"
        case Phase.READING:
            return f"reading {state.detail} tokens"
        case Phase.COMPACTING:
            return f"compacting {passed}" + (f" · {state.words} words" if state.words else "")


_WORKING = {
    Phase.WAITING,
    Phase.READING,
    Phase.STREAMING,
    Phase.THINKING,
    Phase.TOOL,
    Phase.CHECKING,
}
"""Phases during which the activity line begins with the time since the start of the run."""


def describe_run(state: RunState, now: float, characters: int, *, background_key: str = "") -> str:
    """Return the text of the activity line above the prompt while the agent is active.

    ``characters`` is the length of the answer so far, used to estimate its tokens.
    ``background_key`` is the key that moves the running command to the background, "" if there is
    nothing to move.
    """
    what = describe(state, now)
    if state.phase in _WORKING and state.in_run:
        if state.phase in {Phase.WAITING, Phase.STREAMING} and not state.hook:
            doing = ""
        else:
            doing = f" · {what}"
        if state.asked and now - state.since >= _PATIENCE:
            doing = f" · no word from the model yet, {seconds(now - state.since)}"
        written = characters // CHARACTERS_PER_TOKEN
        count = ""
        # In 80 columns, there is room for the count or for the key that moves a command, but not
        # for both.
        if written and not background_key:
            count = f" · ~{token_count(written)}"
        what = f"working {seconds(now - state.began)}{doing}{count}"
    if state.phase is Phase.ASKING:
        return "waiting for your answer"
    if background_key and now - state.since >= _PATIENCE:
        return f"{what} · {_STOPS} · {background_key}: background"
    return f"{what} · {_STOPS}"
