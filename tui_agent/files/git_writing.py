"""Makes patches and commits with git, without using the repository's settings, hooks, index or files.

A patch is made in a temporary repository, a commit from a temporary working tree and index. The
user's repository only gets objects and one branch.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from subprocess import SubprocessError

from tui_agent.errors import UserFacingError
from tui_agent.files.own_git import call_git, furnish, head_of, repository_of, shared_directory
from tui_agent.lazy import frozen

GIT_SECONDS = 120.0
"""Time limit of one git command, in seconds."""
_AUTHOR = "tui-agent <tui-agent@localhost>"
"""Author of commits if git has no name of the user."""
_NOT_PLAIN = re.compile(rb'[\x00-\x1f"\\]')
_PATCH_OPTIONS = "--binary --full-index --no-color --no-ext-diff --no-textconv --find-renames"
_LINK = b"160000 "
"""Beginning of a submodule's line in a listing of the index."""


class GitWriteError(UserFacingError):
    """Git couldn't make the patch or the commit."""


@frozen
class FileVersion:
    """A file's content, None if there is no file, and whether it is executable."""

    content: bytes | None = None
    is_executable: bool = False


@frozen
class FileEdit:
    """A file before and after a change. ``path`` is relative to the project."""

    path: str
    before: FileVersion
    after: FileVersion


def make_patch(edits: Sequence[FileEdit]) -> bytes:
    """Return a patch for ``git apply``, with text and binary files, modes and renames.

    Blocks, so call it in a thread. Raises GitWriteError if there is no git.
    """
    if not edits:
        return b""
    with tempfile.TemporaryDirectory(prefix="tui-agent-patch-") as name:
        git = _Git(Path(name))
        git.run("init --quiet --bare", name)
        git.run("fast-import --quiet --force", text=b"".join(_stream(edits)))
        return git.run(f"diff {_PATCH_OPTIONS} refs/heads/before refs/heads/after")


def _stream(edits: Sequence[FileEdit]) -> Iterable[bytes]:
    """Yield a ``git fast-import`` stream: a commit of the files before, and one after."""
    for branch in ("before", "after"):
        yield f"commit refs/heads/{branch}\ncommitter {_AUTHOR} 0 +0000\ndata 0\n".encode()
        for edit in edits:
            version = edit.before if branch == "before" else edit.after
            if version.content is not None:
                mode = b"100755" if version.is_executable else b"100644"
                # In quotes, with octal escapes.
                name = _NOT_PLAIN.sub(_as_octal, os.fsencode(edit.path))
                content = version.content
                yield b'M %s inline "%s"\ndata %d\n%s\n' % (mode, name, len(content), content)
        yield b"\n"


def _as_octal(byte: "re.Match[bytes]") -> bytes:
    return b"\\%03o" % ord(byte[0])


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the three-way merge of a text; None for conflicts and binary files."""
    with tempfile.TemporaryDirectory(prefix="tui-agent-merge-") as name:
        place = Path(name)
        for file, content in (("base", base), ("ours", ours), ("theirs", theirs)):
            (place / file).write_bytes(content)
        try:
            return _Git(place).run("merge-file -p --quiet ours base theirs")
        except GitWriteError:
            return None


@frozen
class Committed:
    """A commit that was made.

    ``left_out`` has the paths that are not in it, each with the reason.
    """

    commit: str
    branch: str
    left_out: Mapping[str, str]
    mixed: tuple[str, ...] = ()
    """Paths whose earlier uncommitted changes are in the commit, too."""


def commit_to_branch(
    project: Path, branch: str, edits: Sequence[FileEdit], message: str
) -> Committed:
    """Commit edits on a new branch that starts at ``HEAD``.

    Index, working tree and hooks are not touched.

    Where a file had changes before that are not committed, they are left out of the commit if the
    lines allow it.

    Raises:
        GitWriteError: there is no repository or no commit in it, the branch exists or has an
            invalid name, or
            nothing is left to commit.
    """
    repository = repository_of(project)
    if repository is None:
        raise GitWriteError(
            f"{project} is not a git repository; write the patch to a file instead."
        )
    shared = shared_directory(repository)
    head = head_of(repository, shared)
    if head is None:
        raise GitWriteError("The repository has no commit yet; write the patch to a file instead.")
    with tempfile.TemporaryDirectory(prefix="tui-agent-commit-") as name:
        place = Path(name)
        tree = place / "tree"
        own = place / "git"
        for directory in (tree, own):
            directory.mkdir()
        furnish(own, repository)
        (own / "index").unlink(missing_ok=True)
        git = _Git(tree, own)
        if git.try_run("check-ref-format --branch", branch) is None:
            raise GitWriteError(f"“{branch}” is not a valid name for a branch.")
        git.run("read-tree", head)
        left_out, mixed = _write_tree(git, tree, edits)
        paths = _listed(edit.path for edit in edits if edit.path not in left_out)
        git.run("update-index --add --remove --replace -z --stdin", text=paths)
        made = git.text("write-tree")
        if made == git.text("rev-parse", f"{head}^{{tree}}"):
            raise GitWriteError("There is nothing to commit: HEAD has these changes already.")
        home = Path.home()
        known = {
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
            "GIT_DIR": str(repository),
        }
        done = call_git(["var", "GIT_AUTHOR_IDENT"], project, known, seconds=GIT_SECONDS)
        identity = done.stdout.decode("utf-8", "replace").rpartition(">")[0]
        author = _AUTHOR
        if done.returncode == 0 and identity:
            author = f"{identity}>"
        commit = git.text(
            "commit-tree", made, "-p", head, text=message.encode("utf-8", "replace"), author=author
        )
        try:
            # An empty old value means that there must be none.
            _Git(repository, repository).run(
                "-c core.hooksPath=/dev/null update-ref", f"refs/heads/{branch}", commit, ""
            )
        except GitWriteError as error:
            raise GitWriteError(f"The branch {branch} can't be made: {error}") from None
    return Committed(commit, branch, left_out, tuple(mixed))


def _write_tree(
    git: "_Git", tree: Path, edits: Sequence[FileEdit]
) -> tuple[dict[str, str], list[str]]:
    """Write the files for the commit; returns those left out, with reasons, and those mixed."""
    left_out = _unwritable(git, [edit.path for edit in edits])
    mixed: list[str] = []
    for edit in edits:
        if edit.path not in left_out and edit.after.content is not None:
            content, is_mixed = _for_commit(git, edit)
            file = tree / edit.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o755 if edit.after.is_executable else 0o644)
            mixed += [edit.path] if is_mixed else []
    return left_out, mixed


def not_of_git(project: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return the files that git wouldn't store unchanged, with the reasons; empty without git."""
    repository = repository_of(project)
    if repository is None or not paths:
        return {}
    with tempfile.TemporaryDirectory(prefix="tui-agent-result-") as name:
        own = Path(name) / "git"
        own.mkdir()
        furnish(own, repository)
        try:
            return _unwritable(_Git(project, own), paths)
        except GitWriteError:
            return {}


