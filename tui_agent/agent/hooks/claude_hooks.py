"""Parses and translates hooks in Claude Code's format, which Codex, Copilot and others share.

Translates the names of events, tools and arguments, the payloads and the answers between that
format and this program's; `Hooks` runs the translated hooks like any others. A hook of type
``prompt`` asks the small model (`QuestionHook`). ``programs.hooks`` finds the files,
``cli.extensions`` makes the hooks that run. Source: Claude Code's hooks reference.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from tui_agent.agent.hooks.hooks import CommandHook, HookError, parsed
from tui_agent.agent.hooks.payloads import (
    ANSWERS,
    AfterTool,
    AfterToolAnswer,
    BeforeCompact,
    BeforeEnd,
    BeforeTool,
    BeforeToolAnswer,
    HookAnswer,
    Notification,
    Payload,
    PermissionQuestion,
    PermissionQuestionAnswer,
    SessionEnd,
    SessionStart,
    SubagentStart,
    UserPrompt,
)
from tui_agent.agent.hooks.settings import EventName, HookSettings
from tui_agent.agent.permissions import Action
from tui_agent.agent.programs.tool_rules import Anchor, ForeignRuleError, parse_piece, rules_of
from tui_agent.foreign_file import ForeignFile
from tui_agent.json_text import as_dict, as_text, loads, objects
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.protocol import ModelError
from tui_agent.permission import PermissionNeed
from tui_agent.tools.registry import BUILTIN
from tui_agent.trust import PROJECT_VARIABLE

EVENTS: dict[str, EventName] = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "user_prompt",
    "PreToolUse": "before_tool",
    "PostToolUse": "after_tool",
    "PostToolUseFailure": "after_tool",
    "PreCompact": "before_compact",
    "Stop": "before_end",
    "SubagentStop": "before_end",
    "SubagentStart": "subagent_start",
    "PermissionRequest": "permission",
    "Notification": "notification",
    "SessionEnd": "session_end",
}
"""Maps Claude Code's name of each supported event to this program's name."""
_ARGUMENTS = "$ARGUMENTS"
"""Placeholder in a question to the model, replaced by the payload's JSON."""
DEFAULT_TIMEOUT = 60
"""Timeout of a hook that names none, in seconds."""
MAX_TIMEOUT = 600
"""Longest timeout of a hook, in seconds."""

_TOOLS = {
    "read": "Read",
    "edit": "Edit",
    "write": "Write",
    "bash": "Bash",
    "grep": "Grep",
    "glob": "Glob",
    "ls": "LS",
    "webfetch": "WebFetch",
    "websearch": "WebSearch",
    "todo": "TodoWrite",
    "task": "Task",
    "skill": "Skill",
    "ask": "AskUserQuestion",
}
"""Maps this program's names of tools to Claude Code's names."""
_FIELDS = {
    "path": "file_path",
    "background": "run_in_background",
    "agent": "subagent_type",
    "task": "prompt",
}
"""Maps this program's names of tool arguments to Claude Code's names, where they differ."""
_SEARCHING = {"Grep", "Glob", "LS"}
"""Claude Code's names of the tools whose argument ``path`` has the same name in this program."""
_EDIT_FIELDS = {"old_string", "new_string", "replace_all", "edits"}
_PLAIN = LazyPattern(r"[\w|, -]*")
_REPEATED_GROUP = LazyPattern(r"\)[*+{]")
_MAX_REPEATS = 5
"""Maximum quantifiers in one alternative of a matcher. More could make matching endless."""
_MAX_GROUPS = 8
"""Maximum number of groups in a matcher. With more groups, matching could take forever."""


@frozen
class FoundHook:
    """A usable hook of a settings file: a command, or a question to the small model.

    ``event`` is Claude Code's name of the event. ``matcher`` selects tools, notifications or
    session starts; "" or "*" selects all. ``condition`` is a permission rule that a call has to
    match; "" for every call. ``timeout`` is in seconds; ``place`` is the hook's FILE:LINE.
    """

    event: str
    matcher: str
    command: str
    """The hook's command line, or its question to the small model."""
    timeout: float
    place: str
    condition: str = ""
    in_background: bool = False
    is_question: bool = False


@frozen
class UnusableHook:
    """An unusable hook from a settings file. ``why`` is a clause that tells the user the reason.

    ``event`` is Claude Code's name of the event, ``place`` is the hook's FILE:LINE.
    """

    event: str
    place: str
    why: str


def hooks_in(file: ForeignFile) -> Iterator[FoundHook | UnusableHook]:
    """Yield a settings file's hooks in order. Yields nothing if the file disables all hooks."""
    if file.table.get("disableAllHooks") is True:
        return
    for event, groups in file.section("hooks").items():
        for group in objects(groups):
            yield from _hooks_of(str(event), group, file)


