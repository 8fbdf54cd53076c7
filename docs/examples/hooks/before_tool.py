"""before_tool, with matcher = "bash": refuse pushes, allow the tests unasked, and run npm the reproducible way."""

import json
import sys

given = json.load(sys.stdin)
command = given["arguments"].get("command", "")
if "git push" in command:
    print(
        json.dumps(
            {
                "decision": "deny",
                "message": "Pushing is the user's business. Stop after the commit.",
            }
        )
    )
elif command == "make test":
    print(json.dumps({"decision": "allow"}))
elif command.startswith("npm install"):
    changed = {**given["arguments"], "command": command.replace("npm install", "npm ci", 1)}
    print(json.dumps({"arguments": changed, "notice": "npm install became npm ci."}))
