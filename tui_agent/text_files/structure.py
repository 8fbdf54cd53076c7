"""Checks whether a change made a file invalid in the format that its name suggests. Pure.

A file that wasn't valid before the change, such as a JSON template, is not reported. Callers make
the change in any case, and only report the problem to the model.
"""

import ast
import json
import re
import warnings
from collections.abc import Callable
from fnmatch import fnmatch

from tui_agent.lazy import LazyPattern, frozen
from tui_agent.text_files.lines import line_at
from tui_agent.text_files.notebook import KINDS, is_source
from tui_agent.word_lists import in_order

MAX_CHARS = 2_000_000
"""Maximum length, in characters, of a text that is checked. Checking a longer one would take
seconds."""

_COMMENTED = in_order(
    """
    *.jsonc *.json5 tsconfig*.json jsconfig*.json tslint.json .eslintrc* .babelrc .swcrc
    *.code-workspace *.code-snippets devcontainer.json .devcontainer.json deno.json
    api-extractor*.json settings.json launch.json tasks.json extensions.json keybindings.json
    .jshintrc .jscsrc language-configuration.json *.hujson turbo.json biome.json .oxlintrc.json
    rush.json
    """
)
"""Glob patterns for the names of JSON files that usually have comments and trailing commas."""
_TEMPLATE = LazyPattern(r"(?<!\$)\{\{|\{%|<%")
"""Marks of YAML templates, which are not checked. GitHub's ``${{`` is not one: it is plain YAML."""
_STRING_OR_COMMENT = LazyPattern(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA = LazyPattern(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[\]}])', re.DOTALL)
_TOML_LINE = LazyPattern(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@frozen
class Invalid:
    """Says why a text is not valid in ``format`` (such as ``JSON``); ``line`` is counted from 1."""

    format: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"not valid {self.format}: line {self.line}: {self.reason}"


Check = Callable[[str], Invalid | None]


def made_invalid(name: str, before: str, after: str) -> Invalid | None:
    """Return why a file that was valid before a change isn't valid after it; None if it is.

    Also returns None if the file wasn't valid before, if it is blank after the change, if its
    format is unknown, or if either text is longer than `MAX_CHARS`.

    Args:
        name: the file's name, without directories.
        before: the text before the change, "" for a new file.
        after: the text after the change.
    """
    check = _check_for(name.lower(), before)
    if check is None or not after.strip() or max(len(before), len(after)) > MAX_CHARS:
        return None
    try:
        found = check(after)
        was_valid = found is None or not before.strip() or check(before) is None
    except RecursionError:
        return None
    return found if was_valid else None


def _check_for(name: str, before: str) -> Check | None:
    if name.endswith(".ipynb"):
        return _notebook
    if name.endswith((".jsonl", ".ndjson")):
        return _json_lines
    is_customary = any(fnmatch(name, pattern) for pattern in _COMMENTED)
    if is_customary or name.endswith((".json", ".webmanifest", ".geojson")):
        # A .json file that already had comments may have new ones.
        if is_customary or _json(before) is not None:
            return _commented_json
        return _json
    return _plain_check_for(name)


def _plain_check_for(name: str) -> Check | None:
    if name.endswith(".toml"):
        return _toml
    if name.endswith((".py", ".pyi")):
        return _python
    if name.endswith((".yaml", ".yml")):
        return _yaml
    return None


def _json(text: str) -> Invalid | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return Invalid("JSON", error.lineno, error.msg[:1].lower() + error.msg[1:])
    except ValueError as error:  # a number too long to be read
        return Invalid("JSON", 1, str(error))
    return None


def _commented_json(text: str) -> Invalid | None:
    return _json(_STRING_OR_COMMA.sub(_blanked, _STRING_OR_COMMENT.sub(_blanked, text)))


def _blanked(match: re.Match[str]) -> str:
    """Return a matched string unchanged, and a comment or comma as spaces that keep line breaks."""
    if match[0].startswith('"'):
        return match[0]
    return re.sub(r"[^\n]", " ", match[0])


def _json_lines(text: str) -> Invalid | None:
    for number, line in enumerate(text.split("\n"), 1):
        found = None
        if line.strip():
            found = _json(line)
        if found is not None:
            return Invalid("JSON", number, found.reason)
    return None


def _notebook(text: str) -> Invalid | None:
    found = _json(text)
    if found is not None:
        return found
    notebook = json.loads(text)
    cells = None
    if isinstance(notebook, dict):
        cells = notebook.get("cells")
    if not isinstance(cells, list) or not isinstance(notebook.get("nbformat"), int):
        return Invalid("notebook", 1, "it has no list of cells, or no nbformat")
    for number, cell in enumerate(cells, 1):
        reason = _cell_problem(cell)
        if reason:
            return Invalid("notebook", _line_of_cell(text, number), f"cell {number} {reason}")
    return None


def _cell_problem(cell: object) -> str:
    """Return why a notebook's cell isn't valid (see nbformat.readthedocs.io), "" if it is.

    The text continues a sentence, as in "has no metadata".
    """
    if not isinstance(cell, dict) or cell.get("cell_type") not in KINDS:
        return "has no cell_type of code, markdown or raw"
    if not is_source(cell.get("source")):
        return "has no source, or one that is not text"
    if cell["cell_type"] == "code" and not isinstance(cell.get("outputs"), list):
        return "has no list of outputs"
    if isinstance(cell.get("metadata"), dict):
        return ""
    return "has no metadata"


def _line_of_cell(text: str, number: int) -> int:
    places = [match.start() for match in re.finditer(r'"cell_type"\s*:', text)]
    if number > len(places):
        return 1
    return line_at(text, places[number - 1])


def _toml(text: str) -> Invalid | None:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_LINE.search(message)
        if place and place[1]:
            line = int(place[1])
        else:
            line = text.rstrip("\n").count("\n") + 1
        return Invalid("TOML", line, _TOML_LINE.sub("", message))
    return None


def _python(text: str) -> Invalid | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return Invalid("Python", error.lineno or 1, error.msg)
    except (ValueError, MemoryError):  # the text contains a NUL, or is nested too deeply
        return None
    return None


def _yaml(text: str) -> Invalid | None:
    import yaml

    if _TEMPLATE.search(text):
        return None
    try:
        # Only the syntax is checked, because tags that other programs define are not errors.
        for _event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            pass
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it cannot be read"
        return Invalid("YAML", mark.line + 1 if mark is not None else 1, reason)
    return None
