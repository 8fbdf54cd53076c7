#!/bin/sh
# session_start: tell the model, before the first message, what is special about this checkout today.
cat > /dev/null
if [ -f FREEZE ]; then
    printf '{"context": "Releases are frozen: change nothing below release/.", "notice": "Releases are frozen."}\n'
fi
