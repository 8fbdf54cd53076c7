"""Restricts itself with Landlock and a filter of system calls, and becomes a command. Run as a program, by itself."""

import ctypes
import json
import os
import platform
import struct
import sys
from typing import Any

_ERRNO = 0x00050000
_ALLOW = 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_EPERM, _EACCES = 1, 13
_X32 = 0x40000000

_MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {
        "socket": 41, "io_uring_setup": 425, "ptrace": 101, "chmod": 90, "fchmod": 91, "fchmodat": 268,
        "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94, "fchownat": 260, "setxattr": 188,
        "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199,
        "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
    }),
    "aarch64": (0xC00000B7, {
        "socket": 198, "io_uring_setup": 425, "ptrace": 117, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452,
        "fchown": 55, "fchownat": 54, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14,
        "lremovexattr": 15, "fremovexattr": 16, "utimensat": 88,
    }),
}  # fmt: skip
"""Numbers of system calls (Linux' unistd.h) by machine, with the number that the kernel calls the machine by."""

_ALWAYS = ("socket", "io_uring_setup", "ptrace")
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _FILTER = 38, 22, 24, 2


def filter_of(machine: str, *, fixed_modes: bool) -> bytes:
    """Return the filter: no sockets of any kind, no looking into other processes, nothing of another machine's.

    Raises:
        KeyError: the machine is not known.
    """
    architecture, numbers = _MACHINES[machine]
    refused = [number for name, number in numbers.items() if fixed_modes or name in _ALWAYS]
    rows = [
        (_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_LOAD, 0, 0, 0), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]  # fmt: skip
    for number in refused:
        rows += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | _EACCES)]
    rows.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *row) for row in rows)


def restrict(told: dict[str, Any]) -> None:
    """Give up everything that is not granted, for good.

    Raises:
        OSError: the kernel refuses.
        KeyError: the machine is not known.
    """
    from landlockpy import AccessFS, Ruleset, Scope

    read = AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.READ_DIR
    of_file = AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.IOCTL_DEV
    write = of_file | read | AccessFS.REMOVE_DIR | AccessFS.REMOVE_FILE | AccessFS.MAKE_DIR | AccessFS.MAKE_REG
    write |= AccessFS.MAKE_SOCK | AccessFS.MAKE_FIFO | AccessFS.MAKE_SYM | AccessFS.REFER
    rights = {"list": AccessFS.READ_DIR, "read": read, "write": write}
    with Ruleset(scoped=Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL) as ruleset:
        for path, right in told["grants"]:
            wanted = rights[right]
            try:
                ruleset.allow_path(path, wanted if os.path.isdir(path) else wanted & of_file)  # noqa: PTH112 - starts fast
            except FileNotFoundError:
                continue
        ruleset.restrict()
    _filter(filter_of(platform.machine(), fixed_modes=told["fixed_modes"]))


def _filter(rows: bytes) -> None:
    """Give up root's privileges and set the filter."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("rows", ctypes.c_void_p))

    held = ctypes.create_string_buffer(rows, len(rows))
    program = Program(len(rows) // 8, ctypes.cast(held, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        # Root reads the memory and environment of every process; whoever is not root has nothing to drop.
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")


def main() -> None:
    """Read what is granted, give up the rest, become the command."""
    packages, specification, *command = sys.argv[1:]
    sys.path.append(packages)
    with open(specification, "rb") as file:  # noqa: PTH123 - a descriptor of who started it
        told = json.load(file)
    try:
        restrict(told)
    except (OSError, KeyError) as error:
        sys.exit(f"The sandbox could not be started: {error}")
    os.execvp(command[0], command)  # noqa: S606 - a command line of words


if __name__ == "__main__":
    main()
