"""Makes patches, merges and commits with git, without running a repository's hooks or filters.

A patch is created in a temporary repository. A commit is created with a temporary working tree and
a temporary index. In the user's repository, this adds objects and one branch, and changes neither
the index nor the files.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from subprocess import SubprocessError

from tui_agent.errors import UserFacingError
from tui_agent.files.own_git import (
    call_git,
    head_of,
    link_repository,
    repository_of,
    shared_directory,
)
from tui_agent.lazy import frozen

GIT_SECONDS = 120.0
"""Time limit of one git command, in seconds."""
_AUTHOR = "tui-agent <tui-agent@localhost>"
"""Author of commits if the user's git settings contain no name."""
_NOT_PLAIN = re.compile(rb'[\x00-\x1f"\\]')
_PATCH_OPTIONS = "--binary --full-index --no-color --no-ext-diff --no-textconv --find-renames"
_LINK = b"160000 "
"""Start of a submodule's row in the output of ``git ls-files --stage``."""


class GitWriteError(UserFacingError):
    """Raised when a patch or commit can't be created. The message tells the user why."""


@frozen
class FileVersion:
    """A version of a file. ``content`` is None if the file didn't exist.

    The content of a link is its target.
    """

    content: bytes | None = None
    is_executable: bool = False
    is_link: bool = False

    @property
    def mode(self) -> bytes:
        """The mode of the file in git, as digits."""
        if self.is_link:
            return b"120000"
        return b"100755" if self.is_executable else b"100644"


@frozen
class FileEdit:
    """The versions of a file before and after a change. ``path`` is relative to the project."""

    path: str
    before: FileVersion
    after: FileVersion


def make_patch(edits: Sequence[FileEdit]) -> bytes:
    """Return a patch for ``git apply`` with all edits, including binary files, modes and renames.

    Returns b"" if there are no edits. This function blocks, so call it in a thread. Raises
    GitWriteError if git isn't installed or fails.
    """
    if not edits:
        return b""
    with tempfile.TemporaryDirectory(prefix="tui-agent-patch-") as name:
        git = _Git(Path(name))
        git.run("init --quiet --bare", name)
        git.run("fast-import --quiet --force", text=b"".join(_stream(edits)))
        return git.run(f"diff {_PATCH_OPTIONS} refs/heads/before refs/heads/after")


def _stream(edits: Sequence[FileEdit]) -> Iterable[bytes]:
    """Yield a ``git fast-import`` stream that creates two branches with one commit each.

    The branch ``before`` contains the files before the edits, ``after`` the files after the edits.
    """
    for branch in ("before", "after"):
        yield f"commit refs/heads/{branch}\ncommitter {_AUTHOR} 0 +0000\ndata 0\n".encode()
        for edit in edits:
            version = edit.before if branch == "before" else edit.after
            if version.content is not None:
                # The format allows names in quotes, in which unusual bytes are written as octal
                # escapes.
                name = _NOT_PLAIN.sub(_as_octal, os.fsencode(edit.path))
                content = version.content
                yield b'M %s inline "%s"\ndata %d\n%s\n' % (
                    version.mode,
                    name,
                    len(content),
                    content,
                )
        yield b"\n"


def _as_octal(byte: "re.Match[bytes]") -> bytes:
    return b"\\%03o" % ord(byte[0])


def merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge ``ours`` and ``theirs``, which are two changed versions of ``base``.

    Returns the merged content. Returns None if the changes conflict, if a version is binary, or if
    git isn't installed or fails.
    """
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
    """A commit that `commit_to_branch` has created: its full id and its branch.

    ``left_out`` contains the edits that are not in the commit, each as its relative path with the
    reason.
    """

    commit: str
    branch: str
    left_out: Mapping[str, str]
    mixed: tuple[str, ...] = ()
    """Relative paths of committed files that the user had changed earlier and not committed.

    The commit contains these changes, too.
    """


def commit_to_branch(
    project: Path, branch: str, edits: Sequence[FileEdit], message: str
) -> Committed:
    """Commit edits on a new branch that starts at ``HEAD``.

    The user's index and working tree stay unchanged, and no hook is run. If a file already had
    uncommitted changes before the edit, these changes are left out of the commit. They are included
    if they conflict with the edit, or if the file is untracked or binary.

    Raises:
        GitWriteError: git is missing or fails, there is no repository or no commit in it, the
            branch exists or its name is invalid, or nothing is left to commit.
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
        link_repository(own, repository)
        (own / "index").unlink(missing_ok=True)
        git = _Git(tree, own)
        if git.try_run("check-ref-format --branch", branch) is None:
            raise GitWriteError(f"“{branch}” is not a valid branch name.")
        git.run("read-tree", head)
        left_out, mixed = _write_tree(git, tree, edits)
        paths = _listed(edit.path for edit in edits if edit.path not in left_out)
        git.run("update-index --add --remove --replace -z --stdin", text=paths)
        made = git.text("write-tree")
        if made == git.text("rev-parse", f"{head}^{{tree}}"):
            raise GitWriteError("There is nothing to commit: HEAD already has these changes.")
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
            # The empty string stands for “no old value”: git fails if the branch already exists.
            _Git(repository, repository).run(
                "-c core.hooksPath=/dev/null update-ref", f"refs/heads/{branch}", commit, ""
            )
        except GitWriteError as error:
            raise GitWriteError(f"The branch {branch} can't be created: {error}") from None
    return Committed(commit, branch, left_out, tuple(mixed))