def claude_hook(found: FoundHook, handler: CommandHook) -> "ClaudeHook":
    """Return ``found`` as a hook that can be run.

    ``handler`` supplies the settings, the directory, the environment, and the check that is made
    before a run outside the sandbox.
    """
    kind = QuestionHook if found.is_question else ClaudeHook
    return kind(
        settings=handler.settings,
        cwd=handler.cwd,
        environment={**handler.environment, PROJECT_VARIABLE: str(handler.cwd)},
        problem_of=handler.problem_of,
        place=found.place,
        found=found,
    )


def settings_of(found: FoundHook, *, sandboxed: bool) -> HookSettings:
    """Return a hook found in a settings file as settings in this program's format."""
    return HookSettings(
        event=EVENTS[found.event], command=found.command, timeout=found.timeout, sandboxed=sandboxed
    )


@frozen
class ClaudeHook(CommandHook):
    """A hook whose payloads and answers have Claude Code's format."""

    found: FoundHook = cast("FoundHook", None)

    @property
    def runs_in_background(self) -> bool:
        return self.found.in_background

    def handles(self, event: str, tool: str) -> bool:
        if event != self.settings.event:
            return False
        return not tool or _matches(self.found.matcher, tool)

    def wants(self, payload: Payload) -> bool:  # noqa: PLR0911 - an arm per event
        match payload:
            case AfterTool():
                if payload.is_error != (self.found.event == "PostToolUseFailure"):
                    return False
                return self._fits(payload.tool, payload.arguments)
            case BeforeTool() | PermissionQuestion():
                return self._fits(payload.tool, payload.arguments)
            case Notification():
                return _matches_kind(self.found.matcher, payload)
            case BeforeEnd():
                return (payload.about.parent is not None) == (self.found.event == "SubagentStop")
            case SessionStart():
                return _matches_source(self.found.matcher, payload)
            case _:
                return True

    def given(self, payload: Payload) -> bytes:
        """Return the payload as Claude Code's JSON, for the command's standard input."""
        common = {
            "session_id": payload.about.session,
            "transcript_path": "",
            "cwd": payload.about.cwd,
            "permission_mode": "default",
            "hook_event_name": self.found.event,
        }
        return json.dumps({**common, **_own_fields(payload)}, ensure_ascii=False).encode()

    def refusal(self, event: str, reason: str) -> HookAnswer:
        """Return a hook's answer that refuses the event.

        If the event can't be refused, the answer gives the reason to the model (after a tool call)
        or to the user.
        """
        kind = ANSWERS[event]
        if kind is AfterToolAnswer:
            return kind.telling(reason)
        return kind.refusing(reason) or kind(notice=reason)

    def answer(self, payload: Payload, text: str) -> HookAnswer:
        if text.startswith("{"):
            return self._meaning(payload, parsed(text))
        kind = ANSWERS[payload.event]
        if payload.event in {"session_start", "user_prompt"}:
            return kind.telling(text)
        return kind()

    def _meaning(self, payload: Payload, said: Mapping[str, Any]) -> HookAnswer:
        """Convert a hook's answer from Claude Code's JSON format to the format of this program."""
        more = as_dict(said.get("hookSpecificOutput"))
        notice = str(said.get("systemMessage") or "")
        reason = str(
            said.get("stopReason")
            or said.get("reason")
            or more.get("permissionDecisionReason")
            or ""
        )
        if isinstance(payload, BeforeEnd) and said.get("continue") is False:
            # Here, ``continue: false`` means that the run ends, so it must not block the end.
            return HookAnswer(notice=notice or reason)
        if isinstance(payload, PermissionQuestion) and isinstance(more.get("decision"), dict):
            answer: HookAnswer = _permission(more["decision"])
        elif said.get("continue") is False or as_text(said.get("decision")) in {"block", "deny"}:
            answer = self.refusal(payload.event, reason or "no reason given")
        elif isinstance(payload, BeforeTool):
            answer = _decision(payload, said, more, reason)
        else:
            context = str(more.get("additionalContext") or "")
            answer = ANSWERS[payload.event].telling(context)
        if notice:
            return answer.model_copy(update={"notice": notice})
        return answer

    def _fits(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call matches the hook's condition, such as ``Bash(git *)``.

        True without a condition, False if the condition can't be read.
        """
        condition = self.found.condition
        if not condition:
            return True
        try:
            piece = parse_piece(condition)
            rules = rules_of(condition, Action.DENY, "other", Anchor())
        except ForeignRuleError:
            return False
        if piece.tool != tool or piece.permission is None:
            return piece.tool == tool
        value = str(arguments.get("command") or arguments.get("path") or arguments.get("url") or "")
        need = PermissionNeed(piece.permission, value)
        return any(rule.matches(need, tool) for rule in rules)


@frozen
class QuestionHook(ClaudeHook):
    """A hook that asks the small model whether the work may continue."""

    async def __call__(self, payload: Payload) -> HookAnswer:
        if self.ask is None:
            raise HookError("there is no model to ask")
        given = self.given(payload).decode()
        question = self.found.command
        if _ARGUMENTS in question:
            text = question.replace(_ARGUMENTS, given)
        else:
            text = f"{question}\n\n{given}"
        try:
            told = await self.ask(text, self.found.timeout)
        except TimeoutError:
            raise HookError(f"no answer after {self.found.timeout:g} s") from None
        except ModelError as error:
            raise HookError(f"the model did not answer: {error}") from None
        return self._judged(payload.event, told)

    def _judged(self, event: str, told: str) -> HookAnswer:
        """Convert the model's JSON object, with ``ok`` and ``reason``, to the answer of a hook.

        Raises HookError if there is no such object in the text.
        """
        start = told.find("{")
        try:
            said = as_dict(loads(told[start : told.rfind("}") + 1]))
        except ValueError:
            said = {}
        if not isinstance(said.get("ok"), bool):
            raise HookError(f"the model's answer has no “ok”: {told[:80]!r}")
        if said["ok"]:
            return ANSWERS[event]()
        return self.refusal(event, as_text(said.get("reason")) or "no reason given")


def _hooks_of(
    event: str, group: Mapping[str, Any], file: ForeignFile
) -> Iterator[FoundHook | UnusableHook]:
    for row in objects(group.get("hooks")):
        kind = str(row.get("type", "command"))
        is_supported = kind in {"command", "prompt"}
        command = str(row.get(kind) or "") if is_supported else ""
        matcher = str(group.get("matcher") or "")
        place = file.place(command or event)
        if event not in EVENTS:
            yield UnusableHook(event, place, "this event is not supported")
        elif not is_supported:
            yield UnusableHook(event, place, f"hooks of type {kind} are not supported")
        elif not command:
            yield UnusableHook(event, place, f"it has no {kind}")
        elif problem := _problem_of(matcher):
            yield UnusableHook(event, place, f"its matcher {problem}: {matcher[:60]}")
        else:
            yield FoundHook(
                event=event,
                matcher=matcher,
                command=command,
                timeout=_timeout(row.get("timeout")),
                place=place,
                condition=str(row.get("if") or ""),
                in_background=row.get("async") is True,
                is_question=kind == "prompt",
            )


def _timeout(value: object) -> float:
    # NaN is not greater than 0 either, so it is replaced, too.
    if not isinstance(value, int | float) or not value > 0:
        return DEFAULT_TIMEOUT
    return float(min(value, MAX_TIMEOUT))


def _problem_of(matcher: str) -> str:
    """Return why a matcher can't be used, as a predicate ("repeats too much"); "" if it can."""
    if matcher == "*" or _PLAIN.fullmatch(matcher):
        return ""
    repeats = max(len(re.findall(r"[*+{]", choice)) for choice in matcher.split("|"))
    if (
        repeats > _MAX_REPEATS
        or matcher.count("(") > _MAX_GROUPS
        or _REPEATED_GROUP.search(matcher)
    ):
        return "repeats too much"
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError):
        return "is not a regular expression"
    return ""


