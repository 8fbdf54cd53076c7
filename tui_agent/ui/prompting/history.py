"""The prompt's history: goes back through earlier messages, and forward again to the draft."""

from collections.abc import Callable, Sequence


class PromptHistory:
    """The prompt's history: a project's earlier messages, and which of them the prompt shows now.

    ``load`` returns the project's stored messages, newest first; it is called at the first step
    back.
    """

    def __init__(self, load: Callable[[], Sequence[str]]) -> None:
        self._load = load
        self._loaded: list[str] = []
        self._is_loaded = False
        self._sent: list[str] = []
        self._sent_elsewhere: dict[str, list[str]] = {}
        """The messages that were added in other projects, by the project's directory."""
        self._project = ""
        self._position = -1
        self.walking = False
        """Whether the prompt shows a message from the history instead of the draft."""
        self.draft = ""
        """The prompt's text before the user went back in the history."""

    def older(self, shown: str) -> str | None:
        """Go back to the next older message and return it; None if there is no older message.

        ``shown`` is the prompt's text. At the first step, it is kept as the `draft`.
        """
        texts = self._texts()
        step = self._position + 1
        if step >= len(texts):
            return None
        if not self.walking:
            self.draft = shown
        self._position = step
        self.walking = True
        return texts[step]

    def newer(self) -> str | None:
        """Go forward to the next newer message or, after the newest one, to the draft.

        Returns the message or the draft; None if the prompt shows no earlier message.
        """
        if not self.walking:
            return None
        self._position -= 1
        self.walking = self._position >= 0
        if self.walking:
            return self._texts()[self._position]
        return self.draft

    def add(self, text: str) -> None:
        """Add a sent message to the history as the newest, and call `reset`.

        A message that repeats the last one is not added again.
        """
        if not self._sent or self._sent[0] != text:
            self._sent.insert(0, text)
        self.reset()

    def enter(self, project: str) -> None:
        """Switch to the history of a project, given by its directory.

        Messages added before the first call belong to the first project.
        """
        if project == self._project:
            return
        if self._project:
            self._sent_elsewhere[self._project] = self._sent
            self._sent = self._sent_elsewhere.pop(project, [])
            self._is_loaded = False
            self.reset()
        self._project = project

    def rewrite(self, clean: Callable[[str], str]) -> None:
        """Apply ``clean`` to the draft and to the messages that were added since the start.

        The stored messages are loaded again at the next step.
        """
        self._sent = [clean(text) for text in self._sent]
        for texts in self._sent_elsewhere.values():
            texts[:] = [clean(text) for text in texts]
        self.draft = clean(self.draft)
        self._is_loaded = False

    def reset(self) -> None:
        """Leave the history: treat the prompt's text as the draft, not as an earlier message."""
        self._position = -1
        self.walking = False

    def _texts(self) -> list[str]:
        if not self._is_loaded:
            self._is_loaded = True
            sent = set(self._sent)
            self._loaded = [text for text in self._load() if text not in sent]
        return [*self._sent, *self._loaded]
