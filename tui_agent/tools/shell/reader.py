"""Parses a command line with tree-sitter and lists its commands, redirections and assignments."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tui_agent.tools.shell.script import Redirect, Script, Simple
from tui_agent.tools.shell.word_reader import WORD_KINDS, WordReader
from tui_agent.tools.shell.words import Hole, Word, literal

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_CHARS = 20_000
"""Longer commands are not looked into."""

_WALKED = frozenset(
    {
        "program", "list", "redirected_statement", "pipeline", "subshell", "compound_statement", "if_statement",
        "elif_clause", "else_clause", "while_statement", "for_statement", "do_group", "case_statement", "case_item",
        "negated_command", "function_definition", "command_substitution", "process_substitution", "comment",
    }
)  # fmt: skip
_LOOPS = frozenset({"while_statement", "for_statement", "function_definition"})
_GAP = re.compile(r"(?:[ \t]|\\\n)*")
_OPERATORS = frozenset({"=", "==", "!=", "!", "-a", "-o"})
_DOUBLE_OPERATORS = _OPERATORS | {"=~", "<", ">", "&&", "||", "(", ")"}
_DASH_GAP = re.compile(r"[ \t]*(?:-[ \t]*)?")
_LINE_GAP = re.compile(r"(?:\s|\\\n)*")
_HEREDOC_NAME = re.compile(r"(?P<quote>['\"]?)(?P<name>\w+)(?P=quote)", re.ASCII)


def read_script(text: str) -> Script:
    """Take a command line apart. Never raises; what it can't read is in ``problems``."""
    script = Script()
    if problem := _unreadable(text):
        script.problems.append(problem)
        return script
    data = text.encode()
    root = _parser().parse(data).root_node
    if root.has_error:
        script.problems.append("its syntax can't be read")
        return script
    try:
        _read_tree(root, data, script)
    except RecursionError:
        script.problems.append("it is nested too deeply")
    return script


def _unreadable(text: str) -> str | None:
    """Return why a text is not even parsed."""
    if len(text) > MAX_CHARS:
        return "it is too long to look into"
    for character in text:
        if " " <= character <= "~" or character in "\n\t":
            continue
        category = unicodedata.category(character)
        if category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}:
            return f"it holds the hidden character U+{ord(character):04X}"
        if unicodedata.normalize("NFKC", character).isascii():
            return f"it holds {character} (U+{ord(character):04X}), which only looks like another character"
    return None


@lru_cache(maxsize=1)
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _read_tree(root: "Node", data: bytes, script: Script) -> None:
    """Put everything in a tree into ``script``; ``data`` is the text it was parsed from."""
    reader = _Reader(script, data)
    if _LINE_GAP.fullmatch(data[: root.start_byte].decode()) and _LINE_GAP.fullmatch(data[root.end_byte :].decode()):
        reader.read(root)
    else:
        reader.problem("part of it can't be read")


