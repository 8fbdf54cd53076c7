"""before_tree: refuse to leave a branch with changed files without a summary; write short summaries without a model."""

import json
import sys

given = json.load(sys.stdin)
changed = given["files"]["modified"]
if changed and not given["wants_summary"]:
    print(
        json.dumps(
            {"cancel": True, "message": f"{', '.join(changed)} changed there; move with a summary."}
        )
    )
elif given["wants_summary"] and len(given["entries"]) <= 4:
    print(
        json.dumps(
            {
                "summary": f"A short attempt from #{given['common_ancestor']}:\n{given['conversation'][:2000]}"
            }
        )
    )
