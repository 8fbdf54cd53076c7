"""Random races of a job against the judge that looks at its output, with canaries in the home directory.

`TUI_AGENT_RACES=5000` runs as many, `TUI_AGENT_RACE_SEED` begins with others. A failure names its seed.
"""

import asyncio
import contextlib
import math
import os
import random
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.contained import FORMS, NOTHING, OUTPUTS, PROJECT, Contained, state_of
from tests.support.thoroughness import NIGHTLY
from tui_agent.files.sensitive import is_bare_repository, steers_programs
from tui_agent.sandbox import Grants

RACES = int(os.environ.get("TUI_AGENT_RACES", "1000" if NIGHTLY else "3"))
SEED = int(os.environ.get("TUI_AGENT_RACE_SEED", "1"))
PROGRAM = Path(__file__).with_name("racing_job.py")
CANARIES = (".ssh/id_rsa", ".claude/settings.json", "notes/private", "code/other/.git/config")
SOURCES = {"app.py": "one\n", "src/lib.py": "two\n"}
VIEWS = (NOTHING, OUTPUTS, PROJECT, PROJECT.opened(Grants(sources=True)))


def furnished(home: Path, form: str) -> Contained:
    box = Contained(home, state=state_of(form, home.parent))
    box.git("init", "-q")
    box.file(".gitignore", "dist/\n")
    for name, text in SOURCES.items():
        box.file(name, text)
    box.file("racing_job.txt", PROGRAM.read_text())
    for name in CANARIES:
        box.file(name, "canary", at=box.home).chmod(0o600)
        (box.home / name).parent.chmod(0o700)
    box.git("add", ".")
    return box


async def raced(box: Contained, seed: int) -> bool:
    """Look at a job several times while it races, end it, and have what it left judged; returns whether it began."""
    chance = random.Random(seed)
    job = await box.sandbox.launch(
        ["sh", "-c", f"cd dist && exec python3 ../racing_job.txt {seed}"],
        box.root, box.root, chance.choice(VIEWS), box.environment(), live=chance.random() < 0.7,
    )  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *job.arguments, cwd=box.root, env=job.environment, pass_fds=job.descriptors,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        began = await process.stdout.readline() == b"racing\n"
        for _ in range(chance.randrange(2, 25)):
            await box.sandbox.publish_outputs(job, process.pid)
        return began and process.returncode is None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await box.sandbox.finish(job, "", None)


def planted(box: Contained) -> list[str]:
    """Return what there is in the output that no mode keeps."""
    found = []
    for place, directories, files in os.walk(box.root / "dist"):
        if os.lstat(place).st_mode & 0o500 != 0o500:
            # It is closed to its own user, and so to what would obey anything in it.
            directories.clear()
            continue
        if is_bare_repository([*directories, *files]):
            found.append(place)
        for name in (*directories, *files):
            path = Path(place, name)
            mode = path.lstat().st_mode
            is_plain = stat.S_ISDIR(mode) or (stat.S_ISREG(mode) and not mode & 0o6000)
            leads_out = path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(
                box.root
            )
            if steers_programs(name) or leads_out or not (is_plain or path.is_symlink()):
                found.append(str(path))
    return found


def cleared(box: Contained) -> None:
    output = box.root / "dist"
    if output.is_dir() and not output.is_symlink():
        subprocess.run(["chmod", "-R", "u+rwx", str(output)], check=True)
        shutil.rmtree(output)
    box.file("dist/old.js", "old\n")


@pytest.mark.timeout(7_200 if RACES > 100 else 120)
@pytest.mark.parametrize("form", FORMS)
async def test_no_race_of_a_job_against_the_judge_harms_a_canary(tmp_path: Path, form: str) -> None:
    box = furnished(tmp_path / "home", form)
    before = box.outside()
    begun = 0
    races = range(SEED, SEED + math.ceil(RACES / len(FORMS)))
    for seed in races:
        cleared(box)
        async with asyncio.timeout(120):
            is_begun = await raced(box, seed)
        begun += is_begun
        if not is_begun:
            # A job spoilt the private `/tmp` of its session, where this project lies, too.
            await box.sandbox.aclose()
            box.reset()
        assert box.outside() == before, seed
        assert planted(box) == [], seed
        assert {name: (box.root / name).read_text() for name in SOURCES} == SOURCES, seed
    await box.sandbox.aclose()
    assert begun * 2 >= len(races)
