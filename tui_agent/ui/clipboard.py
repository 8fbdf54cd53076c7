"""Copies text to the clipboard by OSC 52 and a native tool, and reads images from the clipboard.

Whether a native tool succeeded is known from its exit code. The escape sequence OSC 52 also works
over ssh, but no terminal confirms it. If no tool confirms the copy, the text is also saved to a
file.
"""

import base64
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent.app.format import plural
from tui_agent.path_checks import real_path
from tui_agent.pictures import MAX_SOURCE_BYTES, picture_type
from tui_agent.processes.environment import SafeEnvironment, own
from tui_agent.processes.own_programs import find_program
from tui_agent.ui.terminal import through_multiplexer

OSC52_LIMIT = 74_000
"""Maximum size of a text that is copied by OSC 52, in bytes. Many terminals ignore longer
sequences."""
TOOL_TIMEOUT = 2.0
"""Time limit for a native tool to copy text, in seconds. The limit for reading an image is five
times as long."""

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
"""The clipboard tools. For each one: the environment variable that must be set, the command that
copies its standard input to the clipboard, and the command that prints the clipboard's image (empty
if the tool can't print it)."""

_ENCODINGS = {"clip.exe": "utf-16-le"}
"""Text encodings of clipboard tools that don't read UTF-8, by the tool's name."""

_MAC_TOOLS = ["pbcopy"], ["osascript", "-e", "get the clipboard as «class PNGf»"]


def osc52(text: str, environment: Mapping[str, str]) -> str | None:
    """Return the escape sequence that sets the terminal's clipboard.

    Returns None if the text is longer than `OSC52_LIMIT`. Inside tmux, the result has the sequence
    twice: bare, for tmux with ``set-clipboard`` on, and wrapped, for the outer terminal.
    """
    data = text.encode("utf-8", errors="replace")
    if len(data) > OSC52_LIMIT:
        return None
    bare = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    return (bare if environment.get("TMUX") else "") + through_multiplexer(bare, environment)


def native_tools(
    environment: Mapping[str, str], platform: str = sys.platform, *, reading: bool = False
) -> list[Sequence[str]]:
    """Return the commands to try for copying text, or, with ``reading``, for reading an image.

    The preferred commands come first. Some may not be installed on this machine. Except on macOS, a
    tool is listed only if its environment variable is set. So the list is empty over ssh without a
    display, where a tool would use the clipboard of the remote machine.
    """
    if platform == "darwin":
        return [_MAC_TOOLS[reading]]
    found = []
    for variable, *tools in _TOOLS:
        if environment.get(variable) and tools[reading]:
            found.append(tools[reading])
    return found


def copy_natively(
    text: str, environment: Mapping[str, str], project: Path | None = None
) -> str | None:
    """Copy the text with the first native tool that succeeds; return its name, None if all fail.

    Programs inside ``project`` are not used, because a project's programs must not receive the
    copied text. The call blocks, so make it in a thread.
    """
    for command in native_tools(environment):
        data = text.encode(_ENCODINGS.get(command[0], "utf-8"), errors="replace")
        if _run(command, environment, project, seconds=TOOL_TIMEOUT, given=data) is not None:
            return command[0]
    return None


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    project: Path | None,
    *,
    seconds: float,
    given: bytes | None = None,
) -> bytes | None:
    """Run a tool; ``given`` is its standard input, or None for no input.

    Returns the tool's output, or b"" if ``given`` is not None. Returns None if the tool is missing,
    fails or takes longer than ``seconds``.
    """
    program = find_program(command[0], project, environment)
    if program is None:
        return None
    if given is None:
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL}
    else:
        source = {"input": given}
    try:
        done = subprocess.run(
            [program, *command[1:]],
            # Don't capture output of a copy: xclip stays alive to serve the clipboard, and would
            # keep the pipe open.
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


def read_image(environment: Mapping[str, str], project: Path | None = None) -> bytes | None:
    """Return the bytes of the image in the system's clipboard.

    Returns None if the clipboard contains no image, or if the image can't be read or is larger than
    `MAX_SOURCE_BYTES`. Programs inside ``project`` are not used. The call blocks, so make it in a
    thread.
    """
    for command in native_tools(environment, reading=True):
        data = _decoded(_run(command, environment, project, seconds=TOOL_TIMEOUT * 5) or b"")
        if len(data) <= MAX_SOURCE_BYTES and picture_type(data):
            return data
    return None


def _decoded(output: bytes) -> bytes:
    """Return the image bytes in a tool's output: a raw image, AppleScript's notation, or base64.

    Returns b"" if the output is none of them; decoded bytes are not checked to be an image.
    """
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
    """Save the text as ``copied.txt`` in ``directory``; return its path, or None on failure.

    Only the user can read the file. It replaces the previous one; if ``copied.txt`` is a symbolic
    link, nothing is saved.
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
    text: str, write: Callable[[str], None], directory: Path, project: Path | None = None
) -> str:
    """Copy the text by OSC 52 and a native tool; return a sentence that tells the user the result.

    ``write`` sends a sequence to the terminal. If no tool confirms the copy, the text is also saved
    in ``directory``. Programs inside ``project`` are not used. The call blocks, so make it in a
    thread.
    """
    environment = dict(os.environ)
    if (sequence := osc52(text, environment)) is not None:
        write(sequence)
    copied = f"Copied {plural(len(text), 'character')}"
    if confirmed := copy_natively(text, environment, project):
        return f"{copied} ({confirmed})."
    saved = _save(text, directory)
    if sequence is not None:
        kept = "."
        if saved:
            kept = f". If your terminal ignored it, the text is in {saved}"
        return f"{copied} through the terminal (OSC 52){kept}"
    if saved:
        return f"No clipboard is available; saved the text to {saved}"
    return "Can't copy: no clipboard is available, and the text could not be saved to a file."
