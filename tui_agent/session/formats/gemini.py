"""Gemini CLI's chats: JSON lines of messages and of changes to them, in older versions one JSON document.

A message that is written again under its id takes the place of the one before; ``$set`` with ``messages`` says which
messages the chat has now, ``$rewindTo`` which one it goes back before. Seen in files of version 0.5x; the project's
directory stands in the file ``.project_root`` beside the chats.
"""

from collections.abc import Iterable, Iterator, Sequence

from tui_agent.session.formats.gemini_messages import GeminiMessages
from tui_agent.session.formats.incoming import Builder, IncomingSession
from tui_agent.session.formats.reading import ImportLimits, NoConversation, Node
from tui_agent.session.formats.source import SourceFile

__all__ = ["is_file", "is_line", "project_of", "read"]


def is_line(node: Node) -> bool:
    return {"sessionId", "projectHash", "startTime"} <= node.value.keys()


def is_file(source: SourceFile) -> bool:
    """Whether a file is one document that holds a whole chat."""
    if not source.is_document:
        return False
    document = source.document()
    return is_line(document) and isinstance(document.value.get("messages"), list)


def project_of(source: SourceFile) -> str:
    """Return the directory that a file beside the chats names."""
    try:
        return (source.path.absolute().parent.parent / ".project_root").read_text(encoding="utf-8").strip()[:4096]
    except (OSError, UnicodeDecodeError):
        return ""


def read(source: SourceFile) -> Iterator[Sequence[IncomingSession]]:
    """Yield the session of a chat's lines, or of the one document it is.

    Raises:
        ImportRefused: something in it is not what it should be.
    """
    nodes = [source.document()] if is_file(source) else source.lines()
    yield [_Reader(source.limits).read(nodes, project_of(source))]


class _Reader:
    def __init__(self, limits: ImportLimits) -> None:
        self._make = Builder("Gemini CLI", limits)
        self._spans: dict[str, tuple[int | None, int | None]] = {}
        """The entry each message came after, and the last one made of it."""
        self._messages = GeminiMessages(self._make, "gemini")

    def read(self, nodes: Iterable[Node | None], cwd: str) -> IncomingSession:
        name, title, created = "", "", 0
        for node in nodes:
            if node is None:
                continue
            if node.has("sessionId"):
                name = name or node.text("sessionId")
                created = created or node.time("startTime")
                title = node.text("summary", "") or title
            if node.has("$rewindTo"):
                self._rewind(node.text("$rewindTo"))
            elif node.has("$set"):
                change = node.node("$set")
                title = change.text("summary", "") or title
                if change.has("messages"):
                    self._become(change.nodes("messages"))
            elif node.has("messages"):
                self._become(node.nodes("messages"))
            elif node.has("id"):
                self._message(node)
        if not len(self._make.session.entries):
            raise NoConversation("It holds no conversation of Gemini CLI.")
        return self._make.finish(name=name, cwd=cwd, title=title, created_at=created, leaf=self._make.last)

    def _become(self, messages: list[Node]) -> None:
        """Let the chat be a list of messages: along those that are here in this order, then with what is new."""
        self._make.pass_over(None, None)
        for message in messages:
            name = message.text("id", "")
            before, after = self._spans.get(name, (None, None))
            if name in self._spans and before == self._make.last:
                self._make.pass_over(None, after)
            else:
                self._messages.forget(name)
                self._spans.pop(name, None)
                self._message(message)

    def _rewind(self, name: str) -> None:
        if name in self._spans:
            self._make.pass_over(None, self._spans[name][0])

    def _message(self, message: Node) -> None:
        name, before = message.text("id", ""), self._make.last
        at = message.time("timestamp")
        match kind := message.text("type", ""):
            case "user":
                self._messages.add_user(message, at)
            case "gemini":
                self._messages.add_answer(message, name, at)
            case _:
                self._make.leave_out(f"“{kind[:40]}” message")
        self._spans[name] = (self._spans.get(name, (before, None))[0], self._make.last)