class _Reader(WordReader):
    """Walks the tree once."""

    def read(self, node: "Node", *, piped: bool = False, repeated: bool = False) -> None:
        """Take in a statement and everything in it."""
        match node.type:
            case "command":
                self._command(node, piped=piped, repeated=repeated)
            case "declaration_command" | "unset_command":
                self._declaration(node, repeated=repeated)
            case "variable_assignment":
                self._script.assignments.append(self._assignment(node, repeated=repeated))
            case "variable_assignments":
                self._script.assignments += [
                    self._assignment(child, repeated=repeated) for child in node.named_children
                ]
            case "test_command":
                self._test(node, repeated=repeated)
            case "file_redirect":
                self._redirect(node, repeated=repeated)
            case "heredoc_redirect":
                self._heredoc(node, repeated=repeated)
            case "herestring_redirect":
                self.word(node.named_children[-1], repeated=repeated)
            case kind if kind in _WALKED:
                self.walk(node, piped=piped, repeated=repeated)
            case kind if kind in WORD_KINDS:
                self.word(node, repeated=repeated)
            case kind:
                self.problem(f"it uses shell syntax that is not looked into ({kind.replace('_', ' ')})")

    def walk(self, node: "Node", *, piped: bool, repeated: bool) -> None:
        """Take in everything inside of a node."""
        if node.type == "comment":
            before = self._data[: node.start_byte]
            if b"\n" in self._data[node.start_byte : node.end_byte] or not re.search(rb"(?:^|[^\\][ \t\n;])$", before):
                self.problem("its comments can't be read")
            return
        # The grammar drops a lone dash before a here-document; the commands that take one read it either way.
        self.gaps(node, _DASH_GAP if node.type == "redirected_statement" else _LINE_GAP)
        self._loop_values(node)
        after_pipe = piped
        for child in node.children:
            if not child.is_named:
                after_pipe = piped or child.type in {"|", "|&"}
                continue
            self.read(child, piped=after_pipe, repeated=repeated or node.type in _LOOPS)

    def _command(self, node: "Node", *, piped: bool, repeated: bool) -> None:
        self.gaps(node, _GAP)
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        fed = self._fed(node)
        for child in node.children:
            match child.type:
                case "variable_assignment":
                    assignments.append(self._assignment(child, repeated=repeated))
                case "command_name":
                    words += self.words(child.children[0], repeated=repeated)
                case "herestring_redirect" | "file_redirect" | "heredoc_redirect":
                    self.read(child, repeated=repeated)
                case "==" | "=~" | "=" | "!=" | "[" | "]" | "<" | ">":
                    words.append(literal(self.text(child)))
                case kind if kind in WORD_KINDS:
                    words += self.words(child, repeated=repeated)
                case kind:
                    self.problem(f"it uses shell syntax that is not looked into ({kind.replace('_', ' ')})")
        simple = Simple(tuple(words), self.text(node), tuple(assignments), fed, piped, repeated, _is_sure(node))
        self._script.commands.append(simple)

    def _declaration(self, node: "Node", *, repeated: bool) -> None:
        """``export A=1``: an assignment, and a command of that name with whatever else it is given."""
        self.gaps(node, _GAP)
        words = [literal(node.children[0].type)]
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                self._script.assignments.append(self._assignment(child, repeated=repeated))
            else:
                words += self.words(child, repeated=repeated)
        if len(words) > 1 or node.child_count == 1:
            self._script.commands.append(Simple(tuple(words), self.text(node), repeated=repeated))

    def _assignment(self, node: "Node", *, repeated: bool) -> tuple[str, Word]:
        name, *rest = node.named_children
        if name.type == "subscript" or len(rest) > 1 or (rest and rest[0].type == "array"):
            self.problem("it fills an array")
            return self.text(name), literal("")
        return self.text(name), self.word(rest[0], repeated=repeated) if rest else literal("")

    def _test(self, node: "Node", *, repeated: bool) -> None:
        """``[[ a -eq b ]]`` computes, and computing may run what a variable holds."""
        text = self.text(node)
        double = text.startswith("[[")
        if double and re.search(r"\s-(eq|ne|lt|le|gt|ge|v|R)\s", text):
            self.problem("it computes inside [[ ]]")
        # To the shell ``[`` is a program like others: what ends a command ends it there too.
        known = _DOUBLE_OPERATORS if double else _OPERATORS
        words = []
        for leaf in self._operands(node):
            if leaf.is_named and leaf.type != "test_operator":
                words.append(self.word(leaf, repeated=repeated))
            elif leaf.type == "test_operator" or leaf.type in known:
                words.append(literal(self.text(leaf)))
            else:
                self.problem("it tests in a way that can't be read")
        self._script.commands.append(Simple((literal("test"), *words), text, repeated=repeated))

    def _operands(self, node: "Node") -> Iterator["Node"]:
        """Yield operands and operators of a test, without its brackets."""
        self.gaps(node, _GAP)
        for child in node.children:
            if child.type in {"unary_expression", "binary_expression", "parenthesized_expression", "test_command"}:
                yield from self._operands(child)
            elif child.type not in {"[", "]", "[[", "]]"}:
                yield child

    def _redirect(self, node: "Node", *, repeated: bool) -> None:
        operator, targets = "", []
        for child in node.children:
            if child.type == "file_descriptor":
                continue
            if child.is_named:
                targets.append(self.word(child, repeated=repeated))
            else:
                operator += child.type
        if operator in {">&-", "<&-"}:
            return
        if len(targets) != 1:
            self.problem("it redirects in a way that can't be read")
            return
        if operator in {">&", "<&"} and re.fullmatch(r"\d+-?|-", targets[0].source):
            return
        self._script.redirects.append(Redirect(operator, targets[0]))

    def _heredoc(self, node: "Node", *, repeated: bool) -> None:
        self.gaps(node, _LINE_GAP)
        self._check_heredoc(node)
        for child in node.named_children:
            match child.type:
                case "heredoc_start" | "heredoc_end" | "file_descriptor":
                    pass
                case "heredoc_body":
                    self._heredoc_body(child, quoted=self._quoted_start(node), repeated=repeated)
                case _:
                    # What follows on the line of ``<<EOF`` belongs to the here-document in the tree.
                    if child.type in WORD_KINDS:
                        self.problem("its here-document is followed by words")
                    self.read(child, piped=True, repeated=repeated)

    def _check_heredoc(self, node: "Node") -> None:
        """The here-document ends where the shell ends it: at the first line that is its name."""
        texts = {child.type: self.text(child) for child in node.children}
        found = _HEREDOC_NAME.fullmatch(texts.get("heredoc_start", ""))
        lines = texts.get("heredoc_body", "").split("\n")
        bare = [line.lstrip("\t") if "<<-" in texts else line for line in lines]
        if found is None or found["name"] in bare or texts.get("heredoc_end", "").strip("\t\n") != found["name"]:
            self.problem("where its here-document ends can't be told")

    def _quoted_start(self, node: "Node") -> bool:
        start = next((self.text(child) for child in node.named_children if child.type == "heredoc_start"), "")
        return any(mark in start for mark in "'\"\\")

    def _heredoc_body(self, node: "Node", *, quoted: bool, repeated: bool) -> None:
        if quoted:
            return
        known = bytearray(self._data[node.start_byte : node.end_byte])
        for child in node.named_children:
            if child.type == "heredoc_content":
                continue
            self.word(child, repeated=repeated)
            start, end = child.start_byte - node.start_byte, child.end_byte - node.start_byte
            known[start:end] = b" " * (end - start)
        if re.search(rb"(?<!\\)(?:`|\$[({])", bytes(known)):
            self.problem("its here-document holds a substitution that can't be read")

    def _fed(self, node: "Node") -> str:
        """Return the here-documents and here-strings a command reads."""
        own = [child for child in node.children if child.type == "herestring_redirect"]
        parent = node.parent
        while parent is not None and parent.type in {"redirected_statement", "pipeline", "list", "compound_statement"}:
            own += [child for child in parent.children if child.type in {"heredoc_redirect", "herestring_redirect"}]
            parent = parent.parent
        return "\n".join(self.text(child) for child in own)

    def _loop_values(self, node: "Node") -> None:
        """Note what the variable of ``for x in literal words`` can be, when nothing else sets it."""
        if node.type != "for_statement" or node.children[0].type != "for":
            return
        name = next((self.text(child) for child in node.named_children if child.type == "variable_name"), "")
        self._script.assignments.append((name, Word(self.text(node).split("\n")[0], (Hole("variable"),))))
        kinds = {"word", "number", "raw_string", "string", "concatenation"}
        words = [child for child in node.named_children if child.type in kinds and "\n" not in self.text(child)]
        others = {child.type for child in node.named_children} - {*kinds, "variable_name", "do_group"}
        whole = self._data.decode()
        uses = len(re.findall(rf"\b{re.escape(name)}\b", whole))
        plain_uses = len(re.findall(rf"\$(?:{re.escape(name)}\b|\{{{re.escape(name)}\}})", whole))
        if others or not name or not words or uses != plain_uses + 1:
            return
        values = [word.value for child in words for word in self.words(child, repeated=False)]
        known = tuple(value for value in values if value is not None and not re.search(r"\s", value))
        if len(known) == len(values):
            self._script.values[name] = known


def _is_sure(node: "Node") -> bool:
    """Whether a command is part of one chain of ``&&`` that is all there is."""
    parent = node.parent
    while parent is not None and parent.type == "list":
        if any(child.type != "&&" for child in parent.children if not child.is_named):
            return False
        parent = parent.parent
    return parent is not None and parent.type == "program" and parent.child_count == 1
