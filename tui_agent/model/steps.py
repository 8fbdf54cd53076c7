"""Builds requests for models too small for tools, and reads calls from their answers.

A model with fewer than a billion parameters copies the calls and schemas that it sees instead of
making calls, so it is shown neither. Instead, the files that it has read come before the task, and
the last sentence says how it may answer. It answers with a file's name to read it, or with the
whole new file in a fence. ``forms`` uses `in_steps`, the agent `read_step`.
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
"""Matches the result of ``read`` for a whole file, in which all lines are numbered, from 1. In
other results, a line without a number says what is missing."""
_NUMBER = LazyPattern(r"^\d+\t", re.MULTILINE)
_FENCE = LazyPattern(r"^([ \t]*)```[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_ASKS = LazyPattern(r"^\W{0,3}READ\b:?[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_NAME = LazyPattern(r"[\w./-]*\w\.\w+")
_WORD = LazyPattern(r"[^\W\d_]{3,}")
_QUOTES = "`'\"*"
_OUTER = LazyPattern(r"^[^\W\d_].*$", re.MULTILINE)
"""Matches a line that begins with a letter, that is, one that is not indented and begins with
neither a bracket nor a comment."""


def in_steps(request: ModelRequest, prompt: Callable[[str], str]) -> ModelRequest:
    """Return the request without calls and results, rewritten for a model without tools.

    The last message consists of the files seen so far, other results, the task and, if tools may be
    called, a sentence on how to answer. Earlier texts stay before it. A request whose last user
    message isn't from the conversation, such as one for a summary, stays unchanged. ``prompt``
    returns a file of ``prompts/`` by name.
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
    """Return the whole files that were read or written in a conversation, as last seen, by path."""
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
    """Return the texts of all results from message ``asked`` on, including those of failed calls.

    Results of whole files read or written are left out, because the files are shown separately.
    """
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
    """Return the name of the file in ``prompts/`` that tells the model how to answer.

    ``asked`` is the index of the task in ``messages``.
    """
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
    """Return the ``write`` or ``read`` call that a tiny model's answer means; None if it has none.

    A code fence with a whole file becomes a ``write`` call, ``READ name`` a ``read`` call. The
    returned text is the answer before the call. ``messages`` are the request's messages before
    `in_steps` changed them.
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
    """Return the path of the file that a fenced code block contains; "" if the path is unclear.

    The path is the last name in the text before the block that is a file the model has seen;
    otherwise the only file that the model has seen; otherwise the last name on the line before the
    block.
    """
    names: list[str] = _NAME.findall(prose)
    seen = [name for name in names if name in files]
    if seen:
        return seen[-1]
    if len(files) == 1:
        return next(iter(files))
    in_last_line: list[str] = _NAME.findall(prose.rpartition("\n")[2])
    return in_last_line[-1] if in_last_line else ""


def _is_meant(path: str, files: Mapping[str, str], task: str) -> bool:
    """Return whether the task is about this file.

    Tiny models sometimes write other files by mistake. So a new file counts only if the task
    contains its path, and a file that the model has seen only if its path or content shares a word
    with the task.
    """
    if path not in files:
        return bool(path) and path in task
    words = set(_WORD.findall(f"{path} {files[path]}".casefold()))
    return not words.isdisjoint(_WORD.findall(task.casefold()))


def _is_in_place_of(text: str, before: str) -> bool:
    """Return True if ``text`` is a new version of the file ``before``, not just an excerpt of it.

    ``text`` must have at least as many unindented lines as the file, and contain at least half of
    the file's unindented lines.
    """
    were = _OUTER.findall(before)
    are = _OUTER.findall(text)
    return len(are) >= len(were) and 2 * sum(line in are for line in were) >= len(were)
