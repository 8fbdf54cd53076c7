"""Where programs and a shared model host meet: a private socket whose name says who may share it."""

import fcntl
import hashlib
import os
import socket
import stat
import struct
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

_LONGEST_PATH = 100
"""Bytes a socket's path may have; platforms allow 104 or 108."""


def socket_path(directory: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the socket for hosts of this version, Python and environment; None where none can be private."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = directory.stat()
    except OSError:
        return None
    if facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        return None
    path = directory / f"model-{_fingerprint(environ)}.sock"
    return path if len(os.fsencode(path)) <= _LONGEST_PATH else None


def listen(path: Path) -> socket.socket | None:
    """Return a listening socket only this user can reach, None when another host has it already."""
    lock = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        # Held as long as the process lives: it tells a living host's socket from a dead one's.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(32)
    return listener


def peer_pid(connected: socket.socket) -> int | None:
    """Return the process at the other end of a socket, None where the platform doesn't tell or it isn't ours."""
    if not sys.platform.startswith("linux"):
        return None
    pid, uid, _gid = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(pid) if uid == os.geteuid() else None


def _fingerprint(environ: Mapping[str, str]) -> str:
    """Return what two programs must agree in to share a host."""
    here = Path(__file__).parent
    stats = [(path.name, path.stat()) for path in sorted(here.glob("*.py"))]
    # Installers give all files of all versions one time of change, some of them.
    sources = [f"{name}:{facts.st_mtime_ns}:{facts.st_size}" for name, facts in stats]
    agreed = [sys.executable, str(here), metadata.version("litellm"), *sources]
    agreed += [f"{name}={value}" for name, value in sorted(environ.items())]
    return hashlib.sha256("\0".join(agreed).encode("utf-8", "surrogateescape")).hexdigest()[:16]
