"""Cuts a body into events, however the bytes were cut on their way."""


class EventDecoder:
    """Decodes ``text/event-stream`` (HTML standard, section 9.2). Comments, ids and retry times are left out."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._event = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """Take bytes and return the events that are complete now: name, "" where there is none, and data."""
        if b"\n" not in data and b"\r" not in data:
            self._rest += data
            return []
        if self._rest:
            data = bytes(self._rest) + data
        if b"\r" in data:
            # The first half of a line's end may be all that has come of it.
            half = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(half).replace(b"\r\n", b"\n").replace(b"\r", b"\n") + half
        *lines, rest = data.split(b"\n")
        self._rest = bytearray(rest)
        return self._take(lines)

    def end(self) -> list[tuple[str, str]]:
        """Return the event that was not followed by an empty line, if there is one."""
        rest, self._rest = bytes(self._rest).rstrip(b"\r"), bytearray()
        return self._take([rest, b""])

    def _take(self, lines: list[bytes]) -> list[tuple[str, str]]:
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6 if line[5:6] == b" " else 5 :].decode("utf-8", "replace"))
            elif line.startswith(b"event:"):
                self._event = line[6:].decode("utf-8", "replace").strip()
            elif not line:
                if self._data:
                    events.append((self._event, "\n".join(self._data)))
                    self._data.clear()
                self._event = ""
        return events


class DocumentDecoder:
    """Decodes JSON: one document a line, as Ollama sends them, or a single one of many lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """Take bytes and return the documents that are complete now, without a name."""
        self._rest += data
        if b"\n" not in data:
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        # The first line of a document of many is never a whole one.
        if not all(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines if line.strip()):
            return []
        self._rest = bytearray(rest)
        return [("", line.decode("utf-8", "replace")) for line in lines if line.strip()]

    def end(self) -> list[tuple[str, str]]:
        """Return what was not followed by the end of a line."""
        rest, self._rest = bytes(self._rest), bytearray()
        return [("", rest.decode("utf-8", "replace"))] if rest.strip() else []
