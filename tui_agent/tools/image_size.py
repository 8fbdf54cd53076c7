"""How large an image is, from its first bytes."""

import io
from pathlib import Path


def image_size(image: Path | bytes) -> tuple[int, int]:
    """Return width and height in pixels, 0 where they can't be told."""
    import imagesize  # brings in urllib and an XML parser, and images are rare

    try:
        width, height = imagesize.get(image if isinstance(image, Path) else io.BytesIO(image))
    except (ValueError, OSError):
        return 0, 0
    return max(int(width), 0), max(int(height), 0)
