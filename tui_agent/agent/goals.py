"""Owns a session's goal. When the model stops, a small model judges if the goal is reached.

If not, a message sends the model back to work; because the message is an entry, the user can branch
from every round. The goal is given up after a number of rounds, or after rounds without anything
new. `Loop` calls `Goals.demand_more` when a run would end, and drops the goal when the user
interrupts the run. A run that ends in another way, such as by its budget, leaves the goal to the
next run.
"""

from collections.abc import Callable, Sequence

from tui_agent.agent.channel import Journal
from tui_agent.agent.news import brings_news
from tui_agent.agent.ports import AgentPorts
from tui_agent.agent.reminders import reminder
from tui_agent.agent.small_questions import ask_small_model
from tui_agent.context.preserved import digest
from tui_agent.context.templates import fill
from tui_agent.lazy import frozen
from tui_agent.model.protocol import ModelError
from tui_agent.safe_text import one_line
from tui_agent.session.entries import AssistantEntry, Entry
from tui_agent.session.path_queries import newest
from tui_agent.session.records import Purpose

GOAL_MISSED = "goal_missed"
"""Name of the prompt that tells the model that the goal is not reached.

The name is also stored in ``UserEntry.synthetic`` of the message made from the prompt.
"""
MAX_ROUNDS = 20
"""Maximum number of rounds of work towards a goal."""
IDLE_ROUNDS = 3
"""Number of consecutive rounds without anything new after which the goal is given up."""
DIGEST_TOKENS = 3_000
"""Maximum number of tokens of the digest of the work that is sent to the judging model."""
ANSWER_CHARS = 6_000
"""Maximum number of characters from the end of the last answer that the judging model sees."""
SECONDS = 60.0
"""Timeout of the judging model, in seconds."""


@frozen
class Judgement:
    """The judging model's verdict on whether the goal is reached, and the reason for it."""

    is_reached: bool
    reason: str


class Goals:
    """A session's goal, and the work towards it. ``model`` returns the conversation's model."""

    def __init__(self, journal: Journal, ports: AgentPorts, model: Callable[[], str]) -> None:
        self._journal = journal
        self._ports = ports
        self._model = model
        self.goal = ""
        """The text of the goal; "" if there is no goal."""
        self.rounds = 0
        """Number of times that the model was sent back to work because the goal wasn't reached."""
        self.ended = ""
        """A sentence that says why the last goal was given up.

        "" if the goal was reached or removed by the user, or if it is still being worked on.
        """
        self._idle = 0

    def begin(self, goal: str) -> None:
        """Set a goal, replacing any earlier one; the next run works towards it."""
        self.goal = goal.strip()
        self.rounds = 0
        self.ended = ""
        self._idle = 0

    def drop(self, why: str = "") -> None:
        """Remove the session's goal.

        ``why`` is a sentence that says why it was given up, or "" if it wasn't given up.
        """
        self.goal = ""
        self.ended = why

    @property
    def words(self) -> str:
        """The status line's text: "goal, round 2 of 20"; "" without a goal."""
        if not self.goal:
            return ""
        return f"goal, round {self.rounds + 1} of {MAX_ROUNDS}"

    async def demand_more(self) -> bool:
        """Have the goal judged, and return True if the model was sent back to work for it.

        Returns False, with a notice, if the goal is reached, given up or could not be judged; the
        goal is then removed. Also returns False without a goal.
        """
        if not self.goal:
            return False
        path = self._journal.session.active_path()
        if self._gives_up(path):
            return False
        goal = self.goal
        judged = None
        why = ""
        try:
            judged = await self._judge(path)
        except (ModelError, TimeoutError) as error:
            why = getattr(error, "message", "") or "the judging model took too long"
        if self.goal != goal:
            # The user dropped or replaced the goal while it was judged.
            return await self.demand_more()
        if judged is None:
            self._say(f"The goal could not be judged: {one_line(why, 120)}. /goal resumes it.")
            self.drop("The goal could not be judged.")
            return False
        if judged.is_reached:
            self._say(f"The goal is reached: {one_line(judged.reason, 200)}")
            self.drop()
            return False
        self.rounds += 1
        reason = one_line(judged.reason, 200)
        self._say(f"The goal is not reached yet (round {self.rounds}): {reason}")
        values = {"goal": self.goal, "reason": judged.reason}
        text = fill(self._ports.prompt(GOAL_MISSED), **values)
        self._journal.append(reminder(path, GOAL_MISSED, text))
        return True

    def _gives_up(self, path: Sequence[Entry]) -> bool:
        """Remove the goal after too many rounds, or too many rounds in a row without progress.

        Returns True, after a notice, if it was removed.
        """
        self._idle += 1
        if not self.rounds or brings_news(path):
            self._idle = 0
        why = ""
        if self._idle >= IDLE_ROUNDS:
            why = f"The goal is not reached: {IDLE_ROUNDS} rounds brought nothing new."
        elif self.rounds >= MAX_ROUNDS:
            why = f"The goal is not reached after {MAX_ROUNDS} rounds."
        if why:
            self._say(f"{why} /goal resumes it.")
            self.drop(why)
        return bool(why)

    async def _judge(self, path: Sequence[Entry]) -> Judgement:
        model = self._ports.small_model or self._model()
        counter = self._ports.directory.counter(model)
        last = newest(path, AssistantEntry)
        said = last.text if last is not None else ""
        work = digest(path, DIGEST_TOKENS, counter.text)
        shown = (
            f"<goal>\n{self.goal}\n</goal>\n\n<work>\n{work}\n</work>\n\n"
            f"<answer>\n{said[-ANSWER_CHARS:]}\n</answer>"
        )
        answer = await ask_small_model(
            shown,
            "goal_judge",
            self._journal,
            self._ports,
            model=model,
            seconds=SECONDS,
            purpose=Purpose.GOALS,
        )
        return read_judgement(answer.text)

    def _say(self, text: str) -> None:
        self._journal.channel.say(text)


def read_judgement(text: str) -> Judgement:
    """Parse the judging model's answer: a line that begins with yes or no, then the reason.

    An answer that does not begin with yes or no counts as no.
    """
    lines = [line.strip(" \t*#`>-") for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return Judgement(is_reached=False, reason="the judging model said nothing")
    verdict, _stop, rest = lines[0].partition(" ")
    word = verdict.strip(".,:;!—-").lower()
    reason = " ".join([rest.strip(" .,:;—-"), *lines[1:]]).strip()
    if word in {"yes", "no"}:
        return Judgement(is_reached=word == "yes", reason=reason or "no reason given")
    return Judgement(is_reached=False, reason=" ".join(lines))
