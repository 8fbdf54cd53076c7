"""Creates the messages in which the program asks the model to correct or continue its work.

The messages repeat the user's task. `nudge` appends its message, or ends the run if an earlier such
message had no effect; callers append the other messages. Messages that only state facts (jobs,
instructions, hooks) are created elsewhere. The task is repeated because a small model that has to
correct a mistake forgets what it was doing.
"""

from collections.abc import Callable, Sequence

from tui_agent.agent.calls.call import StopRunError
from tui_agent.agent.channel import Journal
from tui_agent.context.templates import fill
from tui_agent.context.truncation import cut_middle
from tui_agent.context.verdict import Verdict
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    Entry,
    TextPart,
    UserEntry,
    UserPart,
    is_by_user,
    typed_text,
)

UNREAD_CALL = "unread_call"
"""Value of ``UserEntry.synthetic`` in the message sent after an answer whose calls are unreadable
text."""
SAYS_NOTHING = "says_nothing"
"""Value of ``UserEntry.synthetic`` in the message sent after an answer that is empty, or that
promises a call without making it."""
_NUDGES = (UNREAD_CALL, SAYS_NOTHING)
TASK_CHARS = 600
"""Maximum characters of the user's task that are repeated in a reminder."""
_STOPPED = {
    Verdict.SILENT: "The model gave no answer, even after a reminder.",
    Verdict.THINKING: "The model only thought and gave no answer, even after a reminder.",
    Verdict.PROMISED: "The model announced a tool call but made none, even after a reminder.",
}


def reminder(
    path: Sequence[Entry], reason: str, text: str, before: Sequence[UserPart] = ()
) -> UserEntry:
    """Return a message to the model: the parts ``before``, then ``text``, then the user's task.

    The task is the user's last message on the session path. ``reason`` becomes
    ``UserEntry.synthetic``. The message is not appended.
    """
    task = task_of(path)
    said = text
    if task:
        said = f"{text.strip()}\n\nThe user's task: {task}"
    return UserEntry(parts=(*before, TextPart(text=said)), synthetic=reason)


def task_of(path: Sequence[Entry]) -> str:
    """Return the user's last message, shortened; "" if there is none on the session path.

    If that message was summarised, it is taken from the compaction's entry.
    """
    for entry in reversed(path):
        if is_by_user(entry):
            return cut_middle(typed_text(entry.parts).strip(), TASK_CHARS)
        if isinstance(entry, CompactionEntry) and entry.details.user_messages:
            return cut_middle(entry.details.user_messages[-1], TASK_CHARS)
    return ""


def nudge(
    journal: Journal, prompt: Callable[[str], str], verdict: Verdict, unread: str = ""
) -> None:
    """Append a message that asks the model to correct its newest answer.

    ``unread`` says why calls in the answer can't be read; "" if it contains no such calls.

    Raises:
        StopRunError: the model was asked before and has made no call since.
    """
    path = journal.session.active_path()
    if _was_nudged(path[:-1]):
        if unread:
            raise StopRunError(
                f"The model writes its tool calls as text that can't be read. {unread}"
            )
        raise StopRunError(_STOPPED[verdict])
    if unread:
        text = fill(prompt(UNREAD_CALL), problem=unread)
        journal.append(reminder(path, UNREAD_CALL, text))
    else:
        journal.append(reminder(path, SAYS_NOTHING, prompt(SAYS_NOTHING)))


def _was_nudged(path: Sequence[Entry]) -> bool:
    for entry in reversed(path):
        if isinstance(entry, UserEntry) and entry.synthetic in _NUDGES:
            return True
        if is_by_user(entry):
            return False
        if isinstance(entry, AssistantEntry) and entry.tool_calls:
            return False
    return False
