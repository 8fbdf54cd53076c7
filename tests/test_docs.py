"""The documents: links lead somewhere, the reference is the program's own, the pictures are there."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

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


def test_the_reference_is_the_programs() -> None:
    done = subprocess.run([sys.executable, "scripts/reference.py", "--check"], cwd=ROOT, check=False, timeout=100)
    assert done.returncode == 0, "run: python scripts/reference.py"
