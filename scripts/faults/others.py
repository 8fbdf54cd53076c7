"""Faults that are no kill of a session: tests make them, and the script that kills races."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from scripts.faults.kills import Outcome

ROOT = Path(__file__).resolve().parents[2]
RACE, FULL_RACE = "race", "full disk, race"
LONGEST = 3_600
"""Seconds after which a row counts as hung."""

TESTS: Mapping[str, tuple[str, ...]] = {
    "clock set back": ("tests/session/test_store.py::test_a_clock_that_jumps_loses_nothing",),
    "signals": (
        "tests/e2e/test_ending.py",
        "tests/e2e/test_suspending.py",
        "tests/e2e/test_headless.py::test_an_interrupt_ends_the_run_and_keeps_what_was_said",
        "tests/processes/test_jobs.py",
    ),
    "full, locked, gone": (
        "tests/ui/test_trouble.py",
        "tests/session/test_faults.py",
        "tests/ui/test_main_screen.py::test_a_full_disk_gives_the_text_back",
        "tests/agent/test_rewind.py::test_a_disk_that_is_full_costs_the_images_and_not_the_work",
        "tests/agent/test_rewind_losses.py::test_a_file_with_two_names_is_whole_when_the_disk_is_full",
        "tests/cli/test_surroundings.py::test_a_full_disk_behind_the_output_is_told",
    ),
    "room for images": (
        "tests/agent/test_rewind.py::test_images_dropped_for_room_can_not_be_restored",
        "tests/agent/test_rewind.py::test_images_are_trimmed_to_the_limit_while_one_works",
        "tests/agent/test_rewind.py::test_what_takes_too_much_room_at_once_is_listed_and_stays",
    ),
    "links": (
        "tests/agent/test_rewind.py::test_ignored_files_links_and_places_outside_are_never_touched",
        "tests/agent/test_rewind.py::test_a_directory_that_became_a_link_is_not_followed",
        "tests/agent/test_inside.py",
        "tests/files/test_opening.py",
        "tests/sandbox/test_sandbox.py::test_a_link_in_the_way_is_not_followed",
        "tests/sandbox/test_sandbox.py::test_links_and_directories_come_out_as_they_were_made",
    ),
}
"""The tests of a fault, in their long form: every command, key and page meets a store that is full or gone."""


def run_tests(name: str) -> Outcome:
    """Run the tests of a fault; each counts as a round."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            *TESTS[name],
        ]
        environ = {**os.environ, "TUI_AGENT_NIGHTLY": "1"}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        said = done.stdout[-2_000:] + done.stderr[-2_000:]
        if not report.exists():
            return Outcome(name, wrong=[said])
        cases = [
            case
            for case in ET.parse(report).getroot().iter("testcase")
            if case.find("skipped") is None
        ]
    wrong = [
        f"{case.get('classname')}::{case.get('name')}: {problem.get('message', '')[:500]}"
        for case in cases
        for problem in (*case.findall("failure"), *case.findall("error"))
    ]
    if not wrong and (done.returncode or not cases):
        wrong = [f"No test was run: {said}"]
    return Outcome(name, kills=len(cases), finished=len(cases), wrong=wrong)


def run_races(name: str, times: int, seed: int) -> Outcome:
    """Kill races at random moments, or let their disk be full."""
    script = Path(__file__).with_name("kill_race.py")
    command = [
        sys.executable,
        str(script),
        str(times),
        "--seed",
        str(seed),
        *(["--full"] if name == FULL_RACE else []),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    rounds = [line for line in done.stdout.splitlines() if re.match(r" *\d+  ", line)]
    wrong = [line.strip() for line in rounds if not line.endswith("nothing wrong")]
    if done.returncode and not wrong:
        wrong = [done.stderr[-2_000:]]
    ended = re.search(r"(\d+) ended by itself", done.stdout)
    return Outcome(name, kills=len(rounds), finished=int(ended[1]) if ended else 0, wrong=wrong)
