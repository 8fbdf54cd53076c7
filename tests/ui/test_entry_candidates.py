"""Entries in the completion after ``#``."""

from tui_agent.session.entries import AssistantEntry, TextPart
from tui_agent.session.previews import preview_of
from tui_agent.session.records import EntryHeader
from tui_agent.ui.prompting.sources import _entry


def label_of(entry: AssistantEntry) -> str:
    return " ".join(_entry(EntryHeader(7, None, "assistant", preview_of(entry), 1, 0, 1), 1.0, 1).label.split())


def test_an_answer_that_is_only_an_error_is_called_one() -> None:
    assert label_of(AssistantEntry(parts=(), model="m", error="No key was found.")) == "#7 error No key was found."
    said = AssistantEntry(model="m", error="cut off", parts=(TextPart(text="Looking."),))
    assert label_of(said) == "#7 answer Looking."
