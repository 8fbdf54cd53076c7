"""Walking through the user's earlier texts, with the draft kept as the newest position."""

from collections.abc import Callable, Sequence


class PromptHistory:
    """A position in the list of earlier messages.

    ``load`` returns them newest first and is called at the first step back, so that starting costs
    nothing.
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
        """The draft from before the walk began."""

    def older(self, shown: str) -> str | None:
        """Return the message before the one shown, None at the oldest.

        ``shown`` is kept when it is the draft.
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
        """Return the message after the one shown, the draft at the end, None when the draft is shown."""
        if not self.walking:
            return None
        self._position -= 1
        self.walking = self._position >= 0
        if self.walking:
            return self._texts()[self._position]
        return self.draft

    def add(self, text: str) -> None:
        """Remember a message that was sent, and go back to the newest position."""
        if not self._sent or self._sent[0] != text:
            self._sent.insert(0, text)
        self.reset()

    def rewrite(self, clean: Callable[[str], str]) -> None:
        """Replace the texts by what ``clean`` makes of them; stored ones are read again."""
        self._sent = [clean(text) for text in self._sent]
        self.draft = clean(self.draft)
        self._is_loaded = False

    def reset(self) -> None:
        """Forget the position: the user edited the text shown, it is the draft now."""
        self._position = -1
        self.walking = False

    def _texts(self) -> list[str]:
        if not self._is_loaded:
            self._is_loaded = True
            sent = set(self._sent)
            self._loaded = [text for text in self._load() if text not in sent]
        return [*self._sent, *self._loaded]
