"""Draws every page, question and box in every size, in dark, light and no colour, to be looked at.

``python -m scripts.every_view FOLDER [VIEW...]`` writes an SVG of each; `tests/ui/test_every_view.py` judges them.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from tests.support.every_view import SIZES, VIEWS

LOOKS = {"dark": "textual-dark", "light": "textual-light", "none": ""}
"""The theme of each look."""


async def draw(name: str, look: str, folder: Path) -> None:
    os.environ.pop("NO_COLOR", None)
    if look == "none":
        os.environ["NO_COLOR"] = "1"
    view = VIEWS[name]
    with tempfile.TemporaryDirectory() as root:
        stage = view.make(Path(root))
        async with stage.run(SIZES[-1]) as pilot:
            stage.app.theme = LOOKS[look] or stage.app.theme
            await view.act(stage, pilot)
            for width, height in SIZES:
                await pilot.resize_terminal(width, height)
                await pilot.pause()
                file = f"{name}-{width}x{height}-{look}.svg".replace("/", "command")
                svg = stage.app.export_screenshot()
                (folder / file.replace(" ", "_")).write_text(svg, encoding="utf-8")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or VIEWS:
        for look in LOOKS:
            asyncio.run(draw(name, look, folder))


if __name__ == "__main__":
    main()
