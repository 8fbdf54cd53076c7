"""Reads tool calls that a model wrote in its answer's text, if its server returned no native calls.

The following formats are read: bare or fenced JSON, Hermes and Qwen ``<tool_call>`` tags,
Qwen-Coder's ``<function=…><parameter=…>`` and the similar ``<invoke name="…">``, Mistral's
``[TOOL_CALLS]``, Llama's ``<|python_tag|>``, Gemma's ``tool_code`` fence with Python code. Sources
are the chat templates of these models. Tags of DeepSeek, GLM and Kimi are recognised, but the calls
can't be read.

A call counts only at the end of an answer, and only if the text doesn't explain or show calls. JSON
without a tag must be the whole answer, or follow a sentence like "I'll read the file:".
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tui_agent.json_text import as_dict, loads, objects, read_literal
from tui_agent.lazy import LazyPattern, frozen
from tui_agent.model.streamed_calls import plain_name
from tui_agent.session.entries import ToolSchema

_TAG = r"<(?:(?:minimax:)?tool_calls?|tools|function_calls?)>|<\|python_tag\|>|<[|｜]tool[\w▁]*begin[|｜]>"
_MARK = LazyPattern(
    rf"^[ \t]*(?={_TAG}|<function=[\w.:-]+>|<invoke name=|\[TOOL_CALLS\]|```tool_code\s)",
    re.MULTILINE,
)
_FENCE = LazyPattern(r"^[ \t]*```[\w-]*[ \t]*\n", re.MULTILINE)
_BARE = LazyPattern(r"^\[?\{\s*\"(?:name|tool|function|type|tool_calls)\"\s*:", re.MULTILINE)
_FENCED = LazyPattern(r"\s*```([\w-]*)[ \t]*\n(.*?)(?:\s*```\s*(?=\n|\Z)|\Z)", re.DOTALL)
_OPENING = LazyPattern(rf"\s*(?:{_TAG})\s*")
_BETWEEN = LazyPattern(
    r"(?:\s|[;,]|</(?:(?:minimax:)?tool_calls?|tools|function_calls?|function|invoke)>)*"
)
_LEAKED = LazyPattern(
    r"\s*(?:(?:<\|(?!python_tag|tool)\w+\|>|</s>|<end_of_turn>|<tool_response>).*)?\Z", re.DOTALL
)
"""Matches the end of the text, or a stop token and what the model made up after it, such as the
result of a call."""
_FUNCTION = LazyPattern(r"\s*<(?:function=|invoke name=)\"?([\w.:-]+)\"?>\s*")
_PARAMETER = LazyPattern(
    r"\s*<parameter(?:=| name=\")([^>\n\"]+)\"?>\n?(.*?)\n?</parameter>"
    r"(?=\s*(?:<parameter\b|</(?:function|invoke|tool_call)>|\Z))",
    re.DOTALL,
)
_MISTRAL = LazyPattern(
    r"\s*\[TOOL_CALLS\]\s*(?:([\w.:-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{))?"
)
_NAMED = LazyPattern(r"[{\[\s]*['\"](?:name|function|tool)['\"]\s*:\s*['\"]([\w.:-]+)['\"]")

_MAX_FORGOTTEN = 2
"""Maximum number of closing brackets that are added to a call if they are missing at its end."""
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_BESIDE = {*_NAMES, *_ARGUMENTS, "id", "type"}

_SHOWS = LazyPattern(
    r"\b(?:for (?:example|instance)|e\.g|like (?:this|so)|show(?:s|ing)? (?:you|how)|explain\w*"
    r"|illustrat\w*|demonstrat\w*|walk\b.{0,20}\bthrough|let(?:['’]s| me| us) (?:know|say|assume)|suppose|imagine"
    r"|hypothetical\w*"
    r"|(?:you|models?)(?:['’]d| would| can| could| may| might| has to)? (?:then )?(?:writes?|calls?|emits?|answers?"
    r"|sends?|wraps?|produces?|outputs?)|calls? (?:is|looks|would)|what I (?:sent|called|wrote)"
    r"|(?:sent|called|made|wrote) (?:earlier|before|above|previously)|not (?:run|call))\b",
    re.IGNORECASE,
)
"""Matches words which show that a text only quotes or explains a call, even if it begins with
"I'll"."""
_FORMAL = LazyPattern(
    r"\b(?:examples?|looks? like|i\.e|such as|formats?|syntax|templates?|tags?|tokens?|(?:tool|function)[ -]calls?"
    r"|called|written|as follows|following|schema|JSON|XML|means|models?|would|describe\w*|quot\w+|printed|logged"
    r"|document\w*|your?|Hermes|Qwen|Mistral|Llama|answers?)\b",
    re.IGNORECASE,
)
"""Matches words which show that a text only describes calls. They don't matter if the text also
announces a next step (``_INTENT``)."""
_INTENT = LazyPattern(
    r"\b(?:I(?:['’]ll|['’]m going to| will| am going to| need to| have to| must| want to| should)|let(?:['’]s| me| us)"
    r"|ich (?:werde|lese|muss)|lass mich|je vais|voy a|vou)\b|让我|我(?:将|来|会|先|需要)|давай|сейчас",
    re.IGNORECASE,
)

Check = Callable[[str, str], str]
"""Tests a tool call. It is called with the tool's name and the call's arguments (JSON text), and
returns why the tool doesn't accept them, "" if it does."""

