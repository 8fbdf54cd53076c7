"""A job that changes everything under the judge's hands, at random: exchanges, links, pipes, devices, modes, depths.

Run as a program of its own: `python3 racing_job.py SEED` in a directory that it may write. It never ends by itself.
"""

import ctypes
import os
import random
import signal
import stat
import sys
from collections.abc import Callable

_HERE = -100
_UP = (
    "../../../.ssh",
    "../../../.claude",
    "../../..",
    "../..",
    "/",
    "../../../.ssh/id_rsa",
    "/etc/passwd",
    "a",
)
_NAMES = (
    *"abcdef",
    ".claude",
    ".git",
    ".envrc",
    "HEAD",
    "objects",
    "refs",
    "config",
    "x.so",
    ".ssh",
    "id_rsa",
)
_MODES = (0, 0o500, 0o777, 0o6777, 0o1000, 0o4755, 0o200)
_DEPTH = 40
_WAKES = 50
_CLEARS = 0.002
_LIBC = ctypes.CDLL(None)


def exchange(one: str, other: str) -> None:
    flags = random.choice([0, 1, 2, 2, 2])
    _LIBC.renameat2(_HERE, one.encode(), _HERE, other.encode(), flags)


def link(one: str, _other: str) -> None:
    os.symlink(random.choice(_UP), one)  # noqa: PTH211


def second_name(one: str, other: str) -> None:
    os.link(other, one, follow_symlinks=random.random() < 0.5)


def pipe(one: str, _other: str) -> None:
    os.mkfifo(one)


def device(one: str, _other: str) -> None:
    os.mknod(one, 0o600 | random.choice([stat.S_IFCHR, stat.S_IFBLK]), 0)


def mode(one: str, _other: str) -> None:
    os.chmod(one, random.choice(_MODES))  # noqa: PTH101 - through links, too


def make(one: str, _other: str) -> None:
    os.mkdir(one, random.choice(_MODES))  # noqa: PTH102


def deep(one: str, other: str) -> None:
    os.makedirs("/".join([one, *[os.path.basename(other)] * random.randrange(_DEPTH)]))  # noqa: PTH103, PTH119


def write(one: str, _other: str) -> None:
    if stat.S_ISREG(os.lstat(one).st_mode) or random.random() < 0.1:
        descriptor = os.open(one, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o600)
        os.write(descriptor, b"x" * random.randrange(100))
        os.close(descriptor)


def create(one: str, _other: str) -> None:
    os.close(os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL, random.choice(_MODES)))


def holes(one: str, _other: str) -> None:
    if stat.S_ISREG(os.lstat(one).st_mode):
        os.truncate(one, random.choice([0, 1, 1 << 30]))


def gone(one: str, _other: str) -> None:
    os.unlink(one)  # noqa: PTH108


def emptied(one: str, _other: str) -> None:
    os.rmdir(one)  # noqa: PTH106


def wake(_one: str, _other: str) -> None:
    """Leave a child behind that wakes all of the job while somebody stops it."""
    if os.fork() == 0:
        for _ in range(_WAKES):
            os.kill(0, signal.SIGCONT)
        os._exit(0)


_VERBS: tuple[Callable[[str, str], None], ...] = (
    exchange, link, second_name, pipe, device, mode, make, deep, write, create, holes, gone, emptied, wake,
)  # fmt: skip


def main() -> None:
    random.seed(int(sys.argv[1]))
    # Each run has favourites: what is won in a race is won by doing a few things very often.
    weights = [random.choice([0, 1, 1, 5, 30]) for _ in _VERBS]
    if not any(weights):
        weights = [1 for _ in _VERBS]
    names = random.sample(_NAMES, random.randrange(2, len(_NAMES)))
    places = ("", *[f"{name}/" for name in names[:2]], f"{names[0]}/{names[1]}/")
    paths = [f"{place}{name}" for place in places for name in names]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    sys.stdout.write("racing\n")
    sys.stdout.flush()
    os.fork()
    random.seed(os.getpid())
    while True:
        if random.random() < _CLEARS:
            os.system("rm -rf " + " ".join(names))
        (verb,) = random.choices(_VERBS, weights)
        try:
            verb(random.choice(paths), random.choice(paths))
        except (OSError, NotImplementedError):
            continue


if __name__ == "__main__":
    main()
