"""Converts a web page to Markdown.

Runs as a process of its own, HTML in and text out, because a large page takes seconds and must not
block the program.
"""

import re
import sys
from typing import Any
from urllib.parse import urljoin

_NOISE = (
    "script, style, noscript, template, svg, canvas, iframe, object, embed, dialog, button, input, select, textarea, "
    "nav, footer, aside, [role=navigation], [role=banner], [role=contentinfo], [role=search], [role=complementary], "
    "[aria-hidden=true], [hidden], a.headerlink, a.anchor, .sr-only, .visually-hidden"
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CONTENT = "main, article, [role=main]"
_MAIN_SHARE = 0.3
"""Share of a page's text that its main part must contain to be used alone."""
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight(?:-source)?|brush:)-?\s*([\w+#-]+)")
_BLANK_LINES = re.compile(r"\n\s*\n(?:\s*\n)+")


def to_markdown(html: str, url: str) -> str:
    """Return a page's content as Markdown with absolute links.

    Scripts, navigation and hidden text are left out.
    """
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser")
    title = ""
    if soup.title:
        title = " ".join(soup.title.get_text().split())
        soup.title.decompose()
    for element in soup.select(_NOISE):
        if not element.decomposed:
            element.decompose()
    for element in soup.find_all(style=_HIDDEN):
        if not element.decomposed:
            element.decompose()
    content = _content(soup)
    if content is soup:
        for element in soup.select("header"):
            if not element.find("h1"):
                element.decompose()
    _absolute(content, url)
    text = _converted(content)
    text = _BLANK_LINES.sub("\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()
    if title and not re.search(r"^# ", text, re.MULTILINE):
        text = f"# {title}\n\n{text}".strip()
    return text


def _content(soup: Any) -> Any:
    """Return a page's marked main part, or the whole page if much text is elsewhere."""
    whole = len(soup.get_text(" ", strip=True))
    found = [(len(element.get_text(" ", strip=True)), element) for element in soup.select(_CONTENT)]
    length, element = max(found, key=lambda pair: pair[0], default=(0, None))
    if element is not None and length >= whole * _MAIN_SHARE:
        return element
    return soup


def _absolute(content: Any, url: str) -> None:
    for link in content.find_all("a", href=True):
        href = link["href"].strip()
        if not href or href.startswith(("#", "javascript:", "data:")):
            del link["href"]
            continue
        try:
            link["href"] = urljoin(url, href)
        except ValueError:
            del link["href"]
    for image in content.find_all("img"):
        source = image.get("src", "")
        if not image.get("alt") or not source or source.startswith("data:"):
            image.decompose()
        else:
            image.replace_with(f"[image: {image['alt']}]")


def _converted(content: Any) -> str:
    from markdownify import MarkdownConverter

    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        code_language_callback=_language,
    )
    try:
        return str(converter.convert_soup(content))
    except RecursionError:  # thousands of elements inside each other
        return str(content.get_text("\n"))


def _language(element: Any) -> str:
    for node in (element, element.find("code"), element.parent):
        found = None
        if node is not None:
            found = _LANGUAGE.search(" ".join(node.get("class", ())))
        if found:
            return found[1]
    return ""


def main() -> None:
    """Convert HTML in UTF-8 from standard input; the only argument is the page's URL."""
    html = sys.stdin.buffer.read().decode("utf-8", "replace")
    sys.stdout.buffer.write(to_markdown(html, sys.argv[1]).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
