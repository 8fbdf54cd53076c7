"""Commands for permissions: ``/plan``, ``/mode``, ``/permissions`` and ``/outside`` (no sandbox).

The controller also starts ``/plan`` after a run that proposed a plan. The agent's permission gate
applies the mode and the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.app.commands import Command
from tui_agent.app.frontend import Choice, EditedText, PermissionsPage
from tui_agent.errors import CommandError

if TYPE_CHECKING:
    from tui_agent.agent.agent import Agent
    from tui_agent.app.controller import Controller

FRESH = "fresh"
EDIT = "edit"
KEEP = "keep"
"""Answers to the question about a plan, besides the modes in which it can be carried out."""
_CARRY_OUT = ("build", "auto-edit", FRESH)
"""Names of the answers that carry out the plan. The first two are also names of modes."""

_ANSWERS = (
    ("build", "Continue in build: ask before files change"),
    ("auto-edit", "Continue in auto-edit: change files without asking"),
    (FRESH, "Auto-edit on a new branch with the plan alone: the model forgets the rest"),
    (EDIT, "Change the plan in $EDITOR first"),
    (KEEP, "Keep planning: say what to change"),
)


@Command(
    "plan",
    "carry out the plan, change it, or begin one",
    argument="[build|auto-edit|fresh] [NOTE]",
    place=155,
    is_replaceable=True,
    words="approve, accept, plan mode, clear context",
)
async def plan(controller: Controller, argument: str) -> None:
    """Ask whether to carry out the proposed plan; if there is none, switch to plan mode.

    In plan mode without a plan, only say that there is none. If the argument begins with ``build``,
    ``auto-edit`` or ``fresh``, carry out the plan without asking; the rest of the argument is a
    note that is sent to the model with the plan.
    """
    from tui_agent.agent.permissions import Mode
    from tui_agent.app.proposed_plan import proposed_plan

    agent = controller.idle_agent
    argument = argument.strip()
    text = proposed_plan(agent)
    if not text and agent.mode != Mode.PLAN:
        controller.begin("mode", Mode.PLAN.value)
    elif not text:
        controller.say("There is no plan yet. Describe what to plan.")
    elif argument.partition(" ")[0] in _CARRY_OUT:
        await _carry_out(controller, agent, text, argument)
    else:
        await decide(controller, text)


async def decide(controller: Controller, text: str) -> None:
    """Ask whether and in which mode to carry out a plan, and carry it out if the user agrees.

    ``text`` is the plan. The user can edit it first.
    """
    question = "Carry out this plan?"
    while True:
        asked = Choice(question, _ANSWERS, inline=True, noted=_CARRY_OUT)
        answer = await controller.ask(asked)
        if answer is None or answer == KEEP:
            return
        if answer != EDIT:
            await _carry_out(controller, controller.idle_agent, text, answer)
            return
        changed = await controller.ask(EditedText(text, "plan.md"))
        if changed is not None and changed.strip() and changed.strip() != text:
            text = changed.strip()
            question = "Carry out the plan as you changed it?"


async def _carry_out(controller: Controller, agent: Agent, text: str, answer: str) -> None:
    """Switch to the mode in ``answer``, and tell the model that the plan ``text`` is approved.

    The plan is attached to the message. ``answer`` is a name in `_CARRY_OUT`, with a note for the
    model after a space, if there is one. For `FRESH`, first begins a branch without the
    conversation so far, in auto-edit mode.
    """
    from tui_agent.agent.permissions import Mode
    from tui_agent.session.entries import PLAN_PATH, FilePart, TextPart

    mode, _, note = answer.partition(" ")
    if mode == FRESH:
        mode = Mode.AUTO_EDIT.value
        await _begin_branch(agent)
    agent.change_mode(mode)
    controller.frontend.refresh_facts()
    approval = agent.ports.prompt("plan_approved").strip()
    if note:
        approval = f"{approval}\n\n{note}"
    controller.outbox.submit(
        (TextPart(text=approval, typed=f"/plan {answer}"), FilePart(path=PLAN_PATH, text=text))
    )


async def _begin_branch(agent: Agent) -> None:
    """Move the leaf to before the first message.

    Files stay as they are, even if the move is undone later.
    """
    from tui_agent.session.entries import is_by_user

    path = agent.session.active_path()
    first = next(entry for entry in path if is_by_user(entry))
    agent.files.stayed.add(frozenset((agent.session.leaf, first.parent_id)))
    await agent.navigator.go(first.parent_id)


@Command(
    "mode",
    "permission mode: build, auto-edit, plan, yolo",
    key="shift+tab",
    argument="[NAME]",
    place=150,
    words="approve, accept edits, stop asking, ask less, read only",
)
async def mode(controller: Controller, argument: str) -> None:
    from tui_agent.agent.permissions import MODE_HELP, Mode, next_mode

    agent = controller.open_agent
    if argument and argument not in set(Mode):
        known = ", ".join(Mode)
        raise CommandError(f"There is no mode “{argument[:40]}”. The modes are {known}.")
    if argument:
        chosen = Mode(argument)
    else:
        chosen = next_mode(agent.mode)
    agent.change_mode(chosen.value)
    controller.frontend.refresh_facts()
    controller.say(
        f"{chosen.value}: {MODE_HELP[chosen]}.", "warning" if chosen is Mode.YOLO else "information"
    )


@Command(
    "permissions",
    "show what is allowed, asked and denied, and why",
    needs_screen=True,
    place=160,
    aliases=("approvals",),
    words="approve, always allow, rules, revoke",
)
async def permissions(controller: Controller, _argument: str) -> None:
    controller.show(PermissionsPage())


@Command(
    "outside",
    "run a command once without the sandbox: yours, or the model's last one",
    argument="[COMMAND]",
    place=155,
    words="sandbox off, disable, network, unsandboxed",
)
async def outside(controller: Controller, argument: str) -> None:
    """Run a command outside the sandbox, after asking the user.

    The command and its output are added to the session as a shell entry, so that the model sees
    them. Without an argument, runs the model's last command on the current session path.
    """
    agent = controller.open_agent
    command = argument.strip() or _last_command(agent)
    if not command:
        controller.say("The model has run no commands here. Use /outside COMMAND.")
        return
    question = Choice(
        "Run this once without the sandbox?",
        (("y", "yes, once"), ("n", "no")),
        command,
        at="n",
        why="The command can read and change whatever you can; the model sees its output.",
        inline=True,
    )
    if await controller.ask(question) == "y":
        controller.say("Running without the sandbox.")
        controller.soon(agent.run_shell(command, restorable=True))


def _last_command(agent: Agent) -> str:
    """Return the command of the newest bash call on the current path; "" if there is none."""
    from tui_agent.context.arguments import text_argument
    from tui_agent.session.entries import AssistantEntry
    from tui_agent.tools.registry import tool_traits

    for entry in reversed(agent.session.active_path()):
        if not isinstance(entry, AssistantEntry):
            continue
        for call in reversed(entry.tool_calls):
            if tool_traits()[call.tool].output == "log":
                return text_argument(call.arguments, "command")
    return ""
