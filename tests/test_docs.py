"""The documents: links lead somewhere, names of code and settings exist, the reference is the program's own."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tui_agent.config import load_config
from tui_agent.setting_rows import setting_rows

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What its headings are called in links."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(prose(path))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} is not there"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{link}: no such heading"


def test_every_page_is_in_the_reading_order() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(index))}
    pages = {path for path in (ROOT / "docs").rglob("*.md") if "examples" not in path.parts and path != index}
    assert not {str(path.relative_to(ROOT)) for path in pages - linked}


def test_each_page_ends_with_the_next_one_of_the_reading_order() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    order = re.findall(r"^\d+\. \[[^\]]*\]\(([a-z]+\.md)\)", index, re.MULTILINE)
    for name, following in pairwise(order):
        last = (ROOT / "docs" / name).read_text(encoding="utf-8").splitlines()[-1]
        assert re.fullmatch(rf"Next: \[.+\]\({following}\)", last), f"{name} ends with {last!r}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_the_code_that_pages_name_exists(page: str) -> None:
    named = re.findall(r"`((?:\w+/)*\w+\.py|(?:\w+/)+)(?: [\w.]+)?`", prose(ROOT / page))
    assert len(named) > 0
    code = {str(path.relative_to(ROOT)) for path in (*ROOT.glob("t*/**/*.py"), *ROOT.glob("scripts/**/*.py"))}
    assert [name for name in named if "NAME" not in name and not any(f"/{name}" in f"/{path}" for path in code)] == []


def test_the_settings_that_pages_name_exist(tmp_path: Path) -> None:
    keys = {row.key for row in setting_rows(load_config(tmp_path / "config.toml", environ={}))}
    tables = {key.partition(".")[0] for key in keys}
    named = {key for page in PAGES for key in re.findall(r"`([a-z_]+\.[a-z_.]+)(?: = [^`]*)?`", prose(page))}
    assert {key for key in named if key.partition(".")[0] in tables} <= keys


def test_the_reference_is_the_programs() -> None:
    done = subprocess.run([sys.executable, "scripts/reference.py", "--check"], cwd=ROOT, check=False, timeout=100)
    assert done.returncode == 0, "run: python scripts/reference.py"
