"""Reads words from the parse tree: what each is made of, and the commands nested in it."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.tools.shell.script import Script
from tui_agent.tools.shell.words import (
    Hole,
    Word,
    ansi_quoted,
    braces,
    double_quoted,
    has_glob,
    literal,
    unquoted,
)

if TYPE_CHECKING:
    from tree_sitter import Node

Part = tuple[str | Hole, bool]
"""A text or hole, and whether it holds a pattern for file names."""

WORD_KINDS = frozenset(
    {
        "word", "number", "raw_string", "string", "ansi_c_string", "translated_string", "concatenation",
        "simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion",
        "brace_expression", "command_name", "variable_name", "special_variable_name", "extglob_pattern", "regex",
    }
)  # fmt: skip
_PLAIN = re.compile(r"(?:[^\s;&|<>()`$\"'\\]|\\.)+", re.DOTALL)
_NUMERIC = frozenset({"?", "#", "$", "!"})
_RANGE = re.compile(r"\{\d+\.\.\d+\}")
_SAFE_OPERATORS = frozenset(
    {":-", "-", ":=", "=", ":+", "+", ":?", "?", "%", "%%", "#", "##", "/", "//", "^", "^^", ",", ",,", "${", "}"}
)
_JOINED = re.compile(r"(?:\\\n)*")
_NUMBERS = re.compile(r"\$\(\([\d\s+*/%()<>=!-]*\)\)")


class WordReader(ABC):
    """Reads words; what nobody could tell from the text becomes a hole or a problem of the script."""

    def __init__(self, script: Script, data: bytes) -> None:
        self._script = script
        self._data = data

    @abstractmethod
    def walk(self, node: "Node", *, piped: bool, repeated: bool) -> None:
        """Take in the commands of a substitution."""

    def words(self, node: "Node", *, repeated: bool) -> list[Word]:
        """Return the words a node becomes: several with braces."""
        source = self.text(node)
        parts_only = node.type == "word" or (
            node.type == "concatenation" and all(child.type in {"word", "number"} for child in node.children)
        )
        if "{" in source and parts_only and not is_placeholder(source):
            self._check_plain(source)
            if (expanded := braces(source)) is None:
                self.problem("it holds braces that can't be read")
                return [literal(source)]
            return [Word(text, (unquoted(text),), has_glob(text), text.startswith("~")) for text in expanded if text]
        return [self.word(node, repeated=repeated)]

    def word(self, node: "Node", *, repeated: bool) -> Word:
        """Return the word a node stands for."""
        source = self.text(node)
        glob = False
        parts: list[str | Hole] = []
        for part, is_glob in self._parts(node, repeated=repeated):
            glob = glob or is_glob
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
        return Word(source, tuple(parts) or ("",), glob, source.startswith("~"))

    def _parts(self, node: "Node", *, repeated: bool) -> Iterator[Part]:
        text = self.text(node)
        match node.type:
            case "word" | "number" | "variable_name" | "special_variable_name" | "extglob_pattern" | "regex":
                yield from self._plain(node, text)
            case "raw_string":
                if "'" in text[1:-1]:
                    self.problem("its quotes can't be read")
                yield text[1:-1], False
            case "ansi_c_string":
                decoded = ansi_quoted(text)
                yield (Hole("quoting") if decoded is None else decoded), False
            case "string" | "translated_string":
                yield from self._string(node, repeated=repeated)
            case "concatenation" | "command_name":
                yield from self._concatenation(node, repeated=repeated)
            case _:
                yield self._special(node, text, repeated=repeated), False

    def _special(self, node: "Node", text: str, *, repeated: bool) -> str | Hole:
        """Return what an expansion stands for. Numbers are 0: as far as paths and options go, all are alike."""
        match node.type:
            case "simple_expansion":
                return "0" if text[1:] in _NUMERIC else Hole("variable", text[1:])
            case "expansion":
                return self._expansion(node, repeated=repeated)
            case "command_substitution" | "process_substitution":
                self.walk(node, piped=False, repeated=repeated)
                return "/dev/fd/63" if text.startswith("<(") else Hole("substitution")
            case "arithmetic_expansion":
                if not _NUMBERS.fullmatch(text):
                    self.problem("it computes with variables")
                return "0"
            case "brace_expression":
                if not _RANGE.fullmatch(text):
                    self.problem("it holds braces that can't be read")
                return "0"
            case kind:
                if node.is_named:
                    self.problem(f"it uses shell syntax that is not looked into ({kind.replace('_', ' ')})")
                return text

    def _concatenation(self, node: "Node", *, repeated: bool) -> Iterator[Part]:
        text = self.text(node)
        self.gaps(node, _JOINED)
        for child in node.children:
            if child.type == "word" and "{" in self.text(child) and not is_placeholder(text):
                self.problem("it holds braces that can't be read")
            yield from self._parts(child, repeated=repeated)

    def _plain(self, node: "Node", text: str) -> Iterator[Part]:
        if node.children:
            self.problem("it holds a word that can't be read")
        if node.type in {"word", "number"}:
            self._check_plain(text)
        yield unquoted(text), has_glob(text)

    def _check_plain(self, text: str) -> None:
        if not _PLAIN.fullmatch(text):
            self.problem("it holds a word that can't be read")

    def _string(self, node: "Node", *, repeated: bool) -> Iterator[Part]:
        if node.type == "translated_string":
            yield Hole("quoting"), False
            node = node.named_children[0]
        position = node.start_byte + 1
        for child in node.children[1:-1]:
            yield self._data[position : child.start_byte].decode(), False
            position = child.end_byte
            if child.type == "string_content" or not child.is_named:
                content = self.text(child)
                if re.search(r"(?<!\\)(?:\\\\)*(?:`|\$[({])", content):
                    self.problem("its quotes hold a substitution that can't be read")
                yield double_quoted(content), False
            else:
                for part, _glob in self._parts(child, repeated=repeated):
                    yield part, False
        yield self._data[position : node.end_byte - 1].decode(), False

    def _expansion(self, node: "Node", *, repeated: bool) -> str | Hole:
        """``${name}`` and its plainer forms; others may run what a variable holds."""
        name = ""
        for child in node.children:
            if child.type in {"variable_name", "special_variable_name"} and not name:
                name = self.text(child)
            elif child.is_named and child.type in WORD_KINDS:
                self.word(child, repeated=repeated)
            elif self.text(child) not in _SAFE_OPERATORS:
                self.problem("it expands a variable in a way that is not looked into")
            elif self.text(child) in {"=", ":="}:
                self._script.assignments.append((name, Word(self.text(node), (Hole("variable"),))))
        plain = re.fullmatch(r"\$\{\w+\}", self.text(node)) is not None
        return Hole("variable", name if plain else "")

    def gaps(self, node: "Node", allowed: "re.Pattern[str]") -> None:
        """What lies between the parts of a node is nothing but space: the parser left nothing out."""
        position = node.start_byte
        for child in node.children:
            gap = self._data[position : child.start_byte].decode()
            if not allowed.fullmatch(gap):
                self.problem("part of it can't be read")
            position = max(position, child.end_byte)
        if not allowed.fullmatch(self._data[position : node.end_byte].decode()):
            self.problem("part of it can't be read")

    def text(self, node: "Node") -> str:
        """Return a node as it is written."""
        return self._data[node.start_byte : node.end_byte].decode()

    def problem(self, problem: str) -> None:
        """Note why the script can't be understood."""
        if problem not in self._script.problems:
            self._script.problems.append(problem)


def is_placeholder(source: str) -> bool:
    """``{}`` in a word stands for a file's name in ``find`` and ``xargs``; the shell leaves it alone."""
    return "{" not in source.replace("{}", "") and "}" not in source.replace("{}", "")
