"""Exports that people read, and exports without what is nobody's business."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tui_agent.app.exporting import ExportFormat, ExportOrder, Scrubber, export_text, write_export
from tui_agent.app.importing import Importer
from tui_agent.resources import style_path
from tui_agent.session.entries import (
    AssistantEntry,
    CompactionEntry,
    FilePart,
    ImagePart,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolMetadata,
    ToolResultEntry,
    ToolStatus,
    UserEntry,
)
from tui_agent.session.session import Session
from tui_agent.session.store import Store

EVIL = (
    "<script>alert(1)</script> </details> <img src=x onerror=alert(1)> \x1b]0;owned\x07 ```` </pre>"
)
KEY = "sk-ant-api03-abcdefghijklmnop"


def user(text: str) -> UserEntry:
    return UserEntry(parts=(TextPart(text=text),))


def answer(text: str, *more) -> AssistantEntry:
    return AssistantEntry(parts=(TextPart(text=text), *more), model="anthropic/m", cost=0.5)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "sessions.db") as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session:
    """Two branches; everything in it that can be hostile is."""
    session = Session(
        store, store.create_session("/home/alice/shop", title=EVIL).id, estimate=lambda _entry: 7
    )
    picture = store.put_blob(b"\x89PNG")
    parts = (
        TextPart(text=f"fix {EVIL}"),
        FilePart(path=f"a{EVIL}.py", text=EVIL),
        ImagePart(blob=picture, mime="image/png"),
    )
    first = session.append(UserEntry(parts=parts))
    call = ToolCallPart(call_id="a", tool="bash", arguments=f'{{"command": "{EVIL}"}}')
    session.append(
        answer(
            f"**Looking** at `List<int>` {EVIL}\n\n[x](javascript:alert(1)) ![p](http://t.example/x.png)",
            call,
        )
    )
    metadata = ToolMetadata(diff=f"@@ -1 +1 @@\n-{EVIL}\n+new", additions=1, deletions=1)
    session.append(
        ToolResultEntry(
            call_id="a",
            tool="bash",
            status=ToolStatus.ERROR,
            output=f"```\n{EVIL}",
            title=EVIL,
            metadata=metadata,
        )
    )
    session.append(
        CompactionEntry(
            summary=EVIL, first_kept_id=None, tokens_before=9, tokens_after=4, trigger="manual"
        )
    )
    session.move(first.id)
    session.append(answer("the other way\n\n```python\nopen fence"))
    session.label(first.id, f"start {EVIL}")
    return session


class Tags(HTMLParser):
    """What a browser makes of a page, as far as safety goes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "br", "hr", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, "tags close in order"


@pytest.mark.parametrize("whole", [True, False])
def test_html_stands_alone_and_nothing_in_it_acts(store, session, whole):
    page = export_text(store, ExportOrder(session.id, ExportFormat.HTML, whole=whole), {})
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    names = [name for name, _ in tags.found]
    assert names.count("script") == 1, "the page's own"
    assert page.count("<script>") == 1
    assert not [key for _, attrs in tags.found for key in attrs if key.startswith("on")]
    sources = [attrs["src"] for name, attrs in tags.found if name == "img"]
    assert sources == ["data:image/png;base64,iVBORw=="]
    assert not [
        attrs
        for _, attrs in tags.found
        if not (attrs.get("href") or "#").startswith(("#", "http://"))
    ]
    assert "\x1b" not in page
    assert ("Looking" in page) is whole
    assert "the other way" in page


def test_a_page_names_a_branch_by_the_users_first_message_in_it(store, session):
    session.append(UserEntry(parts=(TextPart(text="a reminder"),), synthetic="reminder"))
    session.append(user("rename the shop"))
    page = export_text(store, ExportOrder(session.id, ExportFormat.HTML), {})
    tree = page.partition("<nav")[2].partition("</nav>")[0]
    assert "rename the shop" in tree
    assert "a reminder" not in tree


