"""Templates for the texts around content in a request; the caller loads them from ``prompts/``."""

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
    """A user message sent while the agent was working: ``message``."""
    compaction_summary: str = "<summary>\n{summary}\n</summary>\n\n{blocks}"
    """Replaces summarised history: ``summary``, ``blocks`` (`rendering.carried_blocks`)."""
    branch_summary_message: str = "<summary>\n{summary}\n</summary>\n\n{blocks}"
    """The summary of a branch that was left: ``summary``, ``blocks``, ``from_id``."""
    attached_file: str = '<file path="{path}">\n{text}\n</file>'
    """A file the user attached: ``path``, ``text``."""
    user_shell: str = "$ {command}\n{output}\n[{status}]"
    """A command the user ran: ``command``, ``output``, ``status``."""
    placeholder_pruned: str = '[Old tool result content cleared: {gist} — recall("#{id}")]'
    """Replaces a pruned output: ``gist``, ``id``."""
    placeholder_image: str = '[image: {name} — recall("#{id}")]'
    """Replaces a pruned image: ``name``, ``id``."""
    placeholder_masked: str = '[Hidden: {gist} — recall("#{id}")]'
    """Replaces an entry that the user cleared: ``gist``, ``id``."""
    reference_lost: str = (
        "[As #{id} had it, which has left the context since: read the file again, or "
        'recall("#{id}").]'
    )
    """Replaces a read's note "unchanged since entry ``id``" when that entry is no longer sent."""
    tool_images: str = "[images]"
    """Precedes images of tool results that are sent in a user message."""
    conversation_start: str = "[…]"
    """The first user message of a history that has lost its own; providers require one."""
    empty_output: str = "(no output)"
    """Replaces the output of a tool that printed nothing."""

    @classmethod
    def load(cls, prompt: Callable[[str], str]) -> "Templates":
        return cls(**{field.name: prompt(field.name) for field in fields(cls)})


def fill(template: str, **values: str) -> str:
    """Return a template with its slots filled and whitespace stripped from its ends.

    Unknown slots, and braces in values, stay unchanged.
    """
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), template).strip()
