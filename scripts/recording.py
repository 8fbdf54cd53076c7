"""Draws docs/images/tour.svg: the real program with the demo model, as an animated picture of its own frames.

Like the pictures of scripts/screenshots.py it is the same on every machine.
"""

import asyncio
import re
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

# First: it sets the home directory that the pictures show.
from scripts.screenshots import IMAGES, TIMEOUT, Scene, fill, stage
from tui_agent.agent.events import PermissionAsked, RunEnded
from tui_agent.ui.screens.compact import CompactScreen
from tui_agent.ui.screens.context import ContextScreen
from tui_agent.ui.screens.tree import TreeScreen

SIZE = (104, 30)
SECONDS = 3.2
"""How long a frame is shown."""
CAPTION_HEIGHT = 34
RESTS = 6
"""Looks in a row, 50 ms apart, that must show the same."""

Frames = list[tuple[str, str]]


async def at_rest(scene: Scene) -> str:
    """Return the picture once it has stayed the same for a while: text is shown a few times a second."""
    seen: list[str] = []
    async with asyncio.timeout(TIMEOUT):
        while len(seen) < RESTS or len(set(seen[-RESTS:])) > 1:
            await scene.pilot.pause(0.05)
            seen.append(scene.app.export_screenshot(title="tui-agent"))
    return seen[-1]


async def tour(scene: Scene) -> Frames:
    """Go through the program; return each frame with what is said under it."""
    frames: Frames = []

    async def show(caption: str) -> None:
        frames.append((caption, await at_rest(scene)))

    prompt = scene.app.main.prompt
    prompt.set_draft("fix the bug")
    await show("Describe a task.")
    prompt.set_draft("")
    await scene.say("fix the bug", PermissionAsked, keys=("y",))
    await show(
        "The agent works, and asks before it changes a file. The question shows the whole diff."
    )
    await scene.after(PermissionAsked, lambda: scene.pilot.press("y"))
    await scene.after(RunEnded, lambda: scene.pilot.press("y"))
    await show("Done. Blue edge: the model sees these blocks. Gauge below: how full its window is.")
    await scene.opened("ctrl+t", TreeScreen)
    await show("Ctrl+T: every branch of the session. Go to any entry, and the files go back too.")
    await scene.pilot.press("escape")
    await fill(scene)
    await show(
        "The window fills. Old outputs are cleared, a line marks the place, and each can be restored."
    )
    await scene.opened("f4", CompactScreen)
    await show(
        "F4: compact. The preview shows the part that a summary replaces, and the part that stays."
    )
    await scene.pilot.press("enter")
    await show("Edit the summary before it is applied.")
    await scene.pilot.press("ctrl+s")
    await show("The grey edge marks the summarised blocks. Nothing is lost.")
    await scene.opened("ctrl+g", ContextScreen)
    await show("Ctrl+G: every block of the next request. Pin, mask, drop or restore any of them.")
    await scene.pilot.press("escape")
    await scene.pilot.press("f5")
    await show("F5: undo, even the compaction.")
    return frames


def animated(frames: Frames) -> str:
    """Return one picture that shows frame after frame, each with its caption."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', frames[0][1])
    assert box is not None
    width, height = float(box[1]), float(box[2])
    share, whole = 100 / len(frames), SECONDS * len(frames)
    style = (
        f"@keyframes frame {{ 0%, {share:.3f}% {{ visibility: visible }} {share + 0.001:.3f}%, 100% "
        f"{{ visibility: hidden }} }} .frame {{ visibility: hidden; animation: frame {whole:.1f}s step-end infinite }} "
        ".caption { font: 20px sans-serif; fill: #e0e0e0; text-anchor: middle }"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height + CAPTION_HEIGHT:.0f}">',
        f"<style>{style}</style>",
        '<rect width="100%" height="100%" fill="#121212"/>',
    ]
    for number, (caption, svg) in enumerate(frames):
        # Fonts would be loaded from the network; the reader's own will do.
        bare = re.sub(
            r"@font-face \{.*?\}\s*", "", svg.replace(f"{width}", f"{width:.0f}"), flags=re.DOTALL
        )
        bare = re.sub(
            r"^<svg [^>]*>",
            f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width} {height}">',
            bare.strip(),
        )
        parts += [
            f'<g class="frame" style="animation-delay: {number * SECONDS:.1f}s">{bare}',
            f'<text class="caption" x="{width / 2:.0f}" y="{height + 22:.0f}">{escape(caption)}</text></g>',
        ]
    return "\n".join([*parts, "</svg>\n"])


async def record() -> str:
    """Run the tour and return the picture."""
    with tempfile.TemporaryDirectory() as name:
        async with stage(Path(name), SIZE) as scene:
            return animated(await tour(scene))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES / "tour.svg"
    target.write_text(asyncio.run(record()), encoding="utf-8")
