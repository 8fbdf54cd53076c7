"""Parses a shell command line with tree-sitter into commands, redirections and assignments."""

import re
import shlex
import unicodedata
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from tui_agent.lazy import dataclass, frozen
from tui_agent.word_lists import listed

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

MAX_CHARS = 20_000
"""Maximum length of a command line that is parsed, in characters."""

_WALKED = listed(
    """
    program list redirected_statement pipeline subshell compound_statement if_statement elif_clause
    else_clause while_statement for_statement do_group case_statement case_item negated_command
    function_definition command_substitution
    """
)
_WORDS = listed(
    """
    word number raw_string string concatenation simple_expansion expansion command_substitution
    command_name variable_name special_variable_name
    """
)
_LITERAL = listed("== =~ = != [ ] < > export declare typeset readonly local unset unsetenv")
_AROUND = listed("redirected_statement pipeline list compound_statement")
"""Types of syntax nodes that can redirect the input of the commands inside them."""
_OF_HEREDOC = listed("heredoc_start heredoc_end heredoc_body file_descriptor")
_GAP = re.compile(r"(?:[ \t]|\\\n)*")
_JOINED = re.compile(r"(?:\\\n)*")
_DASH_GAP = re.compile(r"[ \t]*(?:-[ \t]*)?")
_LINE_GAP = re.compile(r"(?:\s|\\\n)*")
_PLAIN = re.compile(r"(?:[^\s;&|<>()`$\"'\\]|\\.)+", re.DOTALL)
_HEREDOC_NAME = re.compile(r"(?P<quote>['\"]?)(?P<name>\w+)(?P=quote)", re.ASCII)
_SUBSTITUTION = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$[({\[])")


@frozen
class Word:
    """One word of a command. ``source`` is the text of the word in the command line.

    ``value`` is the argument that the program receives, or None if it is known only when the
    command runs. ``start`` is the known beginning of that argument. ``glob`` is True if the word
    contains a glob, which is unexpanded in ``value``.
    """

    source: str
    value: str | None
    start: str = ""
    glob: bool = False
    tilde: bool = False
    """Whether the word begins with an unquoted ``~``."""

    @property
    def shown(self) -> str:
        """The text of the word that rules are matched against.

        This is the word's value, quoted if necessary, or its source if the value is unknown.
        """
        if self.value is None:
            return self.source
        if self.glob or self.tilde or re.fullmatch(r"[\w@%+=:,./~^-]+", self.value, re.ASCII):
            return self.value
        return shlex.quote(self.value)


@frozen
class SimpleCommand:
    """One simple command: its words, its source text, and its assignments (``A=1 command``).

    ``fed`` is the text that its here-documents and here-strings pass to it, or "" if there are
    none.
    """

    words: tuple[Word, ...]
    source: str
    assignments: tuple[tuple[str, Word], ...] = ()
    fed: str = ""


@dataclass
class ParsedLine:
    """All commands, redirections and assignments in a command line, each in the order written.

    Nesting and conditions are not kept, so each command is treated as if it were always run.
    ``problems`` contains a clause, such as "it assigns an array", for each kind of syntax that
    isn't understood. If there are problems, the user is asked about the line.
    """

    commands: list[SimpleCommand] = field(default_factory=list)
    redirects: list[tuple[str, Word]] = field(default_factory=list)
    """The redirections as (operator, file). An operator that contains ``>`` can change the file."""
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def literal(text: str) -> Word:
    return Word(text, text, text)


def read_script(text: str) -> ParsedLine:
    """Parse a command line. No command line causes an error.

    Syntax that the parser doesn't understand is reported in the result's ``problems``.
    """
    if problem := _unreadable(text):
        return ParsedLine(problems=[problem])
    script = ParsedLine()
    data = text.encode()
    root = _parser().parse(data).root_node
    if root.has_error:
        return ParsedLine(problems=["its syntax can't be parsed"])
    reader = _Reader(script, data)
    around = (data[: root.start_byte].decode(), data[root.end_byte :].decode())
    if not all(map(_LINE_GAP.fullmatch, around)):
        script.problems.append("part of it can't be parsed")
    try:
        reader.read(root)
    except RecursionError:
        script.problems.append("it is nested too deeply")
    return script


def _unreadable(text: str) -> str | None:
    """Return a clause that says why a text must not be parsed, or None if it may be parsed."""
    if len(text) > MAX_CHARS:
        return "it is too long to analyse"
    for character in text:
        if " " <= character <= "~" or character in "\n\t":
            continue
        category = unicodedata.category(character)
        if category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}:
            return f"it contains the hidden character U+{ord(character):04X}"
        if unicodedata.normalize("NFKC", character).isascii():
            return f"it contains {character} (U+{ord(character):04X}), which looks like another character"
    return None


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _Reader:
    """Reads a syntax tree once, and adds the commands, redirections and problems to ``script``.

    ``data`` is the parsed text in UTF-8.
    """

    def __init__(self, script: ParsedLine, data: bytes) -> None:
        self._script = script
        self._data = data

    def read(self, node: "Node") -> None:
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node)
            case "variable_assignment":
                self._script.assignments.append(self._assignment(node))
            case "variable_assignments":
                self._script.assignments += map(self._assignment, node.named_children)
            case "file_redirect":
                self._redirect(node)
            case "heredoc_redirect":
                self._heredoc(node)
            case "herestring_redirect":
                self._word(node.named_children[-1])
            case "comment":
                before = self._data[: node.start_byte]
                if "\n" in self._text(node) or not re.search(rb"(?:^|[^\\][ \t\n;])$", before):
                    self._problem("its comments can't be parsed")
            case kind if kind in _WALKED:
                self._walk(node)
            case kind if kind in _WORDS:
                self._word(node)
            case kind:
                self._unchecked(kind)

    def _walk(self, node: "Node") -> None:
        # The parser drops a lone dash before a here-document. This is harmless, because a command
        # that accepts such a dash also reads its input without it.
        self._gaps(node, _DASH_GAP if node.type == "redirected_statement" else _LINE_GAP)
        if node.type == "for_statement":
            variable = node.child_by_field_name("variable")
            name = ""
            if variable is not None:
                name = self._text(variable)
            self._script.assignments.append((name, Word(name, None)))
        for child in node.named_children:
            self.read(child)

    def _command(self, node: "Node") -> None:
        self._gaps(node, _GAP)
        words = list[Word]()
        assignments = list[tuple[str, Word]]()
        # ``export A=1`` also sets the variable for later commands.
        made = assignments
        if node.type == "declaration_command":
            made = self._script.assignments
        for child in node.children:
            match child.type:
                case "variable_assignment":
                    made.append(self._assignment(child))
                case "command_name":
                    words.append(self._word(child.children[0]))
                case "herestring_redirect" | "file_redirect" | "heredoc_redirect":
                    self.read(child)
                case kind if kind in _LITERAL:
                    words.append(literal(self._text(child)))
                case kind if kind in _WORDS:
                    words.append(self._word(child))
                case kind:
                    self._unchecked(kind)
        command = SimpleCommand(tuple(words), self._text(node), tuple(assignments), self._fed(node))
        self._script.commands.append(command)

    def _assignment(self, node: "Node") -> tuple[str, Word]:
        name, *rest = node.named_children
        if name.type == "subscript" or len(rest) > 1 or (rest and rest[0].type == "array"):
            self._problem("it assigns an array")
            return self._text(name), literal("")
        return self._text(name), self._word(rest[0]) if rest else literal("")

    # -- redirections --------------------------------------------------------------------------

    def _redirect(self, node: "Node") -> None:
        operator = ""
        targets: list[Word] = []
        for child in node.children:
            if not child.is_named:
                operator += child.type
            elif child.type != "file_descriptor":
                targets.append(self._word(child))
        if operator in {">&-", "<&-"}:
            return
        if len(targets) != 1:
            self._problem("it has a redirection that can't be parsed")
        elif operator not in {">&", "<&"} or not re.fullmatch(r"\d+-?|-", targets[0].source):
            self._script.redirects.append((operator, targets[0]))

    def _heredoc(self, node: "Node") -> None:
        """Parse the rest of a line that contains ``<<``.

        Reports a problem if the end of the here-document is unclear. The parser and the shell must
        agree on this end. For the shell, it is the first line that equals the name after ``<<``.
        """
        self._gaps(node, _LINE_GAP)
        texts = {child.type: self._text(child) for child in node.children}
        found = _HEREDOC_NAME.fullmatch(texts.get("heredoc_start", ""))
        body = texts.get("heredoc_body", "")
        bare = [line.lstrip("\t") if "<<-" in texts else line for line in body.split("\n")]
        if (
            found is None
            or found["name"] in bare
            or texts.get("heredoc_end", "").strip("\t\n") != found["name"]
        ):
            self._problem("the end of its here-document is unclear")
        elif not found["quote"] and _SUBSTITUTION.search(body):
            self._problem("its here-document contains a substitution")
        for child in node.named_children:
            if child.type in _WORDS:
                self._problem("its here-document is followed by words")
            elif child.type not in _OF_HEREDOC:
                # The parser treats text after ``<<EOF`` on the same line as part of the
                # here-document.
                self.read(child)

    def _fed(self, node: "Node") -> str:
        """Return the text of the here-documents and here-strings that a command may read.

        Returns "" if there are none.
        """
        fed = [self._text(child) for child in node.children if child.type == "herestring_redirect"]
        parent = node.parent
        while parent is not None and parent.type in _AROUND:
            for child in parent.children:
                if child.type in {"heredoc_redirect", "herestring_redirect"}:
                    fed.append(self._text(child))
            parent = parent.parent
        return "\n".join(fed)

    # -- words ---------------------------------------------------------------------------------

    def _word(self, node: "Node") -> Word:
        """Return the word of a syntax node. The value is None if it is known only at run time."""
        source = self._text(node)
        start = ""
        is_known = True
        is_glob = False
        for text, glob in self._parts(node):
            is_known = is_known and text is not None
            is_glob = is_glob or glob
            if is_known:
                start += text or ""
        value = start if is_known else None
        return Word(source, value, start, glob=is_glob, tilde=source.startswith("~"))

    def _parts(self, node: "Node") -> Iterator[tuple[str | None, bool]]:
        """Yield each part of a word as its text and whether it contains a glob.

        The text is None if it isn't known until the command runs.
        """
        text = self._text(node)
        match node.type:
            case "word" | "number" | "variable_name" | "special_variable_name":
                if node.children or not _PLAIN.fullmatch(text) or "{" in text or "}" in text:
                    self._problem("it contains a word that can't be parsed")
                # A backslash removes the special meaning of the next character.
                unquoted = _ESCAPED.sub(lambda match: "" if match[1] == "\n" else match[1], text)
                yield unquoted, re.search(r"[*?\[]", _ESCAPED.sub("", text)) is not None
            case "raw_string":
                yield text[1:-1], False
            case "string":
                yield from self._string(node)
            case "concatenation" if text == "{}":
                # find and xargs use ``{}`` as a placeholder. The shell passes it on unchanged.
                yield text, False
            case "concatenation" | "command_name":
                self._gaps(node, _JOINED)
                for child in node.children:
                    yield from self._parts(child)
            case "command_substitution":
                self._walk(node)
                yield None, False
            case "simple_expansion" | "expansion" if re.fullmatch(
                r"\$(?:\w+|\{\w+\}|[?#!$])", text, re.ASCII
            ):
                yield ("0" if text in {"$?", "$#", "$!", "$$"} else None), False
            case kind:
                self._unchecked(kind)
                yield None, False

    def _string(self, node: "Node") -> Iterator[tuple[str | None, bool]]:
        position = node.start_byte + 1
        for child in node.children[1:-1]:
            yield self._data[position : child.start_byte].decode(), False
            position = child.end_byte
            if child.type == "string_content" or not child.is_named:
                content = self._text(child)
                if _SUBSTITUTION.search(content):
                    self._problem("it has a substitution in quotes that can't be parsed")
                yield re.sub(r'\\([$`"\\])', r"\1", content.replace("\\\n", "")), False
            else:
                yield from self._parts(child)
        yield self._data[position : node.end_byte - 1].decode(), False

    def _gaps(self, node: "Node", allowed: "re.Pattern[str]") -> None:
        """Report a problem if the parser skipped text in ``node``.

        Skipped text that matches ``allowed`` is not a problem.
        """
        position = node.start_byte
        gaps = []
        for child in node.children:
            gaps.append(self._data[position : child.start_byte].decode())
            position = max(position, child.end_byte)
        gaps.append(self._data[position : node.end_byte].decode())
        if not all(map(allowed.fullmatch, gaps)):
            self._problem("part of it can't be parsed")

    def _text(self, node: "Node") -> str:
        return self._data[node.start_byte : node.end_byte].decode()

    def _unchecked(self, kind: str) -> None:
        self._problem(f"it uses shell syntax that is not checked ({kind.replace('_', ' ')})")

    def _problem(self, problem: str) -> None:
        if problem not in self._script.problems:
            self._script.problems.append(problem)