def test_only_the_pages_own_script_may_run_and_the_page_has_the_tree(store, session):
    page = export_text(store, ExportOrder(session.id, ExportFormat.HTML), {})
    script = page.partition("<script>")[2].rpartition("</script>")[0]
    assert script == style_path("export.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "</script" not in script.lower()
    assert not re.search(r"\b(fetch|XMLHttpRequest|import|eval|innerHTML|https?:)\b", script)
    tags = Tags()
    tags.feed(page)
    stretches = {
        attrs["data-number"]: attrs["data-up"] for _, attrs in tags.found if "data-number" in attrs
    }
    assert sorted(stretches.values()) == ["", "1", "1"]
    ways = [attrs["data-way"] for name, attrs in tags.found if name == "a" and "data-way" in attrs]
    assert set(ways) == set(stretches)
    assert page.count('class="ways"') == 1
    ids = [attrs["id"] for _, attrs in tags.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {
        attrs["href"][1:]
        for name, attrs in tags.found
        if name == "a" and attrs["href"].startswith("#")
    }
    assert targets <= set(ids)


def test_markdown_is_markdown_to_its_end(store, session):
    text = export_text(store, ExportOrder(session.id, whole=True), {})
    tokens = MarkdownIt("commonmark").parse(text)
    html = [token.content for token in tokens if token.type == "html_block"]
    inline = [
        child.content
        for token in tokens
        for child in token.children or []
        if child.type == "html_inline"
    ]
    assert inline == []
    allowed = re.compile(r"^(<details><summary>[^<>]*</summary>|</details>)\s*$")
    assert html
    assert [block for block in html if not allowed.match(block)] == []
    assert "`List<int>`" in text, "code stays code"
    assert "\x1b" not in text
    assert text.count("## Branch after #1") == 2


def test_an_answer_of_an_unknown_model_has_a_heading_of_its_own(store: Store) -> None:
    session = Session(store, store.create_session("/home/alice/shop").id, estimate=lambda _entry: 7)
    session.append(user("hi"))
    session.append(AssistantEntry(parts=(TextPart(text="hello"),), model=""))
    text = export_text(store, ExportOrder(session.id), {})
    assert "### You · #1\n\nhi\n\n### Agent · #2\n\nhello" in text


def test_one_branch_can_be_chosen(store, session):
    text = export_text(store, ExportOrder(session.id, leaf=3), {})
    assert "Looking" in text
    assert "the other way" not in text
    importer = Importer(Store(store.path.with_name("other.db")))
    path = store.path.with_name("branch.jsonl")
    write_export(store, ExportOrder(session.id, ExportFormat.JSON, leaf=3), path)
    [(_path, [imported], _told)] = importer.run([path])
    assert imported.entries == 3


def secretive(store: Store) -> Session:
    home = Path.home()
    session = Session(
        store, store.create_session(home / "shop", title=f"key {KEY}").id, estimate=lambda _entry: 7
    )
    full = store.put_blob(f"everything {KEY} and hunter22-secret".encode())
    first = session.append(
        user(
            f"my key is {KEY}, DB_PASSWORD=hunter22-secret in /home/alice/.env and {home}/shop/a.py"
        )
    )
    reasoning = ReasoningPart(text=f"uses {KEY}", blob='{"signature": "abc"}', model="m")
    session.append(
        answer(
            "ok",
            reasoning,
            ToolCallPart(call_id="a", tool="bash", arguments=f'{{"command": "echo {KEY}"}}'),
        )
    )
    output = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\ntoken {KEY}\n"
    output += "my-own-value-1234 C:\\Users\\bob\\x"
    session.append(
        ToolResultEntry(
            call_id="a", tool="bash", status=ToolStatus.COMPLETED, output=output, full_output=full
        )
    )
    session.label(first.id, KEY)
    return session


@pytest.mark.parametrize("form", ExportFormat)
def test_redacted_exports_hold_no_secret_and_no_home(store, form):
    session = secretive(store)
    environ = {"MY_SERVICE_TOKEN": "my-own-value-1234", "PATH": "/usr/bin"}
    text = export_text(store, ExportOrder(session.id, form, whole=True, redacted=True), environ)
    secrets = (
        KEY,
        "hunter22",
        "MIIE",
        "my-own-value-1234",
        "alice",
        "bob",
        "signature",
        str(Path.home() / "shop"),
    )
    assert not [secret for secret in secrets if secret in text]
    assert "[redacted]" in text.replace("\\", "")
    assert "~/shop/a.py" in text
    plain = export_text(store, ExportOrder(session.id, form, whole=True), environ)
    assert "hunter22" in plain, "without --redact nothing is lost"


def test_a_redacted_session_can_be_imported_with_its_outputs(store, tmp_path):
    session = secretive(store)
    path = tmp_path / "out.jsonl"
    write_export(store, ExportOrder(session.id, ExportFormat.JSON, redacted=True), path)
    assert path.stat().st_mode & 0o777 == 0o600
    with Store(tmp_path / "other" / "o.db") as other:
        [(_path, [imported], _told)] = Importer(other).run([path])
        assert not imported.left_out
        result = Session(other, imported.session_id, estimate=lambda _entry: 1).path()[-1]
        assert isinstance(result, ToolResultEntry)
        full = other.blob(result.full_output)
        assert full.startswith(b"everything [redacted]")


def test_code_is_left_alone_as_far_as_can_be():
    scrubber = Scrubber((), Path("/home/me"))
    for text in (
        "tokens = count(text)",
        "/home/melissa is none",
        "https://home/users",
        "src/home/users",
    ):
        assert scrubber.text(text).replace("[redacted]", "melissa") == text


def test_an_id_with_a_time_beyond_the_calendar_has_a_file_name(tmp_path: Path) -> None:
    order = ExportOrder("ffffffff-ffff-7fff-bfff-ffffffffffff", ExportFormat.CODEX)
    assert order.file_name("", tmp_path).startswith("rollout-9999-01-01T00-00-00-ffffffff")


def test_files_are_named_after_the_session(store, session, tmp_path):
    order = ExportOrder(session.id, ExportFormat.HTML)
    name = order.file_name("Fix: the Login/redirect!", tmp_path)
    assert name == f"fix-the-login-redirect-{session.id[-8:]}.html"
    (tmp_path / name).touch()
    assert order.file_name("Fix: the Login/redirect!", tmp_path) == name.replace(".html", "-2.html")


@pytest.mark.parametrize(
    ("form", "name"),
    [(ExportFormat.CODEX, "rollout-*-{}.jsonl"), (ExportFormat.CLAUDE_CODE, "{}.jsonl")],
)
def test_files_that_are_found_by_their_name_make_their_directory(
    store: Store, session: Session, tmp_path: Path, form: ExportFormat, name: str
) -> None:
    day = tmp_path / "2026/11/24"
    written, _size = write_export(store, ExportOrder(session.id, form), day)
    assert list(day.glob(name.format(session.id))) == [written]
    chosen = tmp_path / "mine.jsonl"
    assert write_export(store, ExportOrder(session.id, form), chosen)[0] == chosen
    assert chosen.is_file()


@pytest.mark.parametrize("form", [ExportFormat.MARKDOWN, ExportFormat.HTML])
@pytest.mark.parametrize(
    ("finish", "words"),
    [
        ("unmarked", "Not marked as complete"),
        ("length", "Cut off at the output limit"),
        ("content_filter", "Stopped by the content filter"),
    ],
)
def test_an_answer_that_ended_early_is_exported_with_the_reason(
    store: Store, form: ExportFormat, finish: Any, words: str
) -> None:
    session = Session(store, store.create_session("/project").id, estimate=lambda _entry: 1)
    answer = AssistantEntry(parts=(TextPart(text="Half of it"),), model="m", finish=finish)
    session.append_many([UserEntry(parts=(TextPart(text="go"),)), answer])
    assert words in export_text(store, ExportOrder(session.id, form), {})
