"""Contains the demo model's script, and chooses the next answer from it.

The script keeps no state. The position in a scenario is found in the request, so that the script
continues after a resume, a retry, a branch or a denied permission. To make this possible, the ids
of the script's tool calls contain the names of scenario and step.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from json import dumps
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tui_agent.context.request import (
    ContentText,
    Message,
    ModelRequest,
    RequestToolCall,
    request_bytes,
)
from tui_agent.lazy import frozen
from tui_agent.session.entries import INTERRUPTED_OUTPUT

_REMINDER = re.compile(r"\s*<system-reminder>(.*)</system-reminder>\s*", re.DOTALL)
_SUMMARISE = "handover note of a coding session"
"""Text by which the demo model recognises a request to summarise the conversation."""
_JUDGE = "whether a coding agent has reached its goal"
"""Text by which the demo model recognises a request to judge whether a goal has been reached."""
_COMPARE = "attempts at the same task"
"""Text by which the demo model recognises a request to compare several agents' attempts at the same
task."""
_DENIED = re.compile(
    r"\b(denied|declined|rejected|did not allow|not allowed|not run)\b", re.IGNORECASE
)
_CALL_ID = re.compile(r"demo_([a-z]+)_([a-z]+)_\d+_[0-9a-f]+")
_DENIAL_LENGTH = 160
"""Number of characters at the start of a tool result that are searched for a denial. The rest isn't
searched, because a file's content may contain such words, too."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class DemoCall(_Data):
    """A tool call that the demo model makes in a step of its script."""

    tool: str
    arguments: dict[str, Any]


class Branch(_Data):
    """A condition on the results of a step's tool calls, and the step that follows if it is met."""

    result: Literal["denied"] | None = None
    """If this is ``denied``, one of the calls must have been denied. If it is None, there is no
    such condition."""
    contains: str | None = None
    """Text that the results of the step's tool calls must contain for the condition to be met."""
    lacks: str | None = None
    """Text that the results of the tool calls must not contain."""
    to: str
    """Name of the step that follows if the condition is met."""

    def fits(self, outputs: tuple[str, ...]) -> bool:
        together = "\n".join(outputs)
        return (
            (
                self.result is None
                or any(_DENIED.search(output[:_DENIAL_LENGTH]) for output in outputs)
            )
            and (self.contains is None or self.contains in together)
            and (self.lacks is None or self.lacks not in together)
        )


class DemoStep(_Data):
    """One answer of the demo model: its thinking, its text and its tool calls.

    The first of ``branches`` that fits the results names the next step; if none fits, ``next``
    does. If ``next`` is None, the following step of the scenario comes next.
    """

    name: str = Field(pattern="^[a-z]+$")
    think: str = ""
    say: str
    calls: tuple[DemoCall, ...] = ()
    branches: tuple[Branch, ...] = ()
    next: str | None = None


class Scenario(_Data):
    """A sequence of steps, chosen by a phrase in the user's message.

    ``help`` is the scenario's line in the menu, "" for none. ``takes`` are names of scenarios that
    are played in turn instead of this one if the same request comes again.
    """

    name: str = Field(pattern="^[a-z]+$")
    phrases: tuple[str, ...]
    help: str = ""
    takes: tuple[str, ...] = ()
    steps: tuple[DemoStep, ...] = Field(min_length=1)

    def step(self, name: str) -> DemoStep | None:
        return next((step for step in self.steps if step.name == name), None)

    def after(self, step: DemoStep, outputs: tuple[str, ...]) -> DemoStep:
        if any(output.startswith(INTERRUPTED_OUTPUT) for output in outputs):
            return step
        for branch in step.branches:
            if branch.fits(outputs):
                return self.step(branch.to) or step
        if step.next is not None:
            return self.step(step.next) or step
        return self.steps[self.steps.index(step) + 1]


class DemoScript(_Data):
    """Contains all answers of the demo model, and the files of its sample project."""

    greeting: str
    steered: str
    unavailable: str
    wrap_up: str
    overflow: str
    title: str
    summary: str
    compared: str
    judged: str
    resume: tuple[str, ...]
    scenarios: tuple[Scenario, ...]
    workspace: dict[str, str]

    def scenario(self, name: str) -> Scenario | None:
        return next((scenario for scenario in self.scenarios if scenario.name == name), None)


@lru_cache(maxsize=1)
def load_script() -> DemoScript:
    data = files("tui_agent.model").joinpath("demo_script.toml").read_text(encoding="utf-8")
    return DemoScript.model_validate(tomllib.loads(data))


@frozen
class DemoTurn:
    """The demo model's answer to one request."""

    text: str
    thinking: str = ""
    calls: tuple[RequestToolCall, ...] = ()


