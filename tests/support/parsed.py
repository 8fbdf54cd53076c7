"""The syntax tree of a source, for tests that read the program's own code."""

import ast
import gc


def parsed(source: str) -> ast.Module:
    """Return the tree of ``source``, built without letting another thread parse in between.

    CPython 3.11 counts the depth of the tree under construction once for the whole interpreter (gh-106905): where a
    collection runs in the middle and a finaliser gives the lock away, a second parse ends this one with
    ``SystemError: AST constructor recursion depth mismatch``.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_enabled:
            gc.enable()