_DECODER = json.JSONDecoder(strict=False)


@frozen
class TextCall:
    """A call read from an answer's text. ``arguments`` is the JSON text of an object."""

    tool: str
    arguments: str


@frozen
class TextCalls:
    """The calls read from an answer, and the ``text`` before them.

    If the answer contains calls that can't be used, ``problem`` says why; in that case, ``calls``
    is empty and ``text`` is the whole answer.
    """

    text: str
    calls: tuple[TextCall, ...] = ()
    problem: str = ""


class _UnreadableError(Exception):
    """Raised if a tool call begins at a position but can't be read. The message says why."""


class _NoCallError(Exception):
    """Raised if a text at which a tool call could begin turns out not to be one."""


def read_text_calls(text: str, tools: Mapping[str, ToolSchema], check: Check) -> TextCalls | None:
    """Return the calls at the end of an answer's text; None if it has none.

    ``tools`` are the request's tools by name, ``check`` tests a call's arguments. If a call can't
    be read or isn't valid, the result has a problem and no calls. If, in this case, the answer
    doesn't end with a bracket, a tag or a code fence, no call was meant, and the result is None.
    """
    found = _begin(text)
    if found is None:
        return None
    prose = text[:found].rstrip()
    rest = text[found:]
    try:
        calls = tuple(_Scanner(rest, tools).calls())
        problem = ""
        for call in calls:
            problem = problem or _problem(call, tools, check)
    except _NoCallError:
        return None
    except _UnreadableError as error:
        calls = ()
        problem = str(error)
    if problem:
        # If other text follows the part that can't be read, the model meant no call.
        if rest.rstrip().endswith(("}", "]", ">", "```")):
            return TextCalls(text, problem=problem)
        return None
    if calls:
        return TextCalls(prose, calls)
    return None


def _begin(text: str) -> int | None:
    """Return the position where tool calls may begin; None if the answer can't end with calls."""
    body = text.lstrip()
    start = len(text) - len(body)
    if body.startswith(("{", "[", "```")) or _MARK.match(body):
        return start
    # Only the last code block may be the call. Earlier ones belong to the text, so they are blanked.
    said = _FENCED.sub(
        lambda block: block[0] if block.end() == len(text) else " " * len(block[0]), text
    )
    if mark := _MARK.search(said):
        if _leads_in(text[: mark.start()], marked=True):
            return mark.start()
        return None
    call = _FENCE.search(said) or _BARE.search(said)
    if call is not None and _leads_in(text[: call.start()], marked=False):
        return call.start()
    return None


def _leads_in(prose: str, *, marked: bool) -> bool:
    """Return whether the last paragraph of ``prose`` announces a call and doesn't just explain one.

    ``marked`` says that a tag such as ``<tool_call>`` follows, so that no announcement is needed.
    """
    last = prose.rstrip().rpartition("\n\n")[2].lstrip()
    if _SHOWS.search(last) or last.startswith(">"):
        return False
    if _INTENT.search(last):
        return True
    return marked and not last.endswith((":", "：")) and not _FORMAL.search(last)


