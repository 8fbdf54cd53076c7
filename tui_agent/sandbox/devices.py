"""Restores the permissions of device files after a command has run.

Under bubblewrap, commands see the machine's own ``/dev/null`` and similar devices. A command that
root runs could change their permissions for the whole machine.
"""

import os
import stat
from collections.abc import Mapping

from tui_agent.word_lists import in_order

DEVICES = in_order("/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty")
"""The device files that commands in the sandbox see."""


class DevicePermissions:
    """Records the permissions of `DEVICES`, so that they can be restored after a command.

    Does nothing unless this program runs as root, because only root's commands can change them.
    """

    def __init__(self, devices: Mapping[str, int] | None = None) -> None:
        self._known = _permissions() if devices is None else devices

    def restore(self) -> None:
        """Set the permissions of each device to those recorded when this object was created."""
        for path, permissions in self._known.items():
            if _permissions_of(path) != permissions:
                _set_permissions(path, permissions)


def _permissions() -> dict[str, int]:
    if os.getuid() != 0:
        return {}
    found = {}
    for path in DEVICES:
        permissions = _permissions_of(path)
        if permissions is not None:
            found[path] = permissions
    return found


def _permissions_of(path: str) -> int | None:
    """Return the permission bits of a device file; None if there is no such device."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISCHR(status.st_mode):
        return stat.S_IMODE(status.st_mode)
    return None


def _set_permissions(path: str, permissions: int) -> None:
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        )
    except OSError:
        return  # /dev/tty can't be opened without a terminal
    try:
        os.fchmod(descriptor, permissions)
    finally:
        os.close(descriptor)
