"""Escape sequences for a terminal's title, notifications and progress bar, by type of terminal.

The functions return the sequences; their callers write them to the terminal. The module also picks
the theme that suits a terminal's background. Importing it adds Alt+Enter to Textual's table of
keys.
"""

import os
import re
from collections.abc import Mapping
from enum import Enum

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

from tui_agent.app.format import one_line
from tui_agent.lazy import LazyPattern
from tui_agent.whole_numbers import whole_number

_UNSAFE = LazyPattern("[\x00-\x1f\x7f-\x9f]")

THEMES = "textual-dark", "textual-light"
"""The default themes, for a dark and for a light background of the terminal."""

CLEAR = "\x1b[2J"
"""Escape sequence that clears the terminal's screen."""
PUSH_TITLE = "\x1b[22;2t"
POP_TITLE = "\x1b[23;2t"
"""`PUSH_TITLE` saves the terminal's title, and `POP_TITLE` restores it."""

_OSC_9 = "\x1b]9;{title}: {body}\x07"
_OSC_777 = "\x1b]777;notify;{title};{body}\x07"
_OSC_99 = "\x1b]99;i=tui-agent:d=0;{title}\x1b\\\x1b]99;i=tui-agent:d=1:p=body;{body}\x1b\\"

_NOTIFYING: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("KITTY_WINDOW_ID", LazyPattern(""), _OSC_99),
    ("ITERM_SESSION_ID", LazyPattern(""), _OSC_9),
    ("WEZTERM_PANE", LazyPattern(""), _OSC_777),
    ("GHOSTTY_RESOURCES_DIR", LazyPattern(""), _OSC_777),
    ("LC_TERMINAL", LazyPattern("iTerm2"), _OSC_9),
    ("TERM_PROGRAM", LazyPattern("iTerm.app"), _OSC_9),
    ("TERM_PROGRAM", LazyPattern("WezTerm|ghostty|contour|rio"), _OSC_777),
    ("TERM", LazyPattern("xterm-kitty"), _OSC_99),
    ("TERM", LazyPattern("foot|rxvt-unicode|contour|xterm-ghostty|wezterm"), _OSC_777),
)
"""Terminals that can show notifications, with the escape sequence that shows one.

Each row contains the environment variable that identifies the terminal, a pattern for its value,
and the escape sequence. Other terminals may print such a sequence or misunderstand it.
"""

_PROGRESS_SINCE = {"ghostty": (1, 2), "iTerm.app": (3, 6, 6)}
"""First versions with a progress bar, by ``TERM_PROGRAM``. Older versions would show a notification
instead."""

_VTE_WITH_PROGRESS = 8_000
"""First ``VTE_VERSION`` with a progress bar, which is VTE 0.80. VTE is the widget of GNOME
Terminal, Ptyxis and other terminals."""


class EnterKeys(Enum):
    """Name of the key Alt+Enter in terminals without the kitty keyboard protocol.

    In these terminals, Textual drops the Alt modifier (Textual issue 6378).
    """

    ALT = "alt+enter"


for _sequence in ("\x1b\r", "\x1b\n"):
    ANSI_SEQUENCES_KEYS.setdefault(_sequence, (EnterKeys.ALT,))  # type: ignore[attr-defined]  # declared as a mapping, made as a dict


def title_sequence(title: str) -> str:
    """Return the escape sequence that sets the terminal's title.

    The title is cut to 80 characters, and its control characters are removed.
    """
    return f"\x1b]2;{_UNSAFE.sub('', one_line(title, 80))}\x07"


def through_multiplexer(sequence: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a sequence in a form that passes through tmux or screen to the outer terminal.

    If neither is running, returns the sequence unchanged. tmux passes the sequence on only if its
    option ``allow-passthrough`` is on.
    """
    if environment.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environment.get("TERM", "").startswith("screen"):
        return f"\x1bP{sequence}\x1b\\"
    return sequence


def notification(title: str, body: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the sequence that shows a desktop notification; None if the terminal can't show any.

    Control characters in ``title`` and ``body`` are removed. Sources: the documentation of kitty
    (OSC 99), iTerm2 (9) and rxvt-unicode (777).
    """
    shape = None
    for name, wanted, known in _NOTIFYING:
        if name in environment and wanted.match(environment[name]):
            shape = known
            break
    if shape is None:
        return None
    title, body = (_UNSAFE.sub("", one_line(text, 200)).replace(";", ",") for text in (title, body))
    return through_multiplexer(shape.format(title=title, body=body), environment)


class Progress(Enum):
    """The states of the progress bar that some terminals show in a tab or the task bar."""

    NONE = "0"
    FAILED = "2"
    WORKING = "3"
    """Work is in progress, but no percentage is known."""
    WAITING = "4;100"


def shows_progress(environment: Mapping[str, str] = os.environ) -> bool:
    if "WT_SESSION" in environment or environment.get("ConEmuANSI") == "ON":
        return True
    vte = whole_number(environment.get("VTE_VERSION", ""))
    if vte is not None and vte >= _VTE_WITH_PROGRESS:
        return True
    since = _PROGRESS_SINCE.get(environment.get("TERM_PROGRAM", ""))
    version = tuple(map(int, re.findall(r"\d+", environment.get("TERM_PROGRAM_VERSION", ""))[:3]))
    return since is not None and version >= since


def progress(state: Progress, environment: Mapping[str, str] = os.environ) -> str:
    """Return the sequence that sets the terminal's progress bar; "" if the terminal has none.

    Sources: the documentation of ConEmu, Windows Terminal, Ghostty and iTerm2 (OSC 9;4). VTE needs
    the string terminator (ESC and a backslash) at the end.
    """
    if shows_progress(environment):
        return through_multiplexer(f"\x1b]9;4;{state.value}\x1b\\", environment)
    return ""


def default_theme(environment: Mapping[str, str] = os.environ, *, last: bool | None = None) -> str:
    """Return the name of the theme to use until the terminal has reported its background colour.

    ``COLORFGBG`` (rxvt, Konsole, iTerm2 and others) has the foreground and background as ANSI
    colour numbers: a background of 7 or 9 to 15 is light. If the variable has no number for the
    background, ``last`` decides: it says whether the background was light at the last start; None
    counts as dark.
    """
    background = whole_number(environment.get("COLORFGBG", "").rpartition(";")[2])
    is_light = bool(last)
    if background is not None:
        is_light = background in {7, *range(9, 16)}
    return THEMES[is_light]
