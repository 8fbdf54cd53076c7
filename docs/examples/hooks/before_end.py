"""before_end: send the model back to work while a file that it was told to write is not there."""

import json
import sys
from pathlib import Path

given = json.load(sys.stdin)
wanted = Path("WANTED")
missing = []
if wanted.exists():
    missing = [name for name in wanted.read_text().split() if not Path(name).exists()]
if missing and given["sent_back"] < 2:
    json.dump({"block": True, "message": f"Still missing: {', '.join(missing)}."}, sys.stdout)
