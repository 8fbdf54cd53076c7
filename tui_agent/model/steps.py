"""Requests to models too small for tools, and the steps in their answers. Pure.

A model under a billion parameters copies a call that it sees instead of making one, and a schema
as its arguments. It is shown neither: the files that it read stand before the task, and the last
sentence says what it may answer. It asks for a file by name, and writes a whole one in a fence,
which such models do by themselves.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from textwrap import dedent

from tui_agent.context.arguments import parse_object
from tui_agent.context.request import (
    ContentText,
    Message,
    ModelRequest,
    RequestToolCall,
    calls_in,
)
from tui_agent.lazy import LazyPattern
from tui_agent.model.request_pictures import images_in
from tui_agent.model.text_calls import TextCall, TextCalls

READ = "read"
WRITE = "write"
_NUMBERED = LazyPattern(r"1\t.*(?:\n\d+\t.*)*")
"""A whole file as ``read`` shows it; for a part, or other than the disk's content, a line says
so."""
_NUMBER = LazyPattern(r"^\d+\t", re.MULTILINE)
_FENCE = LazyPattern(r"^([ \t]*)```[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_ASKS = LazyPattern(r"^\W{0,3}READ\b:?[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_NAME = LazyPattern(r"[\w./-]*\w\.\w+")
_WORD = LazyPattern(r"[^\W\d_]{3,}")
_QUOTES = "`'\"*"
_OUTER = LazyPattern(r"^[^\W\d_].*$", re.MULTILINE)
"""A line that begins a part of a file: not indented, and neither a bracket nor a comment."""


def in_steps(request: ModelRequest, prompt: Callable[[str], str]) -> ModelRequest:
    """Return a request without tools: what was said before, then files, results, the task and what may be answered.

    ``prompt`` returns a text of ``prompts/`` by its name.
    """
    messages = request.messages
    asked = max((at for at, one in enumerate(messages) if one.role == "user"), default=None)
    if asked is None or not messages[asked].origin:
        return request
    task = messages[asked]
    files = files_seen(messages)
    shown = [f"{path}:\n```\n{text.rstrip()}\n```" for path, text in files.items()]
    words = task.text.strip()
    if request.tool_choice == "auto":
        words = f"{words} {prompt(_next_words(messages, asked)).strip()}"
    text = "\n\n".join([*shown, *_results(messages, asked), words])
    images = images_in(task)
    before = [one for one in messages[:asked] if one.role != "tool" and not one.tool_calls]
    last = replace(task, content=(ContentText(text), *images))
    return replace(request, messages=(*before, last), tool_choice="auto")


def files_seen(messages: Sequence[Message]) -> dict[str, str]:
    """Return the files shown in a conversation, by path, each as last seen."""
    calls = calls_in(messages)
    files: dict[str, str] = {}
    for message in messages:
        call = calls.get(message.call_id or "")
        if call is None or message.failed:
            continue
        arguments = parse_object(call.arguments) or {}
        path = str(arguments.get("path"))
        if call.tool == WRITE:
            files[path] = str(arguments.get("content"))
        elif _shows_whole_file(call, message):
            files[path] = _NUMBER.sub("", message.text) + "\n"
    return files


def _shows_whole_file(call: RequestToolCall, result: Message) -> bool:
    is_text = call.tool == READ and not call.arguments.endswith('.ipynb"}')
    return is_text and _NUMBERED.fullmatch(result.text) is not None


def _results(messages: Sequence[Message], asked: int) -> list[str]:
    """Return the results since the task, without whole files, which are shown separately."""
    calls = calls_in(messages)
    results = []
    for one in messages[asked:]:
        call = calls.get(one.call_id or "")
        if call is not None and (one.failed or not _is_shown(call, one)):
            results.append(one.text)
    return results


def _is_shown(call: RequestToolCall, result: Message) -> bool:
    return call.tool == WRITE or _shows_whole_file(call, result)


def _next_words(messages: Sequence[Message], asked: int) -> str:
    """Return the name of the text that says what may be answered next."""
    calls = calls_in(messages)
    call = calls.get(messages[-1].call_id or "")
    if call is not None and call.tool == WRITE:
        is_done = files_seen(messages) != files_seen(messages[:-1]) or _is_repeated(call, calls)
        return "step_written" if is_done else "step_again"
    if not files_seen(messages) and len(messages) == asked + 1:
        return "step_unseen"
    return "step_question" if messages[asked].text.rstrip().endswith("?") else "step_seen"


def _is_repeated(call: RequestToolCall, calls: Mapping[str, RequestToolCall]) -> bool:
    return sum(other.arguments == call.arguments for other in calls.values()) > 1


def read_step(text: str, messages: Sequence[Message]) -> TextCalls | None:
    """Return the step in an answer: a file written in a fence, or a file to read; None where it has none.

    ``messages`` are those of the request before it was made one in steps.
    """
    files = files_seen(messages)
    task = next((one.text for one in reversed(messages) if one.role == "user"), "")
    for fence in _FENCE.finditer(f"{text.rstrip()}\n```"):
        prose = text[: fence.start()].rstrip()
        path = _path_of(prose, files)
        content = dedent(fence[2]) if fence[1] else fence[2]
        if _is_meant(path, files, task) and _is_in_place_of(content, files.get(path, "")):
            arguments = {"path": path, "content": content}
            return TextCalls(prose, (TextCall(WRITE, json.dumps(arguments, ensure_ascii=False)),))
    asks = _ASKS.search(text)
    if asks is None:
        return None
    call = TextCall(READ, json.dumps({"path": asks[1].strip(_QUOTES)}, ensure_ascii=False))
    return TextCalls(text[: asks.start()].rstrip(), (call,))


def _path_of(prose: str, files: Mapping[str, str]) -> str:
    """Return the file a fence is for: the last one named before it, the only one seen, or a new one."""
    names: list[str] = _NAME.findall(prose)
    seen = [name for name in names if name in files]
    if seen:
        return seen[-1]
    if len(files) == 1:
        return next(iter(files))
    in_last_line: list[str] = _NAME.findall(prose.rpartition("\n")[2])
    return in_last_line[-1] if in_last_line else ""


def _is_meant(path: str, files: Mapping[str, str], task: str) -> bool:
    """Return whether a task may mean a file: others such a model writes by mistake.

    A new one has to be named; one that was seen has to have a word of the task in it.
    """
    if path not in files:
        return bool(path) and path in task
    words = set(_WORD.findall(f"{path} {files[path]}".casefold()))
    return not words.isdisjoint(_WORD.findall(task.casefold()))


def _is_in_place_of(text: str, before: str) -> bool:
    """Return True if a text can replace a whole file, and isn't an excerpt of it."""
    were = _OUTER.findall(before)
    are = _OUTER.findall(text)
    return len(are) >= len(were) and 2 * sum(line in are for line in were) >= len(were)
