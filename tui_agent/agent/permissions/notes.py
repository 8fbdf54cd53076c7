"""What the user says with a refusal: how the model reads it, and how it is found again in what was stored."""

from typing import Final

_SAYS: Final = " The user says: "


def with_note(refusal: str, note: str) -> str:
    """Return what the model is told: why its call did not run, and the user's words if there are any."""
    return f"{refusal}{_SAYS}{note}" if note else refusal


def note_of(told: str) -> str:
    """Return the user's words from what the model was told, empty when there are none."""
    return told.partition(_SAYS)[2]
