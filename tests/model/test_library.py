"""What the host leaves out of litellm and its packages, and that everything else is what it always was."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_agent.model import library, reexports

PACKAGES = {
    "plain/__init__.py": "",
    "plain/names/__init__.py": '"""Names."""\nfrom . import sub\nfrom .one import One, two as second\n__all__ = []\n',
    "plain/names/one.py": "class One: ...\ntwo = 2\n",
    "plain/names/sub.py": "value = 3\n",
    "plain/names/unwanted.py": "raise AssertionError('nobody asked for it')\n",
    "plain/busy/__init__.py": "from .one import One\nset_up = True\n",
    "plain/busy/one.py": "class One: ...\n",
    "plain/star/__init__.py": "from .one import *\n",
    "plain/star/one.py": "class One: ...\n",
}


@pytest.fixture
def by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package ``plain`` whose packages are imported name by name."""
    for name, source in PACKAGES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    reexports.install("plain")
    yield
    for module in [name for name in sys.modules if name.partition(".")[0] == "plain"]:
        del sys.modules[module]


@pytest.mark.usefixtures("by_name")
def test_a_name_is_imported_when_it_is_asked_for() -> None:
    import plain.names as names  # type: ignore[import-not-found]

    assert "plain.names.one" not in sys.modules
    assert (names.second, names.One.__name__, names.sub.value) == (2, "One", 3)
    assert Path(names.__file__).parts[-2:] == ("names", "__init__.py")
    assert names.One is sys.modules["plain.names.one"].One
    with pytest.raises(AttributeError, match=r"plain\.names.*nothing"):
        _ = names.nothing
    with pytest.raises(ImportError):
        from plain.names import nothing  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.usefixtures("by_name")
def test_a_package_that_does_more_is_imported_whole() -> None:
    import plain.busy  # type: ignore[import-not-found]
    import plain.star  # type: ignore[import-not-found]

    assert plain.busy.set_up is True
    assert {"plain.busy.one", "plain.star.one"} <= set(sys.modules)
    assert plain.star.One is sys.modules["plain.star.one"].One


def test_a_version_without_a_part_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    for module, name in (("json.nowhere", "load"), ("json", "Nobody.load"), ("json", "nothing")):
        library._replace(module, name, lambda _old: None)

    assert len(caplog.records) == 3


LOADED = """
import sys
from tui_agent.model.library import load
litellm = load()
def loaded(*names):
    return [name for name in names if name in sys.modules]
assert loaded("openai.resources.admin", "openai.types.evals", "rich", "click") == [], loaded("rich", "click")
import json, litellm.utils
assert litellm.utils.json_data == {} and json.loads("[1]") == [1]
assert litellm.utils.get_bundled_model_cost_map() is litellm.model_cost and len(litellm.model_cost) > 1000
import openai
client = openai.AsyncOpenAI(api_key="x")
assert client.responses.create and client.beta.threads.create and client.admin
from openai.types.beta import Assistant
from openai.types.responses import Response
import asyncio
from openai._streaming import SSEDecoder
async def reads():
    yield b'data: {"choices": [{"delta": {"content": "x"}}]}\\n\\n' * 5
async def decoded():
    return [event.data async for event in SSEDecoder().aiter_bytes(reads())]
assert len(asyncio.run(decoded())) == 2
assert Response.__name__ == "Response" and Assistant.__module__ == "openai.types.beta.assistant"
"""


def test_litellm_comes_without_what_chats_never_use_and_the_rest_is_there_when_asked_for() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", LOADED], capture_output=True, text=True, check=False, timeout=100
    )

    assert done.returncode == 0, done.stderr
