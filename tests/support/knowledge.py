"""Places with files in them, for tests of what files tell the agent."""

from pathlib import Path
from typing import Any

from tui_agent.agent.knowledge.folders import Folders
from tui_agent.agent.knowledge.knowledge import Knowledge, Sources
from tui_agent.resources import prompt

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def folders(tmp_path: Path, *, cwd: str = "") -> Folders:
    """Return a project, a config directory and a home below ``tmp_path``; ``cwd`` is below the project."""
    place = Folders(
        tmp_path / "project" / cwd, tmp_path / "project", tmp_path / "config", tmp_path / "home"
    )
    for folder in (place.cwd, place.config, place.home):
        folder.mkdir(parents=True, exist_ok=True)
    return place


def knowledge(tmp_path: Path, *instructions: str, cwd: str = "", **arguments: Any) -> Knowledge:
    """Return what files below ``tmp_path`` tell, loaded; the project is trusted unless ``trusted`` is given."""
    sources = Sources(folders(tmp_path, cwd=cwd), instructions)
    arguments.setdefault("trusted", lambda: True)
    loaded = Knowledge(sources, prompt=prompt, **arguments)
    loaded.load()
    return loaded


def skill(
    folder: Path,
    name: str = "release",
    description: str = "Use it to release.",
    body: str = "Bump.",
) -> Path:
    return write(
        folder / name / "SKILL.md", f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"
    )
