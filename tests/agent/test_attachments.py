"""What a message names, and what travels with it because of that."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import make_agent
from tests.support.knowledge import write
from tests.support.scripted_client import Reply
from tui_agent.agent.attachments import FILE_BYTES, Naming, Prepared, load_message
from tui_agent.agent.mentions import FileMention, entry_mentions, file_mentions, has_mention
from tui_agent.session.entries import FilePart, ImagePart, TextPart
from tui_agent.tools.outputs import MAX_IMAGE_BYTES

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d494844520000000300000002080200000012f1d6"
    "d70000000c4944415478da6360606000000004000185d1a7430000000049454e44ae426082"
)


# -- what is named ----------------------------------------------------------------------------------------------


def test_names_end_before_punctuation_and_may_be_quoted() -> None:
    found = file_mentions('see @a.py, (@b/c.md) and @"my notes.txt"; @a.py again, not me@there')
    assert [mention.path for mention in found] == ["a.py", "b/c.md", "my notes.txt"]


@pytest.mark.parametrize(
    ("written", "mention"),
    [
        ("a.py:10-40", ("a.py", 10, 40)),
        ("a.py:7", ("a.py", 7, 7)),
        ("a.py:9-3", ("a.py", 9, 9)),
        ("a.py:0-2", ("a.py", 1, 2)),
        ("C:x", ("C:x", None, None)),
        ("dir/", ("dir/", None, None)),
    ],
)
def test_lines_of_a_file(written: str, mention: tuple[str, int | None, int | None]) -> None:
    assert file_mentions(f"look at @{written}.") == [FileMention(written, *mention)]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("as in #412, and (#7)", [412, 7]),
        ("#12 #12", [12]),
        ("PR#12 issue#3 #x # 4 #5th #6-7 a/#8", []),
        ("```\n#1 \n```", [1]),
    ],
)
def test_entries(text: str, entries: list[int]) -> None:
    assert entry_mentions(text) == entries


@pytest.mark.parametrize(
    "text",
    [
        "why is this slow?\n@property\ndef total(self): ...",
        "@app.route('/x')\nasync def x(): ...",
        "@dataclass(frozen=True)\n@final\nclass Cart:\n    @property\n    def total(self): ...",
        "fix this\n  @Override public String toString() {\n",
        "/** @param x the number\n * @returns it */",
        "@media (max-width: 3em) {\n}",
        "fix this:\n# @todo later",
        "fix this:\n@functools.cache\n  async def f():",
        "what does `@memoize` do?",
        "```\nmail @nobody\n```",
        "@Input() name = '';",
    ],
)
def test_code_has_words_like_mentions(text: str) -> None:
    assert [mention.written for mention in file_mentions(text) if not mention.in_code] == []


@pytest.mark.parametrize(
    "text", ["@nosuch", "@nosuch what is it?", "look at\n@no.such\nand fix it", "(@nosuch)", "`x`\n- @nosuch"]
)
def test_a_sentence_means_what_it_names(text: str) -> None:
    assert [mention.in_code for mention in file_mentions(text)] == [False]


def test_most_messages_name_nothing() -> None:
    assert not has_mention("me@there.org @ # a#1 x")
    assert has_mention("@a")
    assert has_mention("#1")


# -- what travels -----------------------------------------------------------------------------------------------


class Place:
    """A directory, and a session in which three entries were made."""

    def __init__(self, tmp_path: Path) -> None:
        self.harness = make_agent(tmp_path, [Reply("It is in views.py.")])
        self.cwd = tmp_path / "project"

    async def load(self, text: str, **arguments: Any) -> Prepared:
        agent = self.harness.agent
        return await load_message(text, self.cwd, agent.session, agent.ports.put_blob, **arguments)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_file_and_lines_of_one(place: Place) -> None:
    write(place.cwd / "src/a.py", "".join(f"line {number}\n" for number in range(1, 51)))
    loaded = await place.load("@src/a.py:10-12 and @src/a.py:99 and @src/a.py")
    assert loaded.problem is None
    assert loaded.parts[1:3] == (
        FilePart(path="src/a.py", text="10\tline 10\n11\tline 11\n12\tline 12"),
        FilePart(path="src/a.py", text="[the file has no line 99]"),
    )
    assert isinstance(loaded.parts[3], FilePart)
    assert loaded.parts[3].text.startswith("line 1\nline 2\n")


async def test_a_directory_is_listed_without_what_git_ignores(place: Place) -> None:
    for name in ("web/a.ts", "web/ui/b.ts", "web/dist/c.js", ".git/HEAD"):
        write(place.cwd / name, "x")
    write(place.cwd / ".gitignore", "dist/\n")
    assert (await place.load("look into @web/")).parts[1] == FilePart(path="web/", text="ui/\na.ts")


async def test_a_long_file_is_cut_and_a_binary_one_described(place: Place) -> None:
    write(place.cwd / "long.txt", "x" * (FILE_BYTES + 10))
    (place.cwd / "data.bin").write_bytes(b"\0" * 20)
    _text, long, binary = (await place.load("@long.txt @data.bin")).parts
    assert isinstance(long, FilePart)
    assert long.text.endswith("[10 more bytes; use read for the rest]")
    assert binary == FilePart(path="data.bin", text="[binary file of 20 bytes]")


async def test_an_image_goes_as_one_unless_it_is_too_large(place: Place) -> None:
    (place.cwd / "shot.png").write_bytes(PNG)
    with (place.cwd / "huge.png").open("wb") as file:
        file.truncate(MAX_IMAGE_BYTES + 1)
    _text, image, huge = (await place.load("@shot.png @huge.png")).parts
    assert isinstance(image, ImagePart)
    assert (image.mime, image.width, image.height, image.path) == ("image/png", 3, 2, "shot.png")
    assert place.harness.agent.ports.blob(image.blob) == PNG
    assert isinstance(huge, FilePart)
    assert "too large" in huge.text


async def test_what_does_not_exist_stays_text_and_is_said(place: Place) -> None:
    loaded = await place.load("@alice look at @src/gone.py and @gone.md:3, not `@cache`")
    assert loaded.parts == (TextPart(text="@alice look at @src/gone.py and @gone.md:3, not `@cache`"),)
    assert loaded.problem == "Not attached, there is no such file: alice, src/gone.py, gone.md:3."


async def test_a_pipe_is_not_read(place: Place) -> None:
    os.mkfifo(place.cwd / "feed")
    loaded = await place.load("see @feed and @~nobody/x")
    assert loaded.problem == "Not attached, it can't be read: feed. Not attached, there is no such file: ~nobody/x."


async def test_an_entry_is_named_with_a_line_of_it_and_how_to_get_all(place: Place) -> None:
    await place.harness.say("where is the view?")
    answer = next(entry for entry in place.harness.path() if entry.kind == "assistant")
    loaded = await place.load(f"why #{answer.id}? not #999 and not #1")
    assert loaded.parts[1:] == (
        FilePart(
            path=f"#{answer.id}",
            text=f'entry #{answer.id}, assistant: It is in views.py. — recall("#{answer.id}") shows all',
        ),
    )


async def test_names_are_only_looked_for_where_the_user_wrote(place: Place) -> None:
    write(place.cwd / "secret.txt", "x")
    loaded = await place.load("diff says @secret.txt", naming=Naming("diff says"))
    assert loaded == Prepared((TextPart(text="diff says @secret.txt"),))
