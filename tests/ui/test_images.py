"""Images of a message: from the clipboard, by path; shown before they are sent, removed as one."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.ui_app import Stage, make_stage, screen_text, until, write
from tui_agent.app.pasted_images import MAX_KEPT, PastedImages
from tui_agent.session.entries import ImagePart, TextPart
from tui_agent.ui import clipboard
from tui_agent.ui.clipboard import copy_natively, native_tools, read_image

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001149444154789c63f8cfc0c0"
    "f01f8c8018001df003fdd3d07d260000000049454e44ae426082"
)
"""Two by two pixels."""


def tool(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("environment", "name", "body"),
    [
        ({"WAYLAND_DISPLAY": "w"}, "wl-paste", '[ "$3" = image/png ] && /bin/cat "$IMAGE"'),
        ({"DISPLAY": ":0"}, "xclip", '[ "$4" = image/png ] && /bin/cat "$IMAGE"'),
        # What a Mac writes, wherever it comes from.
        ({"DISPLAY": ":0"}, "xclip", f"printf '«data PNGf{PNG.hex().upper()}»\\n'"),
        (
            {"WSL_DISTRO_NAME": "x"},
            "powershell.exe",
            "/usr/bin/base64 \"$IMAGE\" | /usr/bin/tr -d '\\n'",
        ),
    ],
)
def test_an_image_is_read_with_what_the_system_has(
    tmp_path: Path, environment: dict[str, str], name: str, body: str
) -> None:
    image = tmp_path / "image.png"
    image.write_bytes(PNG)
    tool(tmp_path / "bin", name, body.replace("$IMAGE", str(image)))
    assert read_image({**environment, "PATH": str(tmp_path / "bin")}) == PNG
    assert native_tools({}, "darwin", reading=True)[0][0] == "osascript"


@pytest.mark.parametrize(
    "body", ["exit 1", "echo text", "printf ''", "exec /bin/cat /dev/zero | /usr/bin/head -c 100"]
)
def test_what_is_no_image_is_none(tmp_path: Path, body: str) -> None:
    tool(tmp_path / "bin", "xclip", body)
    assert read_image({"DISPLAY": ":0", "PATH": str(tmp_path / "bin")}) is None
    assert read_image({"PATH": str(tmp_path / "bin")}) is None


def test_no_tool_of_the_project_is_asked_or_gets_what_is_copied(tmp_path: Path) -> None:
    project, system = tmp_path / "project", tmp_path / "system"
    for place in (project, system):
        tool(place, "wl-copy", f"/bin/cat > {place}/copied")
    tool(project, "wl-paste", f"/bin/touch {project}/ran")
    environment = {"PATH": f"{project}{os.pathsep}{system}", "WAYLAND_DISPLAY": "wayland-0"}
    assert read_image(environment, project) is None
    assert copy_natively("text", environment, project) == "wl-copy"
    assert (system / "copied").read_text() == "text"
    assert not {"ran", "copied"} & {path.name for path in project.iterdir()}


def test_windows_is_given_the_encoding_that_its_tool_reads(tmp_path: Path) -> None:
    tool(tmp_path / "bin", "clip.exe", f"/bin/cat > {tmp_path}/copied")
    environment = {"PATH": str(tmp_path / "bin"), "WSL_DISTRO_NAME": "Debian"}
    assert copy_natively("naïve 日本", environment) == "clip.exe"
    assert (tmp_path / "copied").read_bytes().decode("utf-16-le") == "naïve 日本"


def test_an_image_is_kept_once_for_its_owner_and_named_by_its_content(tmp_path: Path) -> None:
    pasted = PastedImages(tmp_path)
    name = pasted.keep(PNG)
    assert name == pasted.keep(PNG)
    path = pasted.path(name)
    assert path is not None
    assert path.stat().st_mode & 0o777 == 0o600
    part = pasted.part(name, lambda data: f"{len(data)}")
    assert part == ImagePart(blob=str(len(PNG)), mime="image/png", width=2, height=2, path=name)
    assert pasted.path("clipboard-../../etc.png") is None
    assert pasted.path("clipboard-00000000.png") is None


def test_the_oldest_go(tmp_path: Path) -> None:
    pasted = PastedImages(tmp_path)
    names = [pasted.keep(PNG + bytes([number])) for number in range(MAX_KEPT + 3)]
    for number, name in enumerate(names):
        if (path := pasted.path(name)) is not None:
            os.utime(path, (number, number))
    pasted.keep(PNG)
    assert sum(pasted.path(name) is not None for name in names) == MAX_KEPT - 1


def a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: bytes | None = PNG) -> Stage:
    monkeypatch.setattr("tui_agent.ui.clipboard.read_image", lambda _environment, _outside: image)
    return make_stage(tmp_path, cwd=tmp_path)


async def pasted(stage: Stage, pilot: Any) -> str:
    await pilot.press("ctrl+v")
    await until(lambda: "clipboard-" in stage.main.prompt.text, pilot)
    await until(lambda: stage.main.attachments.display, pilot)
    await pilot.pause()
    return stage.main.prompt.text


async def test_an_image_of_the_clipboard_is_shown_and_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = a_stage(tmp_path, monkeypatch)
    async with stage.run((80, 30)) as pilot:
        await write(pilot, "what is")
        text = await pasted(stage, pilot)
        assert text.startswith("what is @clipboard-")
        assert "2×2 · ~1 token" in screen_text(stage)
        await write(pilot, "?")
        await pilot.press("enter")
        await until(lambda: stage.agent.sent, pilot)
        ((parts, _follow_up),) = stage.agent.sent
        assert [type(part) for part in parts] == [TextPart, ImagePart]
        assert stage.store.blob(parts[1].blob) == PNG
        await until(lambda: not stage.main.attachments.display, pilot)


async def test_it_is_removed_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = a_stage(tmp_path, monkeypatch)
    async with stage.run() as pilot:
        await pasted(stage, pilot)
        await pilot.press("backspace", "backspace")
        assert stage.main.prompt.text == ""
        await until(lambda: not stage.main.attachments.display, pilot)


async def test_a_dropped_path_is_shown_and_one_that_is_no_image_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = a_stage(tmp_path, monkeypatch)
    (tmp_path / "my shot.png").write_bytes(PNG)
    (tmp_path / "cut.png").write_bytes(PNG[:40])
    (tmp_path / "fake.png").write_bytes(b"no image")
    async with stage.run((80, 30)) as pilot:
        await write(pilot, f'@"{tmp_path}/my shot.png" @gone.png @cut.png @fake.png @a.txt')
        await until(lambda: stage.main.attachments.display, pilot)
        await until(lambda: "2×2" in screen_text(stage), pilot)
        assert len(stage.main.attachments.attachments) == 3
        shown = screen_text(stage)
        assert "▣ cut.png  ▲ not sent: a picture that is damaged or cut off" in shown
        assert "▣ fake.png  ▲ no image: sent as text" in shown
        await pilot.press("enter")
        await until(
            lambda: "@cut.png · not sent: a picture that is damaged" in screen_text(stage), pilot
        )
        assert "@fake.png · 1 line" in screen_text(stage)


async def test_a_model_that_takes_none_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = a_stage(tmp_path, monkeypatch)
    async with stage.run((80, 30)) as pilot:
        directory = stage.agent.ports.directory
        limits = directory.limits
        monkeypatch.setattr(directory, "limits", lambda model: replace(limits(model), vision=False))
        await pasted(stage, pilot)
        assert "can't see images: it gets only their names" in screen_text(stage)
        (tmp_path / "fake.png").write_bytes(b"no image")
        await pilot.press("backspace", "backspace")
        await write(pilot, "@fake.png ")
        await until(lambda: "sent as text" in screen_text(stage), pilot)
        assert "can't see images" not in screen_text(stage)


async def test_without_an_image_what_was_copied_here_is_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = a_stage(tmp_path, monkeypatch, None)
    async with stage.run() as pilot:
        await pilot.press("ctrl+v")
        await until(lambda: "clipboard has no image" in stage.main.notice.message, pilot)
        stage.app.copy_to_clipboard("copied here")
        await pilot.press("ctrl+v")
        await until(lambda: stage.main.prompt.text == "copied here", pilot)


def test_one_character_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "copy_natively", lambda *_given: "xclip")
    assert clipboard.copy("x", lambda _sequence: None, tmp_path) == "Copied 1 character (xclip)."