def _write_tree(
    git: "_Git", tree: Path, edits: Sequence[FileEdit]
) -> tuple[dict[str, str], list[str]]:
    """Write the new versions of the edited files to the directory ``tree``, to be committed.

    Returns the ``left_out`` and ``mixed`` paths of `Committed`.
    """
    left_out = _unwritable(git, [edit.path for edit in edits])
    mixed: list[str] = []
    for edit in edits:
        if edit.path not in left_out and edit.after.content is not None:
            file = tree / edit.path
            file.parent.mkdir(parents=True, exist_ok=True)
            if edit.after.is_link:
                file.symlink_to(os.fsdecode(edit.after.content))
                continue
            content, is_mixed = _for_commit(git, edit)
            file.write_bytes(content)
            file.chmod(0o755 if edit.after.is_executable else 0o644)
            mixed += [edit.path] if is_mixed else []
    return left_out, mixed


def uncommittable(project: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return the relative paths that can't be committed, each with the reason.

    Returns {} if there is no repository, or if git isn't installed or fails.
    """
    repository = repository_of(project)
    if repository is None or not paths:
        return {}
    with tempfile.TemporaryDirectory(prefix="tui-agent-result-") as name:
        own = Path(name) / "git"
        own.mkdir()
        link_repository(own, repository)
        try:
            return _unwritable(_Git(project, own), paths)
        except GitWriteError:
            return {}


def _unwritable(git: "_Git", paths: Sequence[str]) -> dict[str, str]:
    """Return the paths that can't be committed, each with the reason.

    These are paths in submodules, and paths that use a git filter such as Git LFS.
    """
    listed = git.run("ls-files --stage -z").split(b"\0")
    links = {row.partition(b"\t")[2] for row in listed if row.startswith(_LINK)}
    filtered = _filters(git, paths)
    left_out: dict[str, str] = {}
    for path in paths:
        above = [os.fsencode(str(parent)) for parent in Path(path).parents]
        if links.intersection(above):
            left_out[path] = "it is in a submodule"
        elif path in filtered:
            left_out[path] = f"it needs git's filter “{filtered[path]}”"
    return left_out


def _listed(paths: Iterable[str]) -> bytes:
    """Join paths with NUL characters, the form that git reads with its option ``-z``."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _filters(git: "_Git", paths: Sequence[str]) -> dict[str, str]:
    """Return the name of the git filter (such as ``lfs``) for each path that uses one."""
    fields = git.run("check-attr -z --stdin filter", text=_listed(paths)).split(b"\0")
    unset = {b"unspecified", b"unset", b"set"}
    rows = zip(fields[::3], fields[2::3], strict=False)
    return {
        os.fsdecode(path): value.decode("utf-8", "replace")
        for path, value in rows
        if value not in unset
    }


def _for_commit(git: "_Git", edit: FileEdit) -> tuple[bytes, bool]:
    """Return the content of a file for the commit, and whether it includes earlier changes.

    Earlier changes are changes that were made before the edit and not committed.
    """
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
    """Runs git in the directory ``tree``, with ``repository`` as the git directory.

    If ``repository`` is None or the same as ``tree``, ``tree`` itself is the git directory.
    Otherwise ``tree`` is the working tree of ``repository``.
    """

    tree: Path
    repository: Path | None = None

    def run(self, command: str, *more: str, text: bytes = b"", author: str = "") -> bytes:
        """Run git with the input ``text``, and return its output.

        The arguments are the words of ``command``, then ``more``. ``author`` has the form "NAME
        <ADDRESS>". Raises GitWriteError if git isn't installed or fails. The message is the first
        line of git's error output, if there is any.
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
        """Run git as `run` does, and return its output, or None if git isn't installed or fails."""
        try:
            return self.run(command, *more)
        except GitWriteError:
            return None

    def text(self, command: str, *more: str, text: bytes = b"", author: str = "") -> str:
        """Run git as `run` does, and return its output as text, without surrounding white space.

        Raises GitWriteError as `run` does.
        """
        return self.run(command, *more, text=text, author=author).decode().strip()