def _matches(matcher: str, tool: str) -> bool:
    """Return whether a matcher covers the tool that this program calls ``tool``.

    A matcher is a list of names separated by ``|`` or commas, or a regular expression.
    """
    if matcher in {"", "*"}:
        return True
    names = _their_names(tool)
    if _PLAIN.fullmatch(matcher):
        wanted = {name.strip() for name in re.split(r"[|,]", matcher)}
        return not wanted.isdisjoint(names)
    return any(re.fullmatch(matcher, name) for name in names)


def _their_names(tool: str) -> list[str]:
    """Return the names that Claude Code may use for one of this program's tools.

    A tool of an MCP server has one name for each ``_`` that may separate server and tool.
    """
    if tool in BUILTIN:
        also = []
        if _TOOLS.get(tool) == "Edit":
            also = ["MultiEdit"]
        return [_TOOLS.get(tool, tool), *also]
    parts = tool.split("_")
    return [
        f"mcp__{'_'.join(parts[:end])}__{'_'.join(parts[end:])}" for end in range(1, len(parts))
    ] or [tool]


def _matches_source(matcher: str, payload: SessionStart) -> bool:
    source = "resume" if payload.resumed else "startup"
    return matcher in {"", "*"} or source in matcher.split("|")


def _matches_kind(matcher: str, payload: Notification) -> bool:
    return matcher in {"", "*"} or f"{payload.kind}_prompt" in matcher.split("|")


