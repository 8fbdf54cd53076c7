"""Changes the program in small ways, one at a time, and shows the changes that no test notices.

Run it with ``make mutations``. mutmut makes the changes, called mutants, and runs the tests that call the changed
function; ``[tool.mutmut]`` in pyproject.toml says which modules and which tests. ``accepted.toml`` lists mutants that
no test needs to notice, each with the reason.
"""
