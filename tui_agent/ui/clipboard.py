"""Copies text to the clipboard in every available way, and reads images from it.

A native tool confirms success. The escape sequence OSC 52 reaches the terminal over ssh too, but no
terminal confirms it. If nothing confirms the copy, the text is also saved to a file.
"""

import base64
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent.path_checks import real_path
from tui_agent.pictures import MAX_SOURCE_BYTES, picture_type
from tui_agent.processes.environment import SafeEnvironment, own
from tui_agent.processes.own_programs import find_program
from tui_agent.ui.terminal import through_multiplexer

OSC52_LIMIT = 74_000
"""Maximum bytes of text in an OSC 52 sequence; many terminals drop longer ones."""
TOOL_TIMEOUT = 2.0
"""Time limit of a native tool, in seconds."""

_POWERSHELL = (
    "Add-Type -AssemblyName System.Windows.Forms; $i = [Windows.Forms.Clipboard]::GetImage(); "
    "if ($i) { $m = New-Object IO.MemoryStream; $i.Save($m, 'Png'); [Convert]::ToBase64String($m.ToArray()) }"
)
_IMAGE = "image/png"

_TOOLS: Sequence[tuple[str, Sequence[str], Sequence[str]]] = (
    ("WAYLAND_DISPLAY", ["wl-copy"], ["wl-paste", "--no-newline", "--type", _IMAGE]),
    (
        "DISPLAY",
        ["xclip", "-selection", "clipboard"],
        ["xclip", "-selection", "clipboard", "-target", _IMAGE, "-out"],
    ),
    ("DISPLAY", ["xsel", "--clipboard", "--input"], []),
    (
        "WSL_DISTRO_NAME",
        ["clip.exe"],
        ["powershell.exe", "-NoProfile", "-Sta", "-Command", _POWERSHELL],
    ),
)
"""For each tool the variable it needs, its command to copy text, and its command to print an image."""

_ENCODINGS = {"clip.exe": "utf-16-le"}
"""Encodings of tools that don't read UTF-8."""

_MAC_TOOLS = ["pbcopy"], ["osascript", "-e", "get the clipboard as «class PNGf»"]


def osc52(text: str, environment: Mapping[str, str]) -> str | None:
    """Return the escape sequence that sets the terminal's clipboard; None if the text is too long.

    Inside tmux it is wrapped to pass through to the outer terminal. tmux with ``set-clipboard`` on
    takes the bare sequence too, so both are sent.
    """
    data = text.encode("utf-8", errors="replace")
    if len(data) > OSC52_LIMIT:
        return None
    bare = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    return (bare if environment.get("TMUX") else "") + through_multiplexer(bare, environment)


def native_tools(
    environment: Mapping[str, str], platform: str = sys.platform, *, reading: bool = False
) -> list[Sequence[str]]:
    """Return the commands that may set (or read) the clipboard of the user's screen, best first.

    Over ssh without a display there are none: a tool would use the wrong machine's clipboard.
    """
    if platform == "darwin":
        return [_MAC_TOOLS[reading]]
    found = []
    for variable, *tools in _TOOLS:
        if environment.get(variable) and tools[reading]:
            found.append(tools[reading])
    return found


def copy_natively(
    text: str, environment: Mapping[str, str], outside: Path | None = None
) -> str | None:
    """Give the text to the first installed tool that takes it; return its name, None if none does.

    Blocks: call it in a thread. No tool in ``outside`` is started: the project must not get the copied
    text.
    """
    for command in native_tools(environment):
        data = text.encode(_ENCODINGS.get(command[0], "utf-8"), errors="replace")
        if _run(command, environment, outside, seconds=TOOL_TIMEOUT, given=data) is not None:
            return command[0]
    return None


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    outside: Path | None,
    *,
    seconds: float,
    given: bytes | None = None,
) -> bytes | None:
    """Run a tool, ``given`` an input or for its output (b"" otherwise); None if missing, late or failed."""
    program = find_program(command[0], outside, environment)
    if program is None:
        return None
    if given is None:
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL}
    else:
        source = {"input": given}
    try:
        done = subprocess.run(
            [program, *command[1:]],
            # xclip stays alive to serve the clipboard and would keep a pipe open for ever.
            stdout=subprocess.PIPE if given is None else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            env=own(SafeEnvironment(environment)),
            **source,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode == 0:
        return done.stdout or b""
    return None


def read_image(environment: Mapping[str, str], outside: Path | None = None) -> bytes | None:
    """Return the image in the system's clipboard; None if there is none or it can't be read.

    Blocks: call it in a thread. No tool in ``outside``, the project, is started.
    """
    for command in native_tools(environment, reading=True):
        data = _decoded(_run(command, environment, outside, seconds=TOOL_TIMEOUT * 5) or b"")
        if len(data) <= MAX_SOURCE_BYTES and picture_type(data):
            return data
    return None


def _decoded(output: bytes) -> bytes:
    """Return the image in a tool's output: raw, in AppleScript's notation, or in base64; b"" if none."""
    if picture_type(output):
        return output
    text = output.strip()
    try:
        if text.startswith("«data PNGf".encode()):
            return bytes.fromhex(text.decode().removeprefix("«data PNGf").removesuffix("»"))
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _save(text: str, directory: Path) -> Path | None:
    """Save the text in a file that only the user can read; return its path, None on failure.

    The file is replaced as a whole. A link in its place is not followed.
    """
    from tui_agent.text_files.replacing import replace_file

    try:
        directory.mkdir(parents=True, exist_ok=True)
        path = real_path(directory) / "copied.txt"
        replace_file(path, text.encode("utf-8", errors="replace"), mode=0o600)
    except OSError:
        return None
    return path


def copy(
    text: str, write: Callable[[str], None], directory: Path, outside: Path | None = None
) -> str:
    """Copy in all available ways; return a sentence on the outcome.

    ``write`` sends a sequence to the terminal. A copy that nothing confirms is also saved in
    ``directory``. No tool in ``outside``, the project, is started. Blocks: call it in a thread.
    """
    environment = dict(os.environ)
    if (sequence := osc52(text, environment)) is not None:
        write(sequence)
    copied = f"Copied {len(text):,} characters"
    if confirmed := copy_natively(text, environment, outside):
        return f"{copied} ({confirmed})."
    saved = _save(text, directory)
    if sequence is not None:
        kept = "."
        if saved:
            kept = f". In case it did not take them, they are in {saved}"
        return f"{copied} through the terminal (OSC 52){kept}"
    if saved:
        return f"No clipboard could be reached; saved to {saved}"
    return "Nothing could be copied."
