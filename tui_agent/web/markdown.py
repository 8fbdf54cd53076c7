"""Converts a web page to Markdown.

Runs as a separate process, because a large page takes seconds and must not block the program: HTML
on standard input, Markdown on standard output.
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
"""If the main part contains less than this share of a page's text, the whole page is used."""
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight(?:-source)?|brush:)-?\s*([\w+#-]+)")
_BLANK_LINES = re.compile(r"\n\s*\n(?:\s*\n)+")


def to_markdown(html: str, url: str) -> str:
    """Return a page's main content as Markdown, with absolute links.

    The page's title comes first as a heading, unless the content contains a heading of level 1.
    Scripts, form fields, navigation and hidden text are omitted. ``url`` is the page's address.
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
    """Return the longest element marked as main content, such as ``<main>`` or ``<article>``.

    Returns the whole page if there is none, or if the element contains less than ``_MAIN_SHARE`` of
    the text.
    """
    whole = len(soup.get_text(" ", strip=True))
    found = [(len(element.get_text(" ", strip=True)), element) for element in soup.select(_CONTENT)]
    length, element = max(found, key=lambda pair: pair[0], default=(0, None))
    if element is not None and length >= whole * _MAIN_SHARE:
        return element
    return soup


def _absolute(content: Any, url: str) -> None:
    """Make links absolute, and replace images by their alternative texts, in place.

    The targets of links within the page and to scripts are removed. Images without a source or an
    alternative text, and images embedded as data, are removed.
    """
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
    except RecursionError:  # There are thousands of nested elements.
        return str(content.get_text("\n"))


def _language(element: Any) -> str:
    """Return a code block's programming language, from the CSS classes around it; "" if none."""
    for node in (element, element.find("code"), element.parent):
        found = None
        if node is not None:
            found = _LANGUAGE.search(" ".join(node.get("class", ())))
        if found:
            return found[1]
    return ""


def main() -> None:
    """Convert HTML on standard input to Markdown on standard output, both in UTF-8.

    The program's only argument is the page's URL.
    """
    html = sys.stdin.buffer.read().decode("utf-8", "replace")
    sys.stdout.buffer.write(to_markdown(html, sys.argv[1]).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
