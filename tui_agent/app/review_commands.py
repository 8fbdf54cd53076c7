"""A review of changes by a subagent that only reads: what it found, each at its place."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.format import one_line, plural
from tui_agent.app.frontend import Finding, FindingsPage
from tui_agent.errors import CommandError
from tui_agent.lazy import LazyPattern, dataclass
from tui_agent.path_checks import is_file

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.app.controller import Controller

MAX_DIFF_CHARS = 80_000
"""Characters of a change that are given to the reviewer; it reads the rest in the files."""
MAX_NEW_FILES = 50
"""Files that git does not track yet whose contents are given."""
_FILE = LazyPattern(r"^(?=diff --git |--- /dev/null$)", re.MULTILINE)
"""Where the diff of a file begins."""
_PATH = LazyPattern(r"^(?:\+\+\+ b|--- a)/(.+)$", re.MULTILINE)
_FINDING = LazyPattern(
    r"^[-*\s]*`?(?P<path>[^\s:`*][^:`]*):(?P<line>\d+)`?(?:-\d+)?:?\s*(?:\**(?P<severity>high|medium|low)\**\s*[:—–-]\s*)?(?P<text>.+)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Change:
    """What is reviewed: in words, and as a diff, which is empty when nothing differs."""

    what: str
    diff: str


async def review(controller: Controller, argument: str) -> None:
    """Have uncommitted changes reviewed, a commit, or what this branch has beside another one."""
    if argument.strip() == "list":
        if controller.review is None:
            raise CommandError("Nothing was reviewed yet: /review begins.")
        controller.show(controller.review)
        return
    if (agent := controller.idle_agent) is None:
        return
    change = await asyncio.to_thread(change_of, agent.ports.project, argument.strip())
    if change is None:
        name = one_line(argument, 60)
        if name:
            reason = f"“{name}” is neither a branch nor a commit here. Use /review, /review BRANCH or /review COMMIT."
        else:
            reason = "There is nothing to compare with: this is no git repository, or one without a commit."
        raise CommandError(reason)
    if not change.diff.strip():
        controller.say(f"There is nothing to review: {change.what} is empty.")
        return
    controller.say(f"Reviewing {change.what} … esc stops it.")
    diff = await asyncio.to_thread(without_secrets, agent.ports.project, change.diff)
    task = agent.ports.prompt("review").replace("{what}", change.what).replace("{diff}", _cut(diff))
    try:
        report = await agent.explore(
            task, lambda step: controller.say(f"Reviewing {change.what}: {one_line(step, 60)}")
        )
    except asyncio.CancelledError:
        controller.say("The review was stopped.")
        return
    controller.frontend.refresh_facts()
    if report.error and not report.text:
        controller.say(f"The review ended early: {report.error}.", "warning")
        return
    findings = read_findings(report.text)
    title = f"Review of {change.what}: {plural(len(findings), 'finding')}"
    controller.review = FindingsPage(title, findings, agent.ports.project)
    if findings:
        controller.say(f"{title}. /review list shows them again.")
        controller.show(controller.review)
    else:
        controller.say(f"{title}. {one_line(report.text, 200)}")


def read_findings(answer: str) -> tuple[Finding, ...]:
    """Return the findings of a reviewer's answer; lines that name no place belong to the finding above them."""
    found: list[Finding] = []
    for line in answer.splitlines():
        if match := _FINDING.match(line):
            severity = (match["severity"] or "").lower()
            found.append(Finding(match["path"].strip(), int(match["line"]), severity, match["text"].strip()))
        elif found and line.strip():
            last = found[-1]
            found[-1] = Finding(last.path, last.line, last.severity, f"{last.text}\n{line.strip()}")
    return tuple(found)


def change_of(project: Path, name: str) -> Change | None:
    """Return what is to be reviewed; None where there is no such thing. Runs git: call it in a thread."""
    from tui_agent.files.own_git import run_git, tip_of

    if name.startswith("-"):
        return None
    if not name:
        diff = run_git(project, "diff", "HEAD")
        return None if diff is None else Change("uncommitted changes", _text(diff) + _new_files(project))
    if (tip := tip_of(project, name)) is not None:
        diff = run_git(project, "diff", f"{tip}...HEAD")
        return None if diff is None else Change(f"what this branch has beside {name}", _text(diff))
    shown = run_git(project, "show", "--format=%s%n%n%b", name, "--")
    return None if shown is None else Change(f"commit {name}", _text(shown))


def _new_files(project: Path) -> str:
    """Return the files that git does not track yet as diffs."""
    from tui_agent.editing.diffs import diff_texts
    from tui_agent.files.own_git import run_git

    listed = run_git(project, "ls-files", "--others", "--exclude-standard", "-z") or b""
    told = []
    for name in list(filter(None, _text(listed).split("\0")))[:MAX_NEW_FILES]:
        path = project / name
        if is_file(path) and not path.is_symlink() and path.stat().st_size <= MAX_DIFF_CHARS:
            told.append(diff_texts(name, None, path.read_text(encoding="utf-8", errors="replace")).text)
    return "".join(told)


def without_secrets(project: Path, diff: str) -> str:
    """Leave out the files that hold secrets: a review is no reason to send those."""
    from tui_agent.files.secret_files import file_holds_secret, shown_quote

    kept = []
    for part in _FILE.split(diff):
        names = _PATH.findall(part.partition("\n@@")[0])
        if any(file_holds_secret(project / name) for name in names):
            kept.append(f"[{names[-1]} changed too; it holds a secret and is not shown]\n")
        else:
            kept.append(shown_quote(project / names[-1], part) if names else part)
    return "".join(kept)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _cut(diff: str) -> str:
    if len(diff) <= MAX_DIFF_CHARS:
        return diff
    names = re.findall(r"^\+\+\+ b/(.+)$", diff[MAX_DIFF_CHARS:], re.MULTILINE)
    return f"{diff[:MAX_DIFF_CHARS]}\n[The rest is not shown. Changed there: {', '.join(names) or 'the last file'}]"


COMMANDS = (
    Command(
        "review",
        "have changes reviewed: uncommitted, a branch, a commit",
        review,
        "Review",
        argument="[BRANCH|COMMIT|list]",
        place=296,
        yields=True,
    ),
)
