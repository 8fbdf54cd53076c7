"""Decides whether a tool call may run, by rules and mode or by asking hooks and then the user.

``permissions`` defines how rules decide; `Gate` applies them to one session and keeps the user's
answers as rules. Subagents and race runners share its list of the session's rules. Rules for the
project are also saved in the user's settings, through ``ports.keep_here``. The gate also decides
what the sandbox shows a call and lets it change. ``calls.stages`` carries out the decision.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.agent.channel import EventChannel, Questions
from tui_agent.agent.events import Decision, PermissionRequest
from tui_agent.agent.hooks.payloads import Notification
from tui_agent.agent.permissions import (
    DEFAULT_RULES,
    PLAN_REFUSAL,
    PLAN_RULE,
    Action,
    Mode,
    Rule,
    also_relative,
    decide,
    decide_in_mode,
    edited,
    files_under_rules,
    in_words,
    is_named,
    offered_rules,
    reasons_for,
    refusal_of_tool,
    view_in_mode,
)
from tui_agent.agent.ports import AgentPorts
from tui_agent.errors import ToolError
from tui_agent.files.ignore import IgnoreRules
from tui_agent.files.sensitive import has_steering_part, is_sensitive
from tui_agent.lazy import frozen
from tui_agent.path_checks import is_among, is_file
from tui_agent.permission import (
    Change,
    Permission,
    PermissionNeed,
    refused_by_hook,
    rule_path,
    with_note,
)
from tui_agent.sandbox import Sandbox
from tui_agent.sandbox.project_scan import is_output_name
from tui_agent.sandbox.view import Grants, View
from tui_agent.tools.base import Tool, ToolContext, ToolInput

TOO_COMPLICATED = (
    "Not run: the user has rules about reading certain files, and this command is too long or complicated to find all "
    "files that it names. Split it into several commands."
)
"""Text that the model receives for a command in which files under a rule may not have been found."""

_HOOK_RULE = Rule("*", "*", Action.ASK)

_PRIVATE = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/dev", "/proc")))  # noqa: S108 - commands have their own
"""Directories that are replaced by private ones for a command in the sandbox."""


@frozen
class HookVerdict:
    """What the hooks decided about a tool call."""

    allows: bool = False
    """Whether the tool call may run without asking the user."""
    asks: str = ""
    """Why a hook demands that the user is asked in any case; "" if no hook does."""


@frozen
class _Place:
    """The former place of a removed rule: its index in the session's or the settings' rules."""

    index: int
    of_session: bool


class Gate:
    """Decides whether a session's tool calls may run, and keeps the rules the user made in it.

    A call has needs, that is, the permissions that it requires. Rules, hooks or the user decide
    about each.
    """

    def __init__(
        self,
        ports: AgentPorts,
        channel: EventChannel,
        questions: Questions,
        mode: Callable[[], str],
        said: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Create the gate that decides whether the session's tool calls may run.

        ``mode`` returns the current mode, and ``said`` returns the user's messages on the path.
        """
        self._ports = ports
        self._channel = channel
        self._questions = questions
        self._mode = mode
        self._said = said
        # Parallel calls ask one after the other, because one answer may settle the next question.
        self._one_at_a_time = asyncio.Lock()
        self.session_rules: list[Rule] = []
        """The rules that the user made by allowing a call for the session or the project."""
        self._removed: dict[Rule, _Place] = {}

    def rules(self) -> tuple[Rule, ...]:
        """Return all rules that apply: built-in rules, then those of settings, agent and session.

        Of rules with the same source, a later one overrides an earlier one.
        """
        chosen = self._ports.knowledge.primary(self._mode())
        of_agent = () if chosen is None else chosen.rules
        return (*DEFAULT_RULES, *self._ports.rules, *of_agent, *self.session_rules)

    def is_fixed(self, rule: Rule) -> str | None:
        """Return a sentence that says why a rule can't be removed; None if it can."""
        if rule.source == "default":
            return "This rule is built in; a rule of your own can override it."
        if rule.source == "other":
            return f"This rule is in {rule.origin}: change it there."
        if rule not in self.session_rules and rule not in self._ports.rules:
            return (
                f"This rule belongs to the agent “{self._mode()}”: change it in the agent's file."
            )
        return None

    def remove(self, rule: Rule) -> bool:
        """Remove a rule of the session or the settings until the program ends.

        Return False, and remove nothing, if the rule can't be removed (see `is_fixed`).
        """
        if self.is_fixed(rule) is not None:
            return False
        # Remove the rule from both lists: after the settings were reread, a rule that this session
        # saved for the project is among the settings' rules, too.
        if rule in self.session_rules:
            self._removed[rule] = _Place(self.session_rules.index(rule), of_session=True)
            self.session_rules.remove(rule)
        else:
            self._removed[rule] = _Place(self._ports.rules.index(rule), of_session=False)
        self._ports.rules = tuple(known for known in self._ports.rules if known != rule)
        return True

    def restore(self, rule: Rule) -> None:
        """Put a removed rule back at its former position, because the order of rules matters.

        Does nothing for a rule that was not removed.
        """
        place = self._removed.pop(rule, None)
        if place is None or rule in self.rules():
            return
        if place.of_session:
            self.session_rules.insert(place.index, rule)
        else:
            before = self._ports.rules[: place.index]
            self._ports.rules = (*before, rule, *self._ports.rules[place.index :])

    def remove_again(self) -> None:
        """Remove the rules that the user removed earlier and that rereading the settings restored.

        Rules from the user's own config.toml are not removed again; they apply as written there.
        """
        gone = {rule for rule in self._removed if not rule.is_in_users_file}
        self._ports.rules = tuple(rule for rule in self._ports.rules if rule not in gone)

    def decide(self, need: PermissionNeed, tool: str = "") -> Rule:
        """Return the rule that decides about a needed permission in the current mode.

        ``tool`` is the name of the call's tool. If only a built-in rule would ask, web pages whose
        address the user wrote are allowed, and so are redirections of commands if a rule allows all
        commands.
        """
        rule = decide_in_mode(need, self._rules_to_apply(), self._mode_in_force(), tool)
        asks = rule.action is Action.ASK and rule.source == "default"
        if asks and need.permission is Permission.EDIT and need.sandboxed:
            return self._decide_all_commands(need.detail, tool) or rule
        if asks and need.permission is Permission.WEBFETCH and is_named(need.pattern, self._said()):
            return Rule("webfetch", need.pattern, Action.ALLOW, syntax="literal")
        return rule

    def _decide_all_commands(self, command: str, tool: str) -> Rule | None:
        """Return the rule of the user that allows all commands, whatever they do; None if none."""
        anything = PermissionNeed(Permission.BASH, command, unclear="it may be any command")
        rule = decide(anything, self._rules_to_apply(), tool)
        return rule if _is_allowed_by_user(rule) else None

    def _rules_to_apply(self) -> tuple[Rule, ...]:
        """Return the rules in force, with absolute paths in the project also as relative paths.

        The permissions that a call needs name the project's files by relative paths.
        """
        project = self._ports.stands_for or self._ports.project
        return tuple(also_relative(self.rules(), project))

    def _mode_in_force(self) -> str:
        """Return the permission mode that applies to the session's calls.

        In the copy of the project that a race's runner works in, modes other than plan and yolo are
        replaced by auto-edit.
        """
        mode = self._mode()
        in_copy = self._ports.stands_for is not None and mode not in {Mode.PLAN, Mode.YOLO}
        return Mode.AUTO_EDIT if in_copy else mode

    def view(self) -> View:
        """Return the sandbox view that applies to the model's commands now.

        A view says what commands can see, change and reach.
        """
        return view_in_mode(self._rules_to_apply(), self._mode_in_force())

    def opened_by(self, needs: Sequence[PermissionNeed], project: Path, tool: str) -> Grants:
        """Return the sandbox grants for a call whose needed permissions are all allowed.

        ``tool`` is the tool's name. In plan mode the grants allow no changes.
        """
        grants = Grants()
        for need in needs:
            grants |= grants_of(need, project)
        changing = [need for need in needs if need.may_change_files]
        if changing and all(self._may_change(need, tool) for need in changing):
            grants |= Grants(sources=True)
        if self._mode() == Mode.PLAN:
            return grants.without_changes
        return grants

    def _may_change(self, need: PermissionNeed, tool: str) -> bool:
        """Return True if a command, or a redirection of one, may change files of the project.

        A rule that allows a command by name also allows its changes, but not those of the line's
        other commands.
        """
        if need.permission is not Permission.EDIT:
            return _is_allowed_by_user(self.decide(need, tool))
        if self.decide(need, tool).action is Action.ASK:
            # The user was asked about this file before the command ran.
            return True
        return _is_allowed_by_user(self.decide(replace(need, changes=("sources",)), tool))

    async def request_grants(
        self,
        call_id: str,
        tool: Tool[Any],
        arguments: ToolInput,
        wanted: Grants,
        context: ToolContext,
        changed: Sequence[str] = (),
    ) -> Grants | str:
        """Ask the user for the sandbox grants that a failed command lacked, unless rules decide.

        ``changed`` are the files of the project that the command changed and that were not kept.
        Returns ``wanted`` if they were allowed, otherwise a text for the model that says why not.
        """
        if self._mode() == Mode.PLAN and wanted.beyond(wanted.without_changes):
            return "The session is in plan mode, in which nothing is changed."

        def needs_now() -> tuple[PermissionNeed, ...]:
            parts = needs_of(tool, arguments, context)
            project = Path(os.path.realpath(context.project))
            return tuple(_needs_of_grants(wanted, tool.command(arguments), parts, project))

        needs = await asyncio.to_thread(needs_now)
        # The other needs name files of their own.
        named = {need.pattern for need in needs if not need.may_change_files}
        changed = [name for name in changed if name not in named]
        refusal = await self.refusal(
            call_id,
            tool,
            arguments,
            needs,
            by_hook=HookVerdict(),
            lost=changed,
        )
        return wanted if refusal is None else refusal

    async def refusal(
        self,
        call_id: str,
        tool: Tool[Any],
        arguments: ToolInput,
        needs: Sequence[PermissionNeed],
        *,
        by_hook: HookVerdict,
        lost: Sequence[str] | None = None,
    ) -> str | None:
        """Return None if the call may run, otherwise the reason as a text for the model.

        Asks the user if necessary. If a hook allows the call, the user is not asked, but a rule
        that denies the call still applies. If the call has already run, and failed because the
        permissions ``needs`` were not granted, ``lost`` are the files whose changes were not kept.
        """
        if rule := refusal_of_tool(tool.name, self.rules()):
            return _denied(rule)
        decided = self._asked(tool.name, needs)
        if isinstance(decided, str):
            return decided
        if not by_hook.asks and (not decided or by_hook.allows):
            return None
        async with self._one_at_a_time:
            asked = self._asked(tool.name, needs)
            if isinstance(asked, str):
                return asked
            if by_hook.asks:
                asked.append((_hook_need(tool, arguments, by_hook.asks), _HOOK_RULE))
            if asked:
                return await self._ask(call_id, tool, arguments, asked, lost)
            return None

    def _asked(
        self, tool: str, needs: Sequence[PermissionNeed]
    ) -> list[tuple[PermissionNeed, Rule]] | str:
        """Return the permissions that the user must be asked for, each with the rule that decides.

        If a rule denies one of the needed permissions, returns a text for the model instead.
        """
        asked = []
        for need in needs:
            rule = self.decide(need, tool)
            if rule == PLAN_RULE:
                return PLAN_REFUSAL
            if rule.action is Action.DENY:
                return _denied(rule)
            if rule.action is Action.ASK:
                asked.append((need, rule))
        return asked

    async def _ask(
        self,
        call_id: str,
        tool: Tool[Any],
        arguments: ToolInput,
        asked: list[tuple[PermissionNeed, Rule]],
        lost: Sequence[str] | None,
    ) -> str | None:
        hooks = self._ports.hooks
        reason = reasons_for(asked, lost or ())
        title = tool.title(arguments)
        said = await hooks.permission(call_id, tool, arguments, reason)
        if said.decision == "allow":
            return None
        if said.decision == "deny":
            return refused_by_hook(said.message, said.hook)
        words = f"{tool.name} {title}: {reason}"
        hooks.tell(Notification(about=hooks.about, kind="permission", message=words))
        offered = offered_rules(asked)
        question = PermissionRequest(
            call_id=call_id,
            tool=tool.name,
            title=title,
            needs=tuple(need for need, _rule in asked),
            reason=reason,
            rules=tuple(str(rule) for rule in offered),
            command=tool.command(arguments),
            again=lost is not None,
        )
        answer = await self._questions.ask(question)
        if answer.decision in {Decision.DENY, Decision.STOP}:
            # Tell the model the reason, so that it can find another way or ask for permission.
            return with_note(f"The user did not allow this call: {reason}.", answer.note)
        rules = edited(offered, answer.patterns)
        if answer.decision in {Decision.SESSION, Decision.PROJECT}:
            self._keep(rules, for_project=answer.decision is Decision.PROJECT)
        return None

    def _keep(self, rules: Sequence[Rule], *, for_project: bool) -> None:
        """Add the rules of the user's answer to the session.

        With ``for_project``, the rules are also saved in the user's settings for the project.
        """
        problem = None
        if for_project:
            rules = tuple(replace(rule, source="here") for rule in rules)
        for rule in rules:
            if for_project and problem is None:
                problem = self._ports.keep_here(rule)
            if rule not in self.session_rules:
                self.session_rules.append(rule)
        is_kept = for_project and problem is None
        how_long = "in this project" if is_kept else "until the program ends"
        words = " · ".join([in_words(str(rule)) for rule in rules])
        self._channel.say(f"Allowed {how_long} without asking: {words}.", action="permissions")
        if problem is not None:
            self._channel.say(f"Can't save the rule for later sessions: {problem}", "warning")