def _unwritable(git: "_Git", paths: Sequence[str]) -> dict[str, str]:
    """Return the files a commit can't hold, with reasons: in submodules, or filtered."""
    listed = git.run("ls-files --stage -z").split(b"\0")
    links = {row.partition(b"\t")[2] for row in listed if row.startswith(_LINK)}
    filtered = _filters(git, paths)
    left_out: dict[str, str] = {}
    for path in paths:
        above = [os.fsencode(str(parent)) for parent in Path(path).parents]
        if links.intersection(above):
            left_out[path] = "it is in a submodule"
        elif path in filtered:
            left_out[path] = f"git's filter “{filtered[path]}” has to be run for it"
    return left_out


def _listed(paths: Iterable[str]) -> bytes:
    """Return paths as input for git's ``-z``."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _filters(git: "_Git", paths: Sequence[str]) -> dict[str, str]:
    """Return the filters (such as Git LFS) that attributes name, by path."""
    fields = git.run("check-attr -z --stdin filter", text=_listed(paths)).split(b"\0")
    unset = {b"unspecified", b"unset", b"set"}
    rows = zip(fields[::3], fields[2::3], strict=False)
    return {
        os.fsdecode(path): value.decode("utf-8", "replace")
        for path, value in rows
        if value not in unset
    }


def _for_commit(git: "_Git", edit: FileEdit) -> tuple[bytes, bool]:
    """Return a file's content for the commit, and True if it includes earlier changes."""
    after = edit.after.content or b""
    before = edit.before.content
    committed = git.try_run("cat-file --filters", f":{edit.path}")
    if before == committed:
        return after, False
    if before is not None and committed is not None:
        merged = merge(before, committed, after)
        if merged is None:
            return (after, True)
        return (merged, False)
    return after, before is not None


@frozen
class _Git:
    """Runs git in a directory, on a repository of this program or on the directory's own."""

    tree: Path
    repository: Path | None = None

    def run(self, command: str, *more: str, text: bytes = b"", author: str = "") -> bytes:
        """Run git and return its output. ``command`` is split at spaces, ``more`` is not.

        Raises GitWriteError if there is no git, or if it fails, with git's first line as the
        message.
        """
        environment = {"GIT_DIR": str(self.repository or self.tree)}
        if self.repository is not None and self.repository != self.tree:
            environment |= {"GIT_WORK_TREE": str(self.tree)}
        name, _, address = (author or _AUTHOR).rstrip(">").rpartition(" <")
        for role in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address}
        arguments = [*command.split(), *more]
        try:
            done = call_git(arguments, self.tree, environment, text=text, seconds=GIT_SECONDS)
        except FileNotFoundError:
            raise GitWriteError("This needs git, which is not installed.") from None
        except (OSError, SubprocessError) as error:
            raise GitWriteError(f"git {arguments[0]} failed: {error}.") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise GitWriteError(said[0] if said else f"git {arguments[0]} failed.")
        return done.stdout

    def try_run(self, command: str, *more: str) -> bytes | None:
        """Run git and return its output, None if it fails."""
        try:
            return self.run(command, *more)
        except GitWriteError:
            return None

    def text(self, command: str, *more: str, text: bytes = b"", author: str = "") -> str:
        """Run git and return its output as text without final line break; raises as `run`."""
        return self.run(command, *more, text=text, author=author).decode().strip()
