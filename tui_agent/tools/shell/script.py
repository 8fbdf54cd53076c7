"""What a command line holds: everything in it that runs or touches a file.

The order and nesting of commands are not kept: whoever judges them takes each as if it ran. What is no part of the
language as understood here, or could mean something else to the shell than to the parser, is a problem, and a
command with problems is asked about.
"""

from dataclasses import dataclass, field

from tui_agent.tools.shell.words import Word


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection to or from a file."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether it may change the file."""
        return ">" in self.operator


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command. ``fed`` is the text it reads from a here-document, "" for none; ``piped``: from a pipe."""

    words: tuple[Word, ...]
    source: str
    assignments: tuple[tuple[str, Word], ...] = ()
    fed: str = ""
    piped: bool = False
    repeated: bool = False
    """Inside a loop or function: may run more than once."""
    sure: bool = False
    """Everything after it on the command line runs only if it worked: ``cd a && …``."""


@dataclass(slots=True)
class Script:
    """Everything in a command line, in the order written."""

    commands: list[Simple] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    assignments: list[tuple[str, Word]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What the variables of loops over literal words can be."""
