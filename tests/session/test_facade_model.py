"""The facade against a model of a few dictionaries, through any sequence of appends, moves, labels and forks."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.stores import open_store
from tests.support.texts import answered, said
from tests.support.thoroughness import examples
from tui_agent.session.session import Session

choices = st.integers(0, 10_000)


class SessionMachine(RuleBasedStateMachine):
    """Runs every step on a real session and on the model."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.store = open_store(Path(self.directory.name) / "s.db")
        self.session = self.open(self.store.create_session("/").id)
        self.parents: dict[int, int | None] = {}
        self.texts: dict[int, str] = {}
        self.labels: dict[int, str] = {}
        self.leaf: int | None = None

    def open(self, session_id: str) -> Session:
        return Session(self.store, session_id, estimate=lambda entry: len(entry.preview))

    def teardown(self) -> None:
        self.store.close()
        self.directory.cleanup()

    def pick(self, choice: int) -> int | None:
        ids = [None, *sorted(self.parents)]
        return ids[choice % len(ids)]

    def grown(self, entry_id: int, parent: int | None, text: str) -> None:
        assert entry_id not in self.parents
        assert entry_id > max(self.parents, default=0)
        self.parents[entry_id] = parent
        self.texts[entry_id] = text

    def line(self, leaf: int | None) -> list[int]:
        line = []
        while leaf is not None:
            line.append(leaf)
            leaf = self.parents[leaf]
        return line[::-1]

    @rule(number=choices)
    def append(self, number: int) -> None:
        entry = self.session.append(said(f"said {number}"))
        self.grown(entry.id, self.leaf, f"said {number}")
        self.leaf = entry.id

    @rule(count=st.integers(0, 4))
    def append_many(self, count: int) -> None:
        for entry in self.session.append_many([answered(f"answer {at}") for at in range(count)]):
            self.grown(entry.id, self.leaf, entry.preview)
            self.leaf = entry.id

    @rule(choice=choices)
    def append_elsewhere(self, choice: int) -> None:
        parent = self.pick(choice)
        entry = self.session.beside(parent).append(said("elsewhere"))
        self.grown(entry.id, parent, "elsewhere")

    @rule()
    def append_beside(self) -> None:
        self.grown(self.session.append(said("beside"), moves_leaf=False).id, self.leaf, "beside")

    @rule()
    def another_program_appends(self) -> None:
        entry = self.open(self.session.id).beside(self.pick(3)).append(said("from elsewhere"))
        self.grown(entry.id, self.pick(3), "from elsewhere")

    @rule(choice=choices)
    def move(self, choice: int) -> None:
        target = self.pick(choice)
        self.session.move(target)
        self.leaf = target

    @precondition(lambda self: self.parents)
    @rule(choice=choices, text=st.sampled_from(["green", "red", None]))
    def label(self, choice: int, text: str | None) -> None:
        entry_id = sorted(self.parents)[choice % len(self.parents)]
        self.session.label(entry_id, text)
        self.labels.pop(entry_id, None)
        if text:
            self.labels[entry_id] = text

    @rule()
    def reopen(self) -> None:
        # The leaf in the file is that of whoever wrote last; another program may have.
        if self.session.info.leaf == self.leaf:
            self.session = self.open(self.session.id)

    @rule(choice=choices)
    def fork(self, choice: int) -> None:
        """Fork somewhere and go on in the fork."""
        at = self.pick(choice)
        self.session = self.open(self.store.fork(self.session.id, at).id)
        kept = set(self.line(at))
        self.parents = {i: parent for i, parent in self.parents.items() if i in kept}
        self.labels = {i: text for i, text in self.labels.items() if i in kept}
        self.leaf = at

    @invariant()
    def the_leaf_and_its_path_agree(self) -> None:
        assert self.session.leaf == self.leaf
        line = self.line(self.leaf)
        assert [entry.id for entry in self.session.path()] == line
        headers = self.session.reader.headers(self.session.path_outline().ids)
        assert [header.preview for header in headers] == [self.texts[i] for i in line]
        assert list(self.session.path_outline()) == [
            (header.id, header.kind, header.size) for header in headers
        ]
        assert self.session.active_path() == self.session.path()

    @invariant()
    def the_tree_and_the_labels_agree(self) -> None:
        assert {header.id: header.parent_id for header in self.session.skeleton()} == self.parents
        assert self.session.labels() == self.labels
        assert (self.session.reader.damaged, self.session.info.entry_count) == (
            0,
            len(self.parents),
        )


TestSessionMachine = SessionMachine.TestCase
TestSessionMachine.settings = settings(
    max_examples=examples(40), stateful_step_count=30, deadline=None
)