def _is_allowed_by_user(rule: Rule) -> bool:
    """Return True if a rule allows something and isn't built in."""
    return rule.action is Action.ALLOW and rule.source != "default"


def needs_of(
    tool: Tool[Any], arguments: ToolInput, context: ToolContext
) -> tuple[PermissionNeed, ...]:
    """Return the permissions that a call needs; a command line needs those of all its commands.

    Of a command in the sandbox, only the needs that `needs_inside` yields are returned. Reading a
    file that a command line names is a need, too, if a rule asks about it or denies it. Reads the
    disk; call it in a thread.

    Raises:
        ToolError: the call can't work, so there is nothing to ask.
    """
    found: list[PermissionNeed] = []
    try:
        for need in tool.needs(arguments, context):
            if need.permission is Permission.BASH and need.detail_kind == "command":
                from tui_agent.shell.needs import command_needs

                parts = command_needs(need.pattern, context.cwd, context.project)
                sandbox = context.sandbox if need.sandboxed else None
                if sandbox is not None:
                    inside = tuple(needs_inside(parts, sandbox, context.project))
                    parts = tuple(_with_shared_changes(inside, context.project))
                found += parts
                found += _files_needed(need.pattern, context, sandboxed=sandbox is not None)
            else:
                found.append(need)
    except OSError as error:
        # Refuse the call, because a link that can't be read, such as /proc/1/root, could lead to
        # any file.
        raise ToolError(
            f"Can't read {error.filename} ({error.strerror}); the call was not run."
        ) from error
    return tuple(found)