def next_turn(script: DemoScript, request: ModelRequest, take: int = 0) -> DemoTurn:
    """Return the demo model's answer to a request.

    ``take`` is the number of times that the same request was answered before.
    """
    if not request.tools:
        return DemoTurn(_small_answer(script, request.messages).strip())
    last = request.messages[-1]
    if last.role == "user" and _SUMMARISE in last.text:
        return DemoTurn(script.summary.strip())
    if request.tool_choice == "none":
        return DemoTurn(script.wrap_up.strip())
    scenario, step = _where(script, request.messages, take)
    menu = "\n".join(f"- {scenario.help}" for scenario in script.scenarios if scenario.help)
    text = _addressed(script, request.messages, step.say.strip()).replace("{menu}", menu)
    if not {call.tool for call in step.calls} <= {tool.name for tool in request.tools}:
        return DemoTurn(f"{text}\n\n{script.unavailable.strip()}", step.think)
    digest = sha256(request_bytes(request)).hexdigest()[:8]
    calls: list[RequestToolCall] = []
    for position, call in enumerate(step.calls):
        call_id = f"demo_{scenario.name}_{step.name}_{position}_{digest}"
        arguments = dumps(call.arguments, ensure_ascii=False)
        calls.append(RequestToolCall(call_id=call_id, tool=call.tool, arguments=arguments))
    return DemoTurn(text, step.think, tuple(calls))


def _small_answer(script: DemoScript, messages: tuple[Message, ...]) -> str:
    """Return the answer to one of the program's own requests, such as one for a title.

    These requests offer no tools.
    """
    wish = " ".join(
        message.text for message in messages if message.role in {"system", "user"}
    ).lower()
    if _JUDGE in wish:
        return script.judged
    if "title" in wish and "summar" not in wish:
        return script.title
    if _COMPARE in wish:
        return script.compared
    return script.summary


def _where(
    script: DemoScript, messages: tuple[Message, ...], take: int
) -> tuple[Scenario, DemoStep]:
    called = -1
    asked = -1
    prompt = Message("user")
    for at, message in enumerate(messages):
        if message.tool_calls and _CALL_ID.fullmatch(message.tool_calls[0].call_id):
            called = at
        if message.role == "user" and _is_prompt(messages, at):
            asked = at
            prompt = message
    unfinished = all(message.role != "assistant" for message in messages[called + 1 :])
    wants_more = unfinished and any(_says(prompt.text, phrase) for phrase in script.resume)
    if called >= 0 and (called > asked or wants_more):
        going_on = _continued(script, messages, called)
        if going_on is not None:
            return going_on
    scenario = _chosen(script, prompt)
    takes = [scenario, *filter(None, map(script.scenario, scenario.takes))]
    scenario = takes[take % len(takes)]
    return scenario, scenario.steps[0]


def _continued(
    script: DemoScript, messages: tuple[Message, ...], called: int
) -> tuple[Scenario, DemoStep] | None:
    found = _CALL_ID.fullmatch(messages[called].tool_calls[0].call_id)
    if found:
        scenario = script.scenario(found[1])
    else:
        scenario = None
    if scenario and found:
        step = scenario.step(found[2])
    else:
        step = None
    if scenario is None or step is None:
        return None
    ids = {call.call_id for call in messages[called].tool_calls}
    outputs = tuple(message.text for message in messages[called + 1 :] if message.call_id in ids)
    return scenario, scenario.after(step, outputs)


def _chosen(script: DemoScript, prompt: Message) -> Scenario:
    """Return the scenario whose phrase is in the user's message; the last scenario if none fits.

    The last text, which the user typed, is searched before the attachments.
    """
    typed = next(
        (part.text for part in reversed(prompt.content) if isinstance(part, ContentText)), ""
    )
    for text in (_unwrapped(typed), prompt.text):
        for scenario in script.scenarios:
            if any(_says(text, phrase) for phrase in scenario.phrases):
                return scenario
    return script.scenarios[-1]


def _is_prompt(messages: tuple[Message, ...], index: int) -> bool:
    if _REMINDER.match(messages[index].text) is None:
        return True
    before = None
    if index:
        before = messages[index - 1]
    return before is not None and before.role == "assistant" and not before.tool_calls


def _addressed(script: DemoScript, messages: tuple[Message, ...], text: str) -> str:
    """Return the answer's text, with a greeting before it in the first answer of a session.

    In the answer to a message sent during the run, an acknowledgement comes first instead.
    """
    if all(message.role != "assistant" for message in messages):
        return f"{script.greeting.strip()}\n\n{text}"
    last = messages[-1]
    if (
        last.role == "user"
        and _REMINDER.fullmatch(last.text)
        and not _is_prompt(messages, len(messages) - 1)
    ):
        remark = " ".join(_unwrapped(last.text).split())
        return f"{script.steered.strip().replace('{message}', remark[:80])}\n\n{text}"
    return text


def _unwrapped(text: str) -> str:
    """Return a steering message without the text that the program added to it.

    Other texts stay unchanged. The program adds the reminder tags, and the first and the last
    paragraph.
    """
    found = _REMINDER.fullmatch(text)
    if found is None:
        return text
    paragraphs = found[1].strip().split("\n\n")
    return "\n\n".join(paragraphs[1:-1] or paragraphs)


def _says(text: str, phrase: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text.lower()) is not None


def pieces(text: str, size: int = 12) -> Iterator[str]:
    """Yield a text in pieces of a few words, each of at least ``size`` characters but the last."""
    piece = ""
    for word in re.findall(rf"\s*\S{{1,{size * 2}}}|\s+$", text):
        piece += word
        if len(piece) >= size:
            yield piece
            piece = ""
    if piece:
        yield piece
