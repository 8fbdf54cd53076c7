"""What to tell the model about a command that wanted to ask somebody: what to use instead. Pure."""

import re

_MAX_TAIL_CHARS = 4_000
"""Characters at the end of the output."""

_NO_TERMINAL = "This needs a terminal, and there is none. Use a command that prints and ends; change files with edit."

_WANTS_TERMINAL = (
    r"/dev/tty: No such device|[Ii]nappropriate ioctl for device|not a (tty|TTY|terminal)\b|is not to a terminal"
    r"|failed tty get|no tty\b|requires? an? (interactive )?(tty|TTY|terminal)|Raw mode is not supported"
    r"|Error opening terminal|must be run (in|from) a terminal|[Tt]erminal is (dumb|not fully functional)"
    r"|TERM environment variable (not set|needs set)"
)
_SIGNS: tuple[tuple[str, str], ...] = (
    (
        r"sudo: (a terminal is required|no tty present|a password is required|\d+ incorrect password)",
        "sudo can't ask for a password here. Do without root, or ask the user to run it with !.",
    ),
    (
        r"Aborting commit due to empty commit message|Aborting due to empty (commit|tag) message|no tag message\?",
        "No editor opens here. Give the message with -m or -F; --no-edit keeps the one there is.",
    ),
    (
        r"terminal prompts disabled|could not read (Username|Password) for",
        "Git can't ask for a name or password here. Ask the user to log in, or use a remote that needs no login.",
    ),
    (
        r"Host key verification failed",
        "ssh can't ask about an unknown host here. Ask the user to connect once, with !ssh HOST.",
    ),
    (
        r"Permission denied \([^)\n]*(publickey|password|keyboard-interactive)",
        "ssh can't ask for a password or passphrase here. Ask the user to load a key into their agent.",
    ),
    (
        r"npx canceled due to missing packages and no YES option|Ok to proceed\? \(y\)",
        "Answer it beforehand: npx --yes, npm init -y, npm create NAME -- --yes.",
    ),
    (
        r"^EOFError: EOF when reading a line|^EOF when reading a line|end of file on (std)?input",
        "It reads input, and there is none. Pipe it in or use a here-document.",
    ),
    (
        r"the input device is not a TTY|cannot enable tty mode on non tty input",
        "There is no terminal. Leave out -t and -i.",
    ),
    (_WANTS_TERMINAL, _NO_TERMINAL),
)
_COMPILED = tuple((re.compile(sign, re.MULTILINE), text) for sign, text in _SIGNS)

_SSH_GOES_ON = "Pseudo-terminal will not be allocated because stdin is not a terminal."
"""Said by ssh, which works without one."""

_YES_OR_NO = re.compile(r"[\[(](y/n|yes/no|y/N|Y/n|yes|no)(/[^\])]*)?[\])]\s*[?:]?\s*(abort\.?)?$", re.IGNORECASE)
_QUESTION = re.compile(r"\S.*\?\s*$")
_PROMPT = re.compile(r"\S.*([:>?]|[\])])\s*$")
_READ = re.compile(r"(^|[;&|(]|\b(do|then|while|until)\b)\s*(IFS=\S*\s+)?(read|select)\b", re.MULTILINE)

_ASKED = "It asked and got no answer: there is no input. Use a flag such as --yes, or pipe the answer in."
_EMPTY_INPUT = "read found no input: there is none. Pipe it in or use a here-document."


def advice(command: str, output: str, *, failed: bool) -> str:
    """Return a line of advice where a command looks like one that asked, otherwise nothing.

    Args:
        command: what was run.
        output: what it printed, as the model sees it; a last line without an end is how questions look.
        failed: it ended badly, or had to be stopped.
    """
    end = output[-_MAX_TAIL_CHARS:].replace(_SSH_GOES_ON, "")
    if failed:
        for sign, text in _COMPILED:
            if sign.search(end):
                return f"[{text}]"
    last = end.rpartition("\n")[2]
    if _YES_OR_NO.search(end.rstrip()) or _QUESTION.search(last) or (failed and _PROMPT.search(last)):
        return f"[{_ASKED}]"
    if failed and not output.strip() and _READ.search(command):
        return f"[{_EMPTY_INPUT}]"
    return ""