def _files_needed(
    command: str, context: ToolContext, *, sandboxed: bool
) -> tuple[PermissionNeed, ...]:
    """Return the needs for the files that a command names and that rules deny or ask about.

    Raises:
        ToolError: some names may not have been found, and no sandbox hides the files.
    """
    if context.view.reading is None:
        return ()
    files = files_under_rules(command, context.view.reading, context.project, context.cwd)
    if not files.is_complete and not sandboxed:
        raise ToolError(TOO_COMPLICATED)
    return files.needs


def _hook_need(tool: Tool[Any], arguments: ToolInput, reason: str) -> PermissionNeed:
    """Return a needed permission that makes the gate ask the user because a hook demands it.

    No permission rule can allow it.
    """
    return PermissionNeed(
        Permission.TOOL, tool.name, tool.command(arguments), unclear=f"a hook asks: {reason}"
    )


def _denied(rule: Rule) -> str:
    return f"Denied by the rule “{rule}” ({rule.source}). Don't work around it; find another way."


def needs_inside(
    needs: Iterable[PermissionNeed], sandbox: Sandbox, project: Path
) -> Iterator[PermissionNeed]:
    """Yield the permissions that a command needs even in the sandbox: to run and use hidden paths.

    A hidden path is named by the command, but the sandbox hides it or discards what is written
    there. The command might not even fail, so the user is asked before it runs. Writing a file
    outside the project also needs permission for its directory, because rules about edits concern
    the project's files.
    """
    project = Path(os.path.realpath(project))
    needs = tuple(needs)
    written = _written_outside(needs, sandbox, project)
    for need in needs:
        match need.permission:
            case Permission.BASH:
                yield replace(need, sandboxed=True)
            case Permission.EXTERNAL_DIRECTORY:
                if need.detail in written or _is_missed(Path(need.detail), sandbox, project):
                    yield need
            case Permission.READ:
                path = project / need.pattern
                if is_file(path) and sandbox.hides(path, project):
                    yield need
            case Permission.EDIT if need.pattern.startswith("/"):
                if need.pattern in written:
                    yield need
            case Permission.EDIT:
                path = Path(need.pattern)
                if has_steering_part(path) or is_sensitive(project / path):
                    yield need
                elif not _is_ignored(project / path, project):
                    yield replace(need, sandboxed=True)
            case _:
                yield need


