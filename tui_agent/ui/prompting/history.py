"""The prompt's history: steps back through earlier messages, and forward again to the draft."""

from collections.abc import Callable, Sequence


class PromptHistory:
    """Keeps the earlier messages, and which of them the prompt shows.

    ``load`` returns the stored messages, newest first; it is called at the first step back.
    """

    def __init__(self, load: Callable[[], Sequence[str]]) -> None:
        self._load = load
        self._loaded: list[str] = []
        self._is_loaded = False
        self._sent: list[str] = []
        self._position = -1
        self.walking = False
        """Whether an earlier message is shown instead of the draft."""
        self.draft = ""
        """The prompt's text before the first step back in the history."""

    def older(self, shown: str) -> str | None:
        """Step back and return the next older message; None if there is none.

        ``shown`` is the prompt's text, kept as `draft` at the first step.
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
        """Step forward and return the next newer message, or the draft after the newest one.

        Returns None if the prompt shows no earlier message.
        """
        if not self.walking:
            return None
        self._position -= 1
        self.walking = self._position >= 0
        if self.walking:
            return self._texts()[self._position]
        return self.draft

    def add(self, text: str) -> None:
        """Add a sent message as the newest, unless it repeats the last one; then call `reset`."""
        if not self._sent or self._sent[0] != text:
            self._sent.insert(0, text)
        self.reset()

    def rewrite(self, clean: Callable[[str], str]) -> None:
        """Apply ``clean`` to the draft and the messages added since the start.

        The stored messages are loaded again at the next step.
        """
        self._sent = [clean(text) for text in self._sent]
        self.draft = clean(self.draft)
        self._is_loaded = False

    def reset(self) -> None:
        """Treat the prompt's text as the draft, no longer as an earlier message."""
        self._position = -1
        self.walking = False

    def _texts(self) -> list[str]:
        if not self._is_loaded:
            self._is_loaded = True
            sent = set(self._sent)
            self._loaded = [text for text in self._load() if text not in sent]
        return [*self._sent, *self._loaded]
