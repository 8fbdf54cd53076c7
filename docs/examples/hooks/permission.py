"""permission: answer for the user: nothing is written into vendor, notes may be written."""

import json
import sys

given = json.load(sys.stdin)
path = str(given["arguments"].get("path", ""))
if path.startswith("vendor/"):
    json.dump({"decision": "deny", "message": "vendor is not ours to change."}, sys.stdout)
elif path.startswith("notes/"):
    json.dump({"decision": "allow"}, sys.stdout)
