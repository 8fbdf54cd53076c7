"""Says what machine, Python and libraries the numbers come from."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil


def describe() -> dict[str, str]:
    """Return what a reader needs to compare numbers."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "tui-agent": version("tui-agent"),
        "textual": version("textual"),
        "litellm": version("litellm"),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
