"""Text of users' and projects' files is read through ``tui_agent.text_files`` alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tui_agent
from tests.support.parsed import parsed

ROOT = Path(tui_agent.__file__).parent
NOT_USER_TEXT = {
    "what other programs print": (
        "acp/updates agent/checkpoints/preimages agent/hooks/claude_hooks agent/hooks/hooks agent/mcp/server "
        "cli/controller_wiring cli/plain files/git_writing files/ripgrep model/hosted/link "
        "processes/capture processes/jobs processes/process processes/table processes/watcher sandbox/detection "
        "sandbox/plan ui/clipboard ui/screens/equipment ui/user_commands web/markdown"
    ),
    "protocols, and formats of other programs' data": (
        "files/own_git files/published json_text model/demo model/discovery model/error_body model/forms "
        "model/sign_in model/wires/http model/wires/wire sandbox/network sandbox/open_ports sandbox/judging "
        "sandbox/project_scan session/formats/gemini "
        "session/formats/html session/formats/linear_writers session/formats/native session/formats/reading "
        "agent/race/copies cli/update plugin_sources sandbox/masks "
        "tools/language_servers/spots web/searching tools/functions/runner tools/grep tools/functions/signature "
        "tools/functions/add_ons tools/webfetch "
        "web/addresses web/callback web/fetching web/proxies sandbox/hosts ui/driver ui/prompting/dropped"
    ),
    "what the program itself writes or brings along": (
        "agent/mcp/connection agent/mcp/oauth app/commands app/context_commands "
        "app/exporting cli/output model/demo_script model/learnt model/logins model/price_list "
        "secret_detector session/entries session/locks "
        "shell/families trust ui/background ui/early_prompt ui/key_help"
    ),
    "texts in memory, and the door's own classes": (
        "context/anchors context/arguments context/recalling files/atomic files/secret_files processes/converters "
        "safe_text secret_forms shell/reader"
    ),
}


def readings(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that turn bytes into text, or open a file as text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        opens_text = name in {"open", "fdopen"} and any(
            word.arg in {"encoding", "errors"} for word in node.keywords
        )
        if name in {"read_text", "decode"} or opens_text:
            yield ast.unparse(node)


def test_text_files_have_one_door() -> None:
    allowed = {module for modules in NOT_USER_TEXT.values() for module in modules.split()}
    found = {
        path.relative_to(ROOT).with_suffix("").as_posix(): list(readings(parsed(path.read_text())))
        for path in ROOT.rglob("*.py")
        if path.parent.name != "text_files"
    }
    outside = {module: calls for module, calls in found.items() if calls and module not in allowed}
    assert outside == {}, "read it through text_files, or say here why it is no user's text"
    assert sorted(module for module in allowed if not found.get(module)) == [], (
        "no longer needed here"
    )
