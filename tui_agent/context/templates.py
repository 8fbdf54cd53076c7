"""Templates of the texts around content in a request. The caller loads them from ``prompts/``."""

from collections.abc import Callable
from dataclasses import fields

from tui_agent.lazy import LazyPattern, frozen

_SLOT = LazyPattern(r"\{(\w+)\}")


@frozen
class Templates:
    """The templates; each field has the name of its file in ``prompts/``.

    Each field's docstring names the template's slots (``{name}`` in the text). The defaults are
    minimal texts with the same slots.
    """

    reminder: str = "<system-reminder>\n{message}\n</system-reminder>"
    """Text of a message that the user sent while the agent was working. Slot: ``message``."""
    compaction_summary: str = "<summary>\n{summary}\n</summary>\n\n{blocks}"
    """Text that replaces summarised history. Slots: ``summary``, ``blocks`` (see
    `rendering.carried_blocks`)."""
    branch_summary_message: str = "<summary>\n{summary}\n</summary>\n\n{blocks}"
    """Text around the summary of a branch that the user left. Slots: ``summary``, ``blocks``,
    ``from_id``."""
    attached_file: str = '<file path="{path}">\n{text}\n</file>'
    """Text around a file that the user attached. Slots: ``path``, ``text``."""
    user_shell: str = "$ {command}\n{output}\n[{status}]"
    """Text that describes a command that the user ran. Slots: ``command``, ``output``,
    ``status``."""
    placeholder_pruned: str = '[Old tool result content cleared: {gist} — recall("#{id}")]'
    """Text that replaces a pruned output. Slots: ``gist``, ``id``."""
    placeholder_image: str = '[image: {name} — recall("#{id}")]'
    """Text that replaces an image that a prune removed. Slots: ``name``, ``id``."""
    placeholder_masked: str = '[Hidden: {gist} — recall("#{id}")]'
    """Text that replaces an entry that the user cleared. Slots: ``gist``, ``id``."""
    reference_lost: str = (
        "[As #{id} had it, which has left the context since: read the file again, or "
        'recall("#{id}").]'
    )
    """Text that replaces the result of a read, "unchanged since entry ``id``", when that entry is
    no longer sent."""
    tool_images: str = "[images]"
    """Text that precedes images of tool results that are sent in a user message."""
    conversation_start: str = "[…]"
    """Text of the first user message for a history that no longer contains any, because providers
    require a history to start with a user message."""
    empty_output: str = "(no output)"
    """Text that replaces the output of a tool that printed nothing."""

    @classmethod
    def load(cls, prompt: Callable[[str], str]) -> "Templates":
        return cls(**{field.name: prompt(field.name) for field in fields(cls)})


def fill(template: str, **values: str) -> str:
    """Return a template with its slots filled and whitespace stripped from its ends.

    Unknown slots, and braces in values, stay unchanged.
    """
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), template).strip()