def _with_shared_changes(
    needs: Iterable[PermissionNeed], project: Path
) -> Iterator[PermissionNeed]:
    """Yield the needs of a line in the sandbox, with the changes that all its commands may make.

    The sandbox's grants apply to the whole line: if ``git commit`` may change the repository, the
    line's other commands may, too. So the user must have allowed that for each of them.
    """
    needs = tuple(needs)
    shared: list[Change] = []
    for need in needs:
        shared += need.changes
        if grants_of(need, project).sources:
            shared.append("sources")
    for need in needs:
        if need.may_change_files:
            yield _changing(need, shared)
        else:
            yield need


def _changing(need: PermissionNeed, changes: Iterable[Change]) -> PermissionNeed:
    """Return a need of a command, or of a redirection of one, with the changes that it may make.

    A redirection writes to a file of the project, so it doesn't change the repository.
    """
    changes = tuple(dict.fromkeys(changes))
    if need.permission is Permission.EDIT:
        changes = tuple(change for change in changes if change == "sources")
    return replace(need, changes=changes)


def _is_ignored(path: Path, project: Path) -> bool:
    """Return True for a file that git ignores and that is new or in a directory of build output.

    Commands may write such a file in every mode but plan.
    """
    rules = IgnoreRules.above(project).entering(project)
    directory = project
    for part in path.relative_to(project).parts[:-1]:
        directory = directory / part
        if rules.ignored(str(directory), directory=True):
            return is_output_name(part, directory=True) or not os.path.lexists(path)
        rules = rules.entering(directory)
    return rules.ignored(str(path), directory=False) and not os.path.lexists(path)


