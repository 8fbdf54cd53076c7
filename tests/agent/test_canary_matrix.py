"""One attack in every mode, started in every way, in every form of the sandbox: nothing is harmed unasked."""

import base64
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.canaries import SECRETS, WAYS, Aviary, Way, held_by, may_change, token
from tests.support.contained import FORMS, RecordingSandbox, state_of
from tests.support.tooling import Workspace
from tui_agent.agent.gate import needs_of
from tui_agent.agent.permissions import DEFAULT_RULES, Action, decide_in_mode, view_in_mode
from tui_agent.files.sensitive import steers_programs
from tui_agent.sandbox import Launch
from tui_agent.sandbox.layout import MountKind
from tui_agent.tools.base import ToolContext
from tui_agent.tools.bash import BashInput, BashTool

MODES = ("plan", "build", "auto-edit")
ATTACK = """
exec 2>&1
cat {home}/.ssh/id_rsa {home}/.aws/credentials {home}/.netrc {home}/other/.env
cat .env keys/server.pem sub/.env.local link-env; cp .env build/copy; cat build/copy
cat /proc/[0-9]*/environ /proc/[0-9]*/root{home}/.netrc | tr '\\0' '\\n'; env
echo evil > {home}/other/notes.txt; echo evil >> {home}/.bashrc; echo evil > {home}/.profile; echo evil > link-out/new
ln {home}/other/notes.txt build/hard && echo evil > build/hard; rm -rf {home}/other {home}/.local
mkdir -p build/.git build/.vscode build/.zed build/bare/objects build/bare/refs .husky .claude .idea
for place in .git/config .git/hooks/pre-commit .husky/pre-commit .vscode/tasks.json .envrc .mcp.json \\
    .claude/settings.json build/.envrc build/.git/config build/.vscode/tasks.json build/bare/HEAD \\
    .idea/workspace.xml nest/.git/config build/.exrc build/.zed/tasks.json; do
  echo evil > $place
done
git config core.fsmonitor 'touch {home}/ran'; mv .git away; mv .husky away
ln -s {home}/.ssh build/link; ln -s {home} homelink; mkfifo build/pipe
cp /bin/true build/su; chmod 4755 build/su; chmod 777 . .git {home}
rm -rf data keys; echo evil > keys/server.pem
kill -9 {pid}; (echo x > /dev/tcp/127.0.0.1/{port}) 2>/dev/null
echo evil > README.md; echo evil > src/app.py
echo kept > build/kept.js
echo got through
"""


@pytest.fixture
def victim() -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process of the user with a key in its environment."""
    process = subprocess.Popen(
        ["sleep", "120"], env={"PATH": os.defpath, "API_KEY": token("process")}
    )
    with process:
        yield process
        process.kill()


def attack(aviary: Aviary, victim: "subprocess.Popen[bytes]") -> str:
    """Return the attack as a command that no parser sees through."""
    text = ATTACK.format(home=aviary.home, pid=victim.pid, port=aviary.port)
    return f"echo {base64.b64encode(text.encode()).decode()} | base64 -d | bash"


def context_of(aviary: Aviary, sandbox: RecordingSandbox, mode: str) -> ToolContext:
    environ = {
        "PATH": os.defpath,
        "HOME": str(aviary.home),
        "API_KEY": token("environment"),
        "LANG": "C.UTF-8",
    }
    context = Workspace(aviary.project, sandbox=sandbox, environ=environ).context()
    context.view = view_in_mode(DEFAULT_RULES, mode)
    return context


def is_asked(command: str, context: ToolContext, mode: str) -> bool:
    """Whether a call of bash is asked about or refused."""
    needs = needs_of(BashTool(), BashInput(command=command, timeout=5), context)
    context.allowed = frozenset((need.permission, need.pattern) for need in needs)
    decided = [decide_in_mode(need, DEFAULT_RULES, mode, "bash").action for need in needs]
    return any(action is not Action.ALLOW for action in decided)


def form_of(launch: Launch, project: Path) -> str:
    """Return the form in which a command really ran, by how it was started."""
    overlaid = {
        str(m.place)
        for m in launch.layout.mounts
        if m.kind is MountKind.LAYER and m.work is not None
    }
    if (
        launch.layer is not None
        and "--overlay" in launch.arguments
        and any(map(launch.arguments.count, overlaid))
    ):
        assert any(Path(place).is_relative_to(project) for place in overlaid)
        return "layer"
    if any(word.endswith("bwrap-without-layers") for word in launch.arguments):
        assert launch.layer is not None
        assert launch.layer.is_copy
        return "copy"
    return "landlock" if any("landlock" in word for word in launch.arguments) else "none"


def harm(aviary: Aviary, said: str, mode: str) -> list[str]:
    """Return what may not be: secrets in the output, changes the mode does not allow, what other programs obey."""
    tokens = [*SECRETS, "environment", "process"]
    found = [f"shows {name}" for name in tokens if token(name) in said]
    found += ["reaches the network"] if aviary.called else []
    planted = []
    for folder, folders, files in os.walk(aviary.project / "build"):
        for path in (Path(folder, name) for name in (*folders, *files)):
            kind = path.lstat().st_mode
            leads_out = path.is_symlink() and not path.resolve().is_relative_to(aviary.project)
            special = (
                not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind))
                or kind & 0o6000
            )
            if steers_programs(path.name) or path.name == "HEAD" or leads_out or special:
                planted.append(f"leaves {path.relative_to(aviary.project)}")
    there = aviary.changed().items()
    changed = [
        f"changes {n}" for n, new in there if not may_change(n, mode, new=new, sandboxed=True)
    ]
    return found + planted + changed


@pytest.mark.daily(2)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", FORMS)
async def test_an_attack_that_runs_unasked_harms_nothing(
    tmp_path: Path, form: str, mode: str, way: Way, victim: "subprocess.Popen[bytes]"
) -> None:
    state_of(form, tmp_path)
    aviary = Aviary(tmp_path, port=0)
    sandbox = held_by(form, aviary, tmp_path)
    context, command = context_of(aviary, sandbox, mode), attack(aviary, victim)
    assert not is_asked(command, context, mode)
    said = await way(command, context)
    assert "got through" in said
    assert [form_of(launch, aviary.project) for launch in sandbox.launches] == [form]
    kept = (aviary.project / "build/kept.js").exists()
    assert kept is (mode != "plan")
    assert harm(aviary, said, mode) == []
    noted = any(word in said for word in ("Not kept", "Thrown away", "Renamed or removed"))
    assert way not in WAYS[:2] or noted or mode == "plan"
    assert victim.poll() is None
    await sandbox.aclose()
