#!/bin/sh
# session_end: tidy up what session_start set up, or keep a line.
cat >> session_end.jsonl
echo >> session_end.jsonl
