"""Textual's driver for browsers: what it draws and what is typed travel in packets over the standard streams."""

import os
from codecs import getincrementaldecoder
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver

from tui_agent.ui.background import AnswerParser
from tui_agent.ui.driver import TerminalGone

if TYPE_CHECKING:
    from textual.app import App


class BrowserDriver(WebDriver):
    """Draws for a tab of a browser, and tells the app when the tab is closed or the server is gone."""

    def __init__(
        self,
        app: "App[Any]",
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._write = partial(self._write_all)

    def run_input_thread(self) -> None:
        """Hand what is typed to the app until the tab is closed, or the server ends."""
        decode = getincrementaldecoder("utf-8")("replace").decode
        parser = AnswerParser(self._debug)
        packets = ByteStream()
        for data in self._input_reader:
            for kind, payload in packets.feed(data) if data else ():
                if kind == "D":
                    for message in parser.feed(decode(payload)):
                        self.process_message(message)
                else:
                    self._on_meta(kind, payload)
            for message in parser.tick():
                self.process_message(message)
        if not self.exit_event.is_set():
            self.send_message(TerminalGone())

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Do what the server asks; a closed tab ends the program like a closed terminal."""
        if packet_type == "quit":
            self.send_message(TerminalGone())
        else:
            super().on_meta(packet_type, payload)

    def _write_all(self, data: bytes) -> int:
        """Write to the server; a pipe may take less than all of it at once, and nothing when the server is gone."""
        left = data
        try:
            while left:
                left = left[os.write(self.fileno, left) :]
        except BrokenPipeError:
            return 0
        return len(data)
