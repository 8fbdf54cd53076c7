"""What a question is about: its words, and the command, diff, address or loop below them."""

from typing import ClassVar

from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from tui_agent.agent.events import PermissionRequest
from tui_agent.tools.base import Permission, PermissionNeed
from tui_agent.ui.format import one_line, visible

VERBS = {
    Permission.READ: "Read",
    Permission.EDIT: "Change",
    Permission.BASH: "Run",
    Permission.WEBFETCH: "Fetch",
    Permission.MCP: "Use",
    Permission.TASK: "Start",
    Permission.EXTERNAL_DIRECTORY: "Go outside the project for",
    Permission.DOOM_LOOP: "Go on repeating",
}
WHAT = {Permission.BASH: "this command", Permission.WEBFETCH: "this address", Permission.DOOM_LOOP: "this call"}
"""What a question is about when the details below name it anyway."""

ABOUT = {
    Permission.READ: "reading",
    Permission.EDIT: "changing",
    Permission.EXTERNAL_DIRECTORY: "going to",
    Permission.WEBFETCH: "fetching",
}
"""How a part of a command is named that needs more than to run."""

LOOP_RESULTS, LOOP_LINES = 3, 3
"""Results of a repeated call that are shown, and lines of each."""


def question(request: PermissionRequest) -> str:
    """Return the question in a few words."""
    if not request.needs:
        return f"Use {one_line(request.tool, 40)}?"
    if request.command:
        return "Run this command?"
    need = request.needs[0]
    what = WHAT.get(need.permission) or one_line(request.title or need.pattern, 120)
    return f"{VERBS[need.permission]} {what}?"


class PermissionDetails(Static):
    """The full command, diff or address. Plain text only: nothing in it is markup."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "permission--added",
        "permission--removed",
        "permission--hunk",
        "permission--command",
    }

    def show(self, request: PermissionRequest) -> None:
        """Show what the call wants: for a loop what it gave so far, for a command all of it and what of it asks."""
        if request.loop:
            self.update(self._loop(request))
            return
        shown = [self._detail(need) for need in request.needs if need.detail or need.pattern]
        command = request.command.strip()
        if command and any(need.detail.strip() != command for need in request.needs):
            faint = self._style("hunk")
            asked = (Content.assemble(("asks for  ", faint), self._asked(need)) for need in request.needs)
            shown = [Content.styled(visible(command), self._style("command")), *asked]
        self.update(Content("\n").join(dict.fromkeys(shown)))

    def _asked(self, need: PermissionNeed) -> Content:
        """Return a part of a command that asks, on one line, with what it is about."""
        text = one_line(need.detail if need.detail_kind == "command" else need.pattern, 160)
        if need.permission is Permission.BASH:
            return Content(text)
        return Content(f"{ABOUT.get(need.permission, need.permission.value)} {text}")

    def _loop(self, request: PermissionRequest) -> Content:
        """Return the call that repeats and the last of its results, shortened."""
        faint = self._style("hunk")
        lines = [Content.styled(one_line(f"{request.tool} {request.title}", 400), self._style("command"))]
        first = max(0, len(request.loop) - LOOP_RESULTS)
        for number, result in enumerate(request.loop[first:], first + 1):
            kept = visible(result).strip().splitlines()
            more = f"  … {len(kept) - LOOP_LINES} more lines" if len(kept) > LOOP_LINES else ""
            lines.append(Content.styled(f"result {number} of {len(request.loop)}{more}", faint))
            lines += [Content(f"  {line[:200]}") for line in kept[:LOOP_LINES] or ["(nothing)"]]
        return Content("\n").join(lines)

    def _detail(self, need: PermissionNeed) -> Content:
        text = visible(need.detail or need.pattern)
        match need.detail_kind:
            case "diff":
                # The question names the file already; room for lines of the diff is dear.
                lines = [line for line in text.splitlines() if not line.startswith(("--- ", "+++ "))]
                return Content("\n").join(self._diff_line(line) for line in lines)
            case "command":
                return Content.styled(text, self._style("command"))
            case _:
                return Content(text)

    def _diff_line(self, line: str) -> Content:
        name = {"+": "added", "-": "removed", "@": "hunk"}.get(line[:1])
        return Content.styled(line, self._style(name)) if name else Content(line)

    def _style(self, name: str) -> Style:
        return self.get_visual_style(f"permission--{name}", partial=True)
