"""Creates the context edits that leave out the images and reasoning that a provider refused.

``model`` finds out what was refused; `Answerer` appends the edits.
"""

from collections.abc import Iterator, Sequence

from tui_agent.model.protocol import PartLeftOut
from tui_agent.session.entries import REASONING, AssistantEntry, ContextEditEntry, Entry
from tui_agent.session.path_queries import newest


def edits_without(path: Sequence[Entry], refused: PartLeftOut) -> Iterator[ContextEditEntry]:
    """Yield the context edits that leave out the parts of a session path that the provider refused.

    There is one edit for each entry with refused images. For reasoning, there is a single edit on
    the newest answer, which covers all reasoning up to that answer.
    """
    for entry in path if refused.blobs else ():
        images = [image for image in entry.images if image.blob in refused.blobs]
        if images:
            word = "document" if images[0].is_document else "picture"
            names = ", ".join(image.path or image.mime for image in images)
            yield ContextEditEntry(
                target=entry.id,
                action="leave_out",
                parts=tuple(image.blob for image in images),
                note=f"{word} {names} removed: the provider can't read it",
            )
    answer = None
    if refused.reasoning:
        answer = newest(path, AssistantEntry)
    if answer is not None:
        note = f"reasoning up to #{answer.id} removed: the provider rejects it"
        yield ContextEditEntry(target=answer.id, action="leave_out", parts=(REASONING,), note=note)
