"""What goes wrong on an ordinary day, the same for every agent: a kill, a full window, a server that misbehaves."""

import json
import random
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contenders import ANSWER, ANSWER_SECONDS, Contender, Measured, family, kill
from benchmarks.program import WORDS
from tests.support.model_script import Call, Fault, Recorded, Turn, status

GIVE_UP_SECONDS = 60
"""How long a run may take to come to terms with a fault."""
MOST_CALLS = 40
"""Identical calls after which the model itself ends the run."""
BROKEN_OFF = "brokenoff"
STREAMED_WORDS = 400
STREAMED_SECONDS = 2.0
"""How long an answer streams until the program is killed."""
REMINDER_END = "</system-reminder>"
FILLING = "filling"
FILLING_WORDS = 20_000

Script = Callable[[Recorded], Turn]


def echo(request: Recorded) -> Turn:
    """Repeat what was said; some put reminders of their own before the user's words."""
    return Turn(text=f"{ANSWER}: {request.prompt.split(REMINDER_END)[-1].strip()}")


def _killed(who: Contender) -> Measured:
    """Kill the program in the middle of its second answer, open the session again and go on."""
    words = random.Random(2).choices(WORDS, k=STREAMED_WORDS)
    streamed = " ".join(f"{word}{number}" for number, word in enumerate(words))

    def script(request: Recorded) -> Turn:
        if BROKEN_OFF in request.prompt:
            return Turn(text=streamed, delay=STREAMED_SECONDS * 2 / STREAMED_WORDS)
        return echo(request)

    who.server.play_function(script)
    with who.screen() as screen:
        screen.settle(1.0)
        screen.turn("remembered")
        screen.write(BROKEN_OFF)
        screen.terminal.press("enter")
        screen.terminal.read_for(STREAMED_SECONDS)
        kill(family(screen.pid))
    with who.screen(*who.again) as screen:
        screen.settle(1.0)
        taken = screen.turn("goingon")
    body = who.server.calls[-1].body.decode()
    kept = sum(word in body for word in streamed.split())
    is_kept = "whole" if "remembered" in body else "LOST"
    note = f"the turn before: {is_kept}; of the answer that broke off: {kept} words"
    yield "after kill -9: Enter → first token", taken * 1000, "ms", note


def _overflow(who: Contender) -> Measured:
    """Refuse the third turn once, after two long answers, because the window is full."""
    refused: list[int] = []

    def script(request: Recorded) -> Turn:
        if FILLING in request.prompt:
            words = random.Random(len(request.body)).choices(WORDS, k=FILLING_WORDS)
            return Turn(text=f"{' '.join(words)}\n\n{echo(request).text}", chunks=200)
        if "thirdturn" in request.prompt and not refused:
            refused.append(len(who.server.calls))
            return status(400, _too_long(request), code="context_length_exceeded")
        return echo(request)

    who.server.play_function(script)
    with who.screen() as screen:
        screen.settle(1.0)
        for number in range(2):
            screen.turn(f"{FILLING}{number}")
        try:
            taken = screen.turn("thirdturn")
            note = f"{len(who.server.calls) - refused[0]} requests after the refusal"
        except AssertionError:
            taken = float(ANSWER_SECONDS)
            note = f"no answer; the screen says: {_last_words(screen.terminal.text)}"
    yield "window full at turn 3: until the answer", taken, "s", note


def _too_long(request: Recorded) -> str:
    tokens = len(request.body) // 5
    limit = tokens - 1_000
    return (
        f"prompt is too long: {tokens} tokens > {limit} maximum. "
        f"This model's maximum context length is {limit} tokens."
    )


def _identical_calls(who: Contender) -> Measured:
    """Have the model ask for the same call again and again."""
    (who.project / "notes.txt").write_text("one line\n", encoding="utf-8")
    asked: list[Recorded] = []

    def script(request: Recorded) -> Turn:
        call = _reading_call(request, who.project / "notes.txt")
        if call is None:
            return echo(request)
        asked.append(request)
        if len(asked) > MOST_CALLS:
            return Turn(text="I stop myself.")
        return Turn(tool_calls=(call,))

    who.server.play_function(script)
    _seconds, said = _run(who, "read the notes")
    is_stopped = len(asked) <= MOST_CALLS
    note = f"it says: {_last_words(said)}" if is_stopped else "never stopped"
    yield "identical calls until it stops", float(min(len(asked), MOST_CALLS)), "", note


def _reading_call(request: Recorded, file: Path) -> Call | None:
    """Return a call that reads a file with a tool that the request offers."""
    for tool in request.json.get("tools") or ():
        offered = tool.get("function", tool)
        name = str(offered.get("name", ""))
        schema = offered.get("parameters") or offered.get("input_schema") or {}
        arguments = _reading_arguments(schema.get("properties", {}), file)
        if name.lower() in {"read", "exec_command", "shell", "shell_command"} and arguments:
            return Call(name, json.dumps(arguments))
    return None


def _reading_arguments(fields: dict[str, Any], file: Path) -> dict[str, Any]:
    for name in ("path", "file_path"):
        if name in fields:
            return {name: str(file)}
    for name in ("cmd", "command"):
        if name in fields and fields[name].get("type") == "array":
            return {name: ["cat", str(file)]}
        if name in fields:
            return {name: f"cat {file}"}
    return {}


def _fault(name: str, make: Callable[[], Turn], times: int, who: Contender) -> Measured:
    """Have the server fail some times, then answer."""
    failed: list[Recorded] = []

    def script(request: Recorded) -> Turn:
        if "hello" in request.prompt and len(failed) < times:
            failed.append(request)
            return make()
        return echo(request)

    who.server.play_function(script)
    seconds, said = _run(who, "hello")
    note = "answered"
    if f"{ANSWER}: hello" not in said:
        note = f"NO ANSWER: {_last_words(said)}"
    yield name, seconds, "s", note


def _run(who: Contender, prompt: str) -> tuple[float, str]:
    """Run once without a screen; return the seconds and what was printed."""
    begun = time.perf_counter()
    process = who.start(prompt)
    try:
        said = process.communicate(timeout=GIVE_UP_SECONDS)[0]
    except subprocess.TimeoutExpired:
        kill(family(process.pid))
        said = f"{process.communicate()[0]} [still at it]"
    return time.perf_counter() - begun, said


def _last_words(text: str) -> str:
    """Return the end of a text, on one line."""
    return " ".join(text.split())[-90:]


def _cut() -> Turn:
    return Turn(text="The first half of an answer that breaks off", fault=Fault("cut", after=5))


CASES: tuple[Callable[[Contender], Measured], ...] = (
    _killed,
    _overflow,
    _identical_calls,
    partial(_fault, "500 twice", partial(status, 500, "overloaded"), 2),
    partial(_fault, "429 once, retry after 1 s", partial(status, 429, "slow", retry_after="1"), 1),
    partial(_fault, "an answer cut once", _cut, 1),
)
