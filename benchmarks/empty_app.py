"""The smallest Textual application that answers a key: what start-up is compared with."""

from textual.app import App, ComposeResult
from textual.events import Key
from textual.widgets import Static


class EmptyApp(App[None]):
    """Shows the last key that was pressed."""

    def compose(self) -> ComposeResult:
        yield Static("ready")

    def on_key(self, event: Key) -> None:
        self.query_one(Static).update(event.character or event.key)


if __name__ == "__main__":
    EmptyApp().run()