def _problem(call: TextCall, tools: Mapping[str, ToolSchema], check: Check) -> str:
    if call.tool not in tools:
        return f"There is no tool {call.tool}."
    parameters = tools[call.tool].parameters
    values = loads(call.arguments)
    lacking = [name for name in parameters.get("required") or () if name not in values]
    if problem := check(call.tool, call.arguments):
        return problem
    if lacking:
        verb = "is" if len(lacking) == 1 else "are"
        return f"{call.tool}: {', '.join(lacking)} {verb} missing."
    return ""


class _Scanner:
    """Reads the calls in a text that must contain nothing else."""

    def __init__(self, text: str, tools: Mapping[str, ToolSchema], *, marked: bool = False) -> None:
        self._text = text
        self._tools = tools
        self._marked = marked
        """Whether a tag such as ``<tool_call>`` came before the text, so that the text must be a
        call."""
        self._at = 0

    def calls(self) -> Iterator[TextCall]:
        """Yield the tool calls of the text, in order.

        Raises:
            _NoCallError: the text contains something else.
            _UnreadableError: a call can't be read.
        """
        if fenced := _FENCED.match(self._text):
            while fenced := _FENCED.match(self._text, self._at):
                if fenced[1] == "tool_code":
                    yield from self._of_code(fenced[2])
                else:
                    yield from _Scanner(fenced[2], self._tools).calls()
                self._at = fenced.end()
            if not _LEAKED.match(self._text, self._at):
                raise _NoCallError
            return
        while not _LEAKED.match(self._text, self._at):
            yield from self._next()
            between = _BETWEEN.match(self._text, self._at)
            if between:
                self._at = between.end()

    def _next(self) -> Iterator[TextCall]:
        if opening := _OPENING.match(self._text, self._at):
            self._at = opening.end()
            self._marked = True
        if function := _FUNCTION.match(self._text, self._at):
            self._at = function.end()
            self._marked = True
            yield TextCall(plain_name(function[1]), self._function_arguments(function[1]))
        elif mistral := _MISTRAL.match(self._text, self._at):
            self._at = mistral.end()
            self._marked = True
            value = self._value()
            yield from [TextCall(mistral[1], _object(value))] if mistral[1] else self._of(value)
        else:
            yield from self._of(self._value())

    def _function_arguments(self, name: str) -> str:
        if self._text[self._at : self._at + 1] == "{":
            return _object(self._value())
        schema = self._tools.get(plain_name(name))
        properties = schema.parameters.get("properties") or {} if schema is not None else {}
        values: dict[str, Any] = {}
        while parameter := _PARAMETER.match(self._text, self._at):
            key = parameter[1].strip()
            values[key] = _typed(parameter[2], properties.get(key))
            self._at = parameter.end()
        if self._text[self._at :].lstrip().startswith("<parameter"):
            raise _UnreadableError(f"{name}: a <parameter> isn't closed.")
        return json.dumps(values, ensure_ascii=False)

    def _of_code(self, code: str) -> Iterator[TextCall]:
        """Yield the calls in Python code that consists only of calls, perhaps inside ``print(…)``.

        Raises _UnreadableError for any other code, and for arguments that aren't literals.
        """
        try:
            for statement in ast.parse(code).body:
                call = statement.value if isinstance(statement, ast.Expr) else None
                if (
                    isinstance(call, ast.Call)
                    and ast.unparse(call.func) == "print"
                    and len(call.args) == 1
                ):
                    call = call.args[0]
                if not isinstance(call, ast.Call):
                    raise _UnreadableError("The code does something other than call tools.")
                name = plain_name(ast.unparse(call.func))
                schema = self._tools.get(name)
                names = []
                if schema is not None:
                    names = list(schema.parameters.get("properties") or ())
                if len(call.args) > len(names):
                    raise _UnreadableError(f"{name} has too many arguments. Pass them by name.")
                given = dict(zip(names, call.args, strict=False))
                given |= {str(word.arg): word.value for word in call.keywords}
                values = {key: ast.literal_eval(value) for key, value in given.items()}
                yield TextCall(name, _object(values))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
            raise _UnreadableError(f"It isn't a call with plain values: {error}.") from None

    def _value(self) -> Any:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        if self._text[self._at : self._at + 1] not in {"{", "["}:
            raise _UnreadableError("It isn't JSON.") if self._marked else _NoCallError
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError) as error:
            whole = _with_closers(self._text[self._at :])
            if whole is None:
                value = self._literal(error)
            else:
                value = self._completed(whole)
        return value

    def _completed(self, whole: str) -> Any:
        """Parse ``whole``, which is the rest of the text with its missing brackets added."""
        self._at = len(self._text)
        return loads(whole, strict=False)

    def _literal(self, error: Exception) -> Any:
        """Return the rest of the text, up to its last bracket, as a Python literal.

        ``error`` is the JSON parser's error, for the message. Raises _UnreadableError if the text
        is no literal but is clearly meant as a call; otherwise _NoCallError.
        """
        rest = self._text[self._at :]
        value_text = rest[: max(rest.rfind("}"), rest.rfind("]")) + 1]
        try:
            value = read_literal(value_text)
        except ValueError:
            named = _NAMED.match(rest)
            if self._marked or (named is not None and plain_name(named[1]) in self._tools):
                raise _UnreadableError(f"It isn't valid JSON: {error}.") from None
            raise _NoCallError from None
        self._at += len(value_text)
        return value

    def _of(self, value: Any) -> Iterator[TextCall]:
        if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
            value = value["tool_calls"]
        if isinstance(value, list) and value:
            for item in value:
                yield from self._of(item)
            return
        if isinstance(value, dict) and isinstance(value.get("function"), dict):
            value = value["function"]
        if not isinstance(value, dict):
            raise _NoCallError
        name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
        given = next((value[key] for key in _ARGUMENTS if key in value), None)
        if self._marked and name is not None:
            yield TextCall(plain_name(name), _object({} if given is None else given))
        elif (
            name is None
            or given is None
            or not value.keys() <= _BESIDE
            or plain_name(name) not in self._tools
        ):
            if self._marked:
                raise _UnreadableError("A call needs a name and arguments.")
            if name is not None and (meant := self._tool_with(given)):
                raise _UnreadableError(
                    f"There is no tool {name}. These are arguments of the tool {meant}."
                )
            raise _NoCallError
        else:
            yield TextCall(plain_name(name), _object(given))

    def _tool_with(self, given: Any) -> str:
        """Return the name of the tool that accepts the given arguments; "" if no tool does.

        Only tools that require at least two arguments count.
        """
        if not isinstance(given, dict):
            return ""
        for tool in self._tools.values():
            needed = set(tool.parameters.get("required") or ())
            known = set(tool.parameters.get("properties") or ())
            if len(needed) > 1 and needed <= given.keys() <= known:
                return tool.name
        return ""


