"""after_tool, with matcher = "[we][rd]i*" (write, edit): check Python files that were just written."""

import ast
import json
import sys
from pathlib import Path

given = json.load(sys.stdin)
path = Path(given["arguments"].get("path", ""))
if path.suffix == ".py" and not given["is_error"]:
    try:
        ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        print(
            json.dumps(
                {"append": f"{path} is no valid Python now: line {error.lineno}: {error.msg}."}
            )
        )
