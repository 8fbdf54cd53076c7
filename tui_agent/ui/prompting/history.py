"""The prompt's history: steps through earlier messages; the draft is the newest position."""

from collections.abc import Callable, Sequence


class PromptHistory:
    """A position in the list of earlier messages.

    ``load`` returns these newest first; it is called at the first step back.
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
        """The draft from before the first step back."""

    def older(self, shown: str) -> str | None:
        """Return the message before the shown one; None at the oldest. If ``shown`` is the draft, it is kept."""
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
        """Return the message after the shown one, the draft at the end; None if the draft is shown."""
        if not self.walking:
            return None
        self._position -= 1
        self.walking = self._position >= 0
        if self.walking:
            return self._texts()[self._position]
        return self.draft

    def add(self, text: str) -> None:
        """Add a sent message, and return to the newest position."""
        if not self._sent or self._sent[0] != text:
            self._sent.insert(0, text)
        self.reset()

    def rewrite(self, clean: Callable[[str], str]) -> None:
        """Replace all texts by what ``clean`` returns for each; stored ones are loaded again."""
        self._sent = [clean(text) for text in self._sent]
        self.draft = clean(self.draft)
        self._is_loaded = False

    def reset(self) -> None:
        """Return to the newest position: the user edited the shown text, which is the draft now."""
        self._position = -1
        self.walking = False

    def _texts(self) -> list[str]:
        if not self._is_loaded:
            self._is_loaded = True
            sent = set(self._sent)
            self._loaded = [text for text in self._load() if text not in sent]
        return [*self._sent, *self._loaded]
