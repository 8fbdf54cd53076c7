"""Every constant of the context rules is a setting with a documented default that scales to the window."""

import ast
import inspect
import subprocess
import sys
from itertools import pairwise

import pytest
from pydantic import BaseModel

from tests.support.parsed import parsed
from tui_agent.context import settings as module
from tui_agent.context.settings import CompactionSettings, ContextSettings

SOURCE = {node.name: node for node in parsed(inspect.getsource(module)).body if isinstance(node, ast.ClassDef)}
ALL = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, BaseModel)]


@pytest.mark.parametrize("model", [m for m in ALL if m.model_fields], ids=lambda model: model.__name__)
def test_every_setting_is_documented_and_has_a_default(model):
    body = SOURCE[model.__name__].body
    documented = {
        field.target.id
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }
    for name, field in model.model_fields.items():
        assert name in documented, name
        assert not field.is_required(), name


def test_a_reserve_never_takes_more_than_half_and_pruning_is_switched_off_in_a_word():
    assert CompactionSettings(reserved=30_000).reserve(200_000, 8_000) == 30_000
    assert CompactionSettings(reserved=30_000).reserve(16_000, 8_000) == 8_000

    assert ContextSettings.model_validate({"prune": False}).prune.when == "off"
    assert ContextSettings.model_validate({"prune": True}).prune.when == "auto"
    assert ContextSettings.model_validate({"prune": {"when": "run_end"}}).prune.when == "run_end"


def test_settings_of_a_model_replace_those_of_all():
    own = ContextSettings.model_validate(
        {
            "window": 100_000,
            "models": {
                "anthropic/*": {"keep_recent": 5_000, "window": 150_000},
                "anthropic/claude-opus-4-8": {"reserved": 9_000},
            },
        }
    )

    assert own.for_model("gpt").compaction.keep_recent == 60_000
    sonnet = own.for_model("anthropic/claude-sonnet-4-5")
    assert (sonnet.compaction.keep_recent, sonnet.window) == (5_000, 100_000)
    opus = own.for_model("anthropic/claude-opus-4-8")
    assert (opus.compaction.reserved, opus.compaction.keep_recent) == (9_000, 60_000)


def test_what_a_start_does_not_need_is_not_compiled():
    program = (
        "from tui_agent.tools.bash import BashInput\n"
        "from tui_agent.session.entries import CheckpointEntry\n"
        "print([kind.__pydantic_complete__ for kind in (BashInput, CheckpointEntry)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[False, False]"


@pytest.mark.parametrize(
    ("window", "tier", "expected"),
    [(1_000_000, None, 400_000), (1_000_000, 200_000, 200_000), (400_000, 200_000, 380_000), (200_000, None, 180_000)],
)
def test_a_very_large_window_is_not_used_to_its_end(window, tier, expected):
    assert CompactionSettings().threshold_at(window, 20_000, price_tier=tier) == expected
    assert CompactionSettings(effective_window=0).threshold_at(window, 20_000, price_tier=tier) == window - 20_000
    assert CompactionSettings(threshold="90%").threshold_at(window, 20_000, price_tier=tier) <= window * 0.9