def _with_closers(text: str) -> str | None:
    """Return a JSON text with its missing closing brackets added.

    Returns None if the result isn't valid, if no bracket is missing, or if more than
    ``_MAX_FORGOTTEN`` brackets are missing.
    """
    wanted: list[str] = []
    is_string = False
    is_escaped = False
    for letter in text:
        if is_string:
            is_string = is_escaped or letter != '"'
            is_escaped = letter == "\\" and not is_escaped
        elif letter == '"':
            is_string = True
        elif letter in "{[":
            wanted.append("}" if letter == "{" else "]")
        elif letter in "}]" and (not wanted or wanted.pop() != letter):
            return None
    if is_string or not 0 < len(wanted) <= _MAX_FORGOTTEN:
        return None
    whole = text.rstrip() + "".join(reversed(wanted))
    try:
        loads(whole, strict=False)
    except ValueError:
        return None
    return whole


def _object(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = loads(value, strict=False)
        except ValueError:
            raise _UnreadableError("The arguments aren't a JSON object.") from None
    if not isinstance(value, dict):
        raise _UnreadableError("The arguments aren't a JSON object.")
    return json.dumps(value, ensure_ascii=False)


def _typed(text: str, schema: Any) -> Any:
    said = as_dict(schema)
    kinds = said.get("type")
    if kinds is None:
        kinds = [part.get("type") for part in objects(said.get("anyOf"))]
    if not kinds or "string" in kinds:
        return text
    plain = text.strip().lower() if text.strip() in {"True", "False"} else text
    try:
        return loads(plain, strict=False)
    except ValueError:
        return text
