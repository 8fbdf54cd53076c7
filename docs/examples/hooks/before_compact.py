"""before_compact: write the summary without a model, and none at all while a file named HOLD is there."""

import json
import sys
from pathlib import Path

given = json.load(sys.stdin)
if Path("HOLD").exists():
    print(json.dumps({"cancel": True, "message": "HOLD is there; remove it first."}))
    sys.exit()
asked = [entry for entry in (*given["entries"], *given["turn_prefix"]) if entry["kind"] == "user"]
lines = [
    "## What the user asked",
    *(f"- #{entry['id']}: {entry['text'][:200]}" for entry in asked),
    "",
    "## Files",
    f"read: {', '.join(given['files']['read']) or 'none'}",
    f"modified: {', '.join(given['files']['modified']) or 'none'}",
]
if given["previous_summary"]:
    lines = [given["previous_summary"], "", *lines]
if asked:
    print(json.dumps({"summary": "\n".join(lines)}))
