"""Copies text to the clipboard by every way there is, and says which one worked; reads images out of it.

A native tool confirms that it worked; the escape sequence OSC 52 reaches the terminal over ssh too,
but no terminal confirms it. When nothing could confirm, the text is saved to a file as well, so
that a copy is never lost.
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
"""Bytes of text; many terminals drop longer sequences."""
TOOL_TIMEOUT = 2.0
"""Seconds a native tool may take."""

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
"""The variable that a tool needs, its command to copy a text, and its command to print the
image."""

_ENCODINGS = {"clip.exe": "utf-16-le"}
"""The encodings of tools that read no UTF-8."""

_MAC_TOOLS = ["pbcopy"], ["osascript", "-e", "get the clipboard as «class PNGf»"]


def osc52(text: str, environment: Mapping[str, str]) -> str | None:
    """Return the escape sequence that sets the terminal's clipboard, None when the text is too long for it.

    Inside tmux it is wrapped to pass through to the terminal outside; tmux with ``set-clipboard``
    on takes the bare one too, so both are sent.
    """
    data = text.encode("utf-8", errors="replace")
    if len(data) > OSC52_LIMIT:
        return None
    bare = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    return (bare if environment.get("TMUX") else "") + through_multiplexer(bare, environment)


def native_tools(
    environment: Mapping[str, str], platform: str = sys.platform, *, reading: bool = False
) -> list[Sequence[str]]:
    """Return the commands that may set, or read, the clipboard of the screen the user sits at, best first.

    On the far side of an ssh connection without a display there is none: the tool would use the
    wrong machine's.
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
    """Give the text to the first tool that is installed and takes it; return its name.

    Blocks: call it in a thread.

    No tool in ``outside`` is started: the project must not get the copied text.
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
    """Return a tool's output, nothing where it is ``given`` something; None if it is not there, late or fails."""
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
    """Return the image in the system's clipboard, None when there is none to be had.

    Blocks: call it in a thread.

    No tool in ``outside``, the project, is started.
    """
    for command in native_tools(environment, reading=True):
        data = _decoded(_run(command, environment, outside, seconds=TOOL_TIMEOUT * 5) or b"")
        if len(data) <= MAX_SOURCE_BYTES and picture_type(data):
            return data
    return None


def _decoded(output: bytes) -> bytes:
    """Return an image as it is, out of AppleScript's notation, or out of base64."""
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
    """Write the text to a private file and return where it is, None when that is impossible too.

    Whoever reads it meanwhile sees the former copy or this one, never half of one. A link in its
    place is not followed.
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
    """Copy by all ways and return a sentence about how it went.

    ``write`` sends a sequence to the terminal. Blocks.

    A copy that nothing confirmed is saved in ``directory``. No tool in ``outside``, the project, is
    started.
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
            kept = f". If it did not take them: {saved}"
        return f"{copied} through the terminal (OSC 52){kept}"
    if saved:
        return f"It could not be put into a clipboard; saved to {saved}"
    return "Nothing could be copied."