def _written_outside(
    needs: Iterable[PermissionNeed], sandbox: Sandbox, project: Path
) -> frozenset[str]:
    """Return the files outside the project that a command writes, but the sandbox discards."""
    found = set[str]()
    for need in needs:
        is_outside = need.permission is Permission.EDIT and need.pattern.startswith("/")
        if is_outside and _is_lost(Path(need.pattern), sandbox, project):
            found.add(need.pattern)
    return frozenset(found)


def _is_lost(path: Path, sandbox: Sandbox, project: Path) -> bool:
    """Return True if a file is in a directory whose changes are discarded when a command ends.

    In the sandbox the directories above the project are empty, and nothing written there is kept.
    """
    if project.is_relative_to(path.parent):
        return not sandbox.shows(path, project)
    return _is_missed(path.parent, sandbox, project)


def _is_missed(path: Path, sandbox: Sandbox, project: Path) -> bool:
    """Return True if a path outside the project exists but the sandbox doesn't show it."""
    own = is_among(path, _PRIVATE) or project.is_relative_to(path)
    return not own and os.path.lexists(path) and not sandbox.shows(path, project)


def grants_of(need: PermissionNeed, project: Path) -> Grants:
    """Return the sandbox grants that an allowed permission gives; most permissions give none."""
    real = Path(os.path.realpath(project / need.pattern))
    one = frozenset({real})
    grants = Grants()
    match need.permission:
        case Permission.NETWORK:
            grants = Grants(hosts=frozenset({need.pattern}))
        case Permission.BASH | Permission.TOOL:
            grants = Grants(
                sources="sources" in need.changes, repository="repository" in need.changes
            )
        case Permission.READ if need.secret or is_sensitive(real):
            grants = Grants(secrets=one)
        case Permission.EXTERNAL_DIRECTORY:
            # The rule allows the whole directory, but only the requested path is opened.
            grants = Grants(read=frozenset({Path(os.path.realpath(need.detail or need.pattern))}))
        case Permission.EDIT if need.pattern.startswith("/") or "data" in need.changes:
            grants = Grants(write=one)
        case Permission.EDIT if has_steering_part(Path(need.pattern)):
            grants = Grants(protected=one)
        case Permission.EDIT if is_sensitive(real):
            grants = Grants(secrets=one, sources=True)
    return grants


