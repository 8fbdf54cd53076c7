"""Pictures that every reader takes, for tests that need one."""

import io

from PIL import Image


def drawn(
    kind: str = "PNG", size: tuple[int, int] = (20, 10), mode: str = "RGB", **fields: object
) -> bytes:
    """Return a file of a red picture."""
    file = io.BytesIO()
    Image.new(mode, size, "red").save(file, kind, **fields)
    return file.getvalue()
