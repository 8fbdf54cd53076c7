"""An add-on for tui-agent with one tool; ``pip install .`` installs it."""

from tui_agent import AddOn, ToolError


def count_words(text: str, shortest: int = 1) -> int:
    """Count the words of a text that have at least ``shortest`` letters."""
    if shortest < 1:
        raise ToolError("shortest has to be 1 or more.")
    return sum(len(word) >= shortest for word in text.split())


def register(add_on: AddOn) -> None:
    add_on.tool(count_words)
