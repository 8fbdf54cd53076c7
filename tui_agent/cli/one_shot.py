"""Carries out a run without a screen, from building the program's parts to recording the outcome.

`HeadlessRun` implements the steps; this module calls them in order.
"""

import gc
import io
import sys
from argparse import Namespace
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from tui_agent.agent.answer_format import AnswerFormat, SchemaError
from tui_agent.agent.ports import RunCheck
from tui_agent.cli.arguments import UsageError
from tui_agent.cli.controller_wiring import GO_ON, ControllerWiring
from tui_agent.cli.headless import HeadlessRun, KeyedRun
from tui_agent.cli.output import ExitCode, say, say_json
from tui_agent.cli.wiring import Wiring
from tui_agent.text_files.encodings import user_text


async def run_one_shot(arguments: Namespace, message: str, piped: str) -> int:
    """Send a message, or run a command or a race, and return the exit code.

    ``piped`` is the text of standard input. With ``--key``, a finished run isn't repeated, but its
    last answer is printed again, and an interrupted run continues.
    """
    async with aclosing(Wiring(arguments)) as wiring:
        answer_format = None
        if arguments.output_schema is not None:
            answer_format = _read_format(arguments.output_schema)
        for warning in wiring.loaded.warnings:
            say(warning, file=sys.stderr)
        parts = ControllerWiring(wiring)
        keyed = None
        if arguments.key:
            keyed = await KeyedRun.find(wiring.store, arguments.key)
            code_before = keyed.repeat(wiring.store, form=arguments.output_format)
            if code_before is not None:
                return code_before
        # In the format json, collect the text that would be printed, because it becomes part of the
        # object that is printed at the end.
        printed = io.StringIO() if arguments.output_format == "json" else None
        run = HeadlessRun(parts, as_json=arguments.json, out=printed)
        code: int = ExitCode.FAILED
        try:
            await run.open(parts.start().request if keyed is None else keyed.request)
            run.agent.ports.answer_format = answer_format
            if keyed is not None:
                await run.prepare_keyed(keyed)
            tally = None
            if printed is not None:
                from tui_agent.cli.summary import RunTally

                tally = RunTally(run.agent)
            if wiring.notice:
                say(wiring.notice, file=sys.stderr)
            # Don't let the garbage collector examine what was imported and built so far, as all of
            # it is needed until the end.
            gc.freeze()
            gc.enable()
            if keyed is not None and keyed.has_begun and arguments.race is None:
                message = GO_ON
                piped = ""
            code = await _carry_out(run, arguments, message, piped)
            if tally is not None and printed is not None:
                summary = tally.summary(printed.getvalue(), code, run.problem)
                say_json(replace(summary, structured_output=run.value).as_json())
        finally:
            try:
                run.keep_outcome(code)
            finally:
                await run.controller.close()
        return code


def _read_format(given: str) -> AnswerFormat:
    """Return the format for a JSON Schema, or for the file that contains it.

    Raises:
        UsageError: the file can't be read, or the schema can't be used.
    """
    text = given
    place = ""
    try:
        if not given.lstrip().startswith("{"):
            place = f"{given}: "
            text = user_text(Path(given).read_bytes())
        return AnswerFormat.parse(text)
    except (OSError, SchemaError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"Argument --output-schema: {place}{why}") from None


async def _carry_out(run: HeadlessRun, arguments: Namespace, message: str, piped: str) -> int:
    """Send the message, or run the command or race; write the result; return the exit code."""
    code: int
    if arguments.race is not None:
        code = await _run_race(run, arguments, message, piped)
    else:
        _set_check_and_goal(run, arguments)
        code = await run.run(message, piped)
    if arguments.result is not None:
        code = await run.write_result(arguments.result) or code
    return code


async def _run_race(run: HeadlessRun, arguments: Namespace, message: str, piped: str) -> int:
    from tui_agent.app.race_commands import RaceWish

    prompt = "\n\n".join(filter(str.strip, [message, piped]))
    pick = arguments.pick or "none"
    return await run.race(RaceWish(prompt, arguments.race, arguments.check, pick))


def _set_check_and_goal(run: HeadlessRun, arguments: Namespace) -> None:
    """Set the check and the goal of the run if the arguments name them."""
    if arguments.check and arguments.check_rounds is None:
        run.agent.ports.check = RunCheck(arguments.check)
    elif arguments.check:
        run.agent.ports.check = RunCheck(arguments.check, rounds=arguments.check_rounds)
    if arguments.goal:
        run.agent.goals.begin(arguments.goal)
