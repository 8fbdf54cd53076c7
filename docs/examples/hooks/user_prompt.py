"""user_prompt: keep keys out of the conversation, and explain ticket numbers to the model."""

import json
import re
import sys

given = json.load(sys.stdin)
if re.search(r"\b(sk-|ghp_|AKIA)[A-Za-z0-9_-]{16,}", given["prompt"]):
    print("There is a key in it; take it out first.", file=sys.stderr)
    sys.exit(2)
tickets = sorted(set(re.findall(r"\bSHOP-\d+\b", given["prompt"])))
if tickets:
    print(
        json.dumps({"context": f"Tickets are described in tickets/NAME.md: {', '.join(tickets)}."})
    )