# -- payloads ------------------------------------------------------------------------------------------------


def _own_fields(payload: Payload) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    match payload:
        case SessionStart():
            fields = {
                "source": "resume" if payload.resumed else "startup",
                "model": payload.about.model,
            }
        case UserPrompt():
            fields = {"prompt": payload.prompt}
        case BeforeTool():
            fields = _call_fields(payload)
        case AfterTool():
            response = {
                "output": payload.output,
                "stdout": payload.output,
                "stderr": "",
                "interrupted": False,
            }
            fields = {
                **_call_fields(payload),
                "tool_response": response,
                "is_error": payload.is_error,
            }
        case BeforeCompact():
            trigger = "manual" if payload.trigger == "manual" else "auto"
            fields = {"trigger": trigger, "custom_instructions": payload.focus or ""}
        case BeforeEnd():
            fields = {
                "stop_hook_active": payload.sent_back > 0,
                "last_assistant_message": payload.answer,
            }
        case PermissionQuestion():
            fields = _call_fields(payload)
        case Notification():
            fields = {"message": payload.message, "notification_type": f"{payload.kind}_prompt"}
        case SubagentStart():
            fields = {"agent_type": payload.agent}
        case SessionEnd():
            fields = {"reason": "other"}
    return fields


def _call_fields(payload: BeforeTool | AfterTool | PermissionQuestion) -> dict[str, Any]:
    name = _their_names(payload.tool)[0]
    return {
        "tool_name": name,
        "tool_use_id": payload.call_id,
        "tool_input": _their_input(name, payload.arguments, payload.about.cwd),
    }


def _their_input(name: str, arguments: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    """Return a call's arguments in Claude Code's form; ``name`` is Claude Code's name of the tool.

    Arguments are renamed, file paths made absolute and timeouts converted to milliseconds.
    """
    if name not in _TOOLS.values():
        return dict(arguments)
    given: dict[str, Any] = {}
    for key, value in arguments.items():
        if name in _SEARCHING:
            their = key
        else:
            their = _FIELDS.get(key, key)
        given[their] = value
    if "file_path" in given and not str(given["file_path"]).startswith(("/", "~")):
        given["file_path"] = f"{cwd}/{given['file_path']}"
    if name == "Bash" and "timeout" in given:
        given["timeout"] = round(float(given["timeout"]) * 1_000)
    edits = None
    if name == "Edit":
        edits = given.pop("edits", None)
    if isinstance(edits, list) and edits:
        rows = [_their_edit(edit) for edit in edits]
        given |= rows[0] if len(rows) == 1 else {**rows[0], "edits": rows}
    return given


def _their_edit(edit: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "old_string": edit.get("old", ""),
        "new_string": edit.get("new", ""),
        "replace_all": bool(edit.get("all", False)),
    }


def _our_input(payload: BeforeTool, updated: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the arguments of a call from Claude Code's form to this program's form."""
    name = _their_names(payload.tool)[0]
    if name not in _TOOLS.values():
        return dict(updated)
    ours = {their: our for our, their in _FIELDS.items()}
    given = {ours.get(key, key): value for key, value in updated.items() if key not in _EDIT_FIELDS}
    if name == "Bash" and isinstance(given.get("timeout"), int | float):
        given["timeout"] = given["timeout"] / 1_000
    if name == "Bash":
        given.pop("description", None)
    if name == "Edit" and "old_string" in updated:
        rows = objects(updated.get("edits")) or [dict(updated)]
        given["edits"] = [
            {
                "old": row.get("old_string", ""),
                "new": row.get("new_string", ""),
                "all": bool(row.get("replace_all")),
            }
            for row in rows
        ]
    return given


# -- answers -------------------------------------------------------------------------------------------------


def _decision(
    payload: BeforeTool, said: Mapping[str, Any], more: Mapping[str, Any], reason: str
) -> BeforeToolAnswer:
    updated = more.get("updatedInput")
    arguments = None
    if isinstance(updated, dict):
        arguments = _our_input(payload, updated)
    decided = as_text(more.get("permissionDecision")) or {"approve": "allow"}.get(
        str(said.get("decision"))
    )
    if decided not in {"allow", "deny", "ask"}:
        return BeforeToolAnswer(arguments=arguments)
    return BeforeToolAnswer(decision=decided, message=reason, arguments=arguments)


def _permission(decided: Mapping[str, Any]) -> PermissionQuestionAnswer:
    behaviour = as_text(decided.get("behavior"))
    if behaviour not in {"allow", "deny"}:
        return PermissionQuestionAnswer()
    return PermissionQuestionAnswer(
        decision=behaviour, message=as_text(decided.get("message")) or ""
    )
