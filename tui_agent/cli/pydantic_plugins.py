"""Keeps pydantic from looking for plugins, which nothing here uses."""


def skip_plugins() -> None:
    """Take it that there are none. Call it before the first model is used.

    Pydantic would read what every installed package says of itself. Its own switch is a variable of the environment,
    which the user's commands would inherit.
    """
    from pydantic.plugin import _loader

    _loader._plugins = {}  # noqa: SLF001
