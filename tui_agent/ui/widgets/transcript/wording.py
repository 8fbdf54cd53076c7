"""Numbers for people: counts and durations."""


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 match``, ``12 matches``, ``3 entries``."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        noun = f"{noun[:-1]}ie"
    elif noun.endswith(("ch", "s", "x")):
        noun = f"{noun}e"
    return f"{count:,} {noun}s"


def duration_text(seconds: float) -> str:
    """Return a duration: ``0.1 s``, ``12 s``, ``3:05``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def elapsed_text(seconds: float) -> str:
    """Return how long something has been going on, in whole seconds: ``12 s``, ``3:05``."""
    return f"{int(seconds)} s" if seconds < 60 else f"{int(seconds) // 60}:{int(seconds) % 60:02}"
