"""The wrapping texts of a request, as data: their words live in ``prompts/``, the caller loads them."""

from collections.abc import Callable
from dataclasses import fields

from tui_agent.lazy import LazyPattern, frozen

_SLOT = LazyPattern(r"\{(\w+)\}")


@frozen
class Templates:
    """One field per file of the same name in ``prompts/``.

    The defaults are bare structure without words.

    ``{name}`` in a template is a slot; which ones there are is said per field.
    """

    reminder: str = "<system-reminder>\n{message}\n</system-reminder>"
    """A user message sent while the agent was working: ``message``."""
    compaction_summary: str = "<summary>\n{summary}\n</summary>\n\n{blocks}"
    """Replaces compacted history: ``summary``, ``blocks`` (the details code carried through)."""
    branch_summary_message: str = "<summary>\n{summary}\n</summary>\n\n{blocks}"
    """Replaces a branch that was left: ``summary``, ``blocks``, ``from_id``."""
    attached_file: str = '<file path="{path}">\n{text}\n</file>'
    """A file the user attached: ``path``, ``text``."""
    user_shell: str = "$ {command}\n{output}\n[{status}]"
    """A command the user ran: ``command``, ``output``, ``status``."""
    placeholder_pruned: str = '[Old tool result content cleared: {gist} — recall("#{id}")]'
    """Replaces a pruned output: ``gist``, ``id``."""
    placeholder_image: str = '[image: {name} — recall("#{id}")]'
    """Replaces a pruned image: ``name``, ``id``."""
    placeholder_masked: str = '[Hidden: {gist} — recall("#{id}")]'
    """Replaces an entry the user masked: ``gist``, ``id``."""
    reference_lost: str = (
        "[As #{id} had it, which has left the context since: read the file again, or "
        'recall("#{id}").]'
    )
    """Said in place of “unchanged, see #id” when that is no longer in view: ``id``."""
    tool_images: str = "[images]"
    """Comes before images of tool results where those can only be in a user message."""
    conversation_start: str = "[…]"
    """A first user message for providers that insist on one."""
    empty_output: str = "(no output)"
    """The output of a tool that printed nothing."""

    @classmethod
    def load(cls, prompt: Callable[[str], str]) -> "Templates":
        return cls(**{field.name: prompt(field.name) for field in fields(cls)})


def fill(template: str, **values: str) -> str:
    """Put values into a template's slots in one pass, so that braces within a value stay as they are."""
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), template).strip()