def _needs_of_grants(
    wanted: Grants, command: str, parts: Sequence[PermissionNeed], project: Path
) -> Iterator[PermissionNeed]:
    """Yield the permissions needed before a command is given the sandbox grants ``wanted``.

    ``parts`` are the permissions that the command line needs to run.
    """
    commands = [need for need in parts if need.permission.is_confinable]
    changes: list[Change] = []
    if wanted.sources:
        changes.append("sources")
    if wanted.repository:
        changes.append("repository")
    if changes:
        for need in [need for need in parts if need.may_change_files] or commands:
            yield replace(_changing(need, changes), sandboxed=True, harmless=False)
    for path in sorted(wanted.protected):
        yield PermissionNeed(Permission.EDIT, rule_path(path, project), detail=command)
    for path in sorted(wanted.secrets):
        yield PermissionNeed(
            Permission.READ, rule_path(path, project), detail=command, secret=not is_sensitive(path)
        )
    for path in sorted(wanted.write):
        if path.is_relative_to(project):
            yield PermissionNeed(
                Permission.EDIT, rule_path(path, project), detail=command, changes=("data",)
            )
        else:
            yield PermissionNeed(Permission.EDIT, str(path), detail=command)
    if apart := sorted(wanted.read | {p for p in wanted.write if not p.is_relative_to(project)}):
        from tui_agent.shell.needs import outside_need

        yield from dict.fromkeys(map(outside_need, apart))
    for host in sorted(wanted.hosts):
        yield network_need(host, command, commands)


def network_need(host: str, command: str, needs: Iterable[PermissionNeed]) -> PermissionNeed:
    """Return the permission that a command line needs to reach a host.

    ``needs`` are the permissions that the line needs to run. A rule with the text of a command
    allows the host only if it matches all commands of the line that may reach it.
    """
    reaching: list[str] = []
    for need in needs:
        if need.permission.is_confinable and need.may_change_files:
            # What isn't clear is matched only by the pattern "*".
            reaching.append("" if need.unclear else need.pattern)
    return PermissionNeed(
        Permission.NETWORK, host, detail=command, aliases=(command,), commands=tuple(reaching)
    )
