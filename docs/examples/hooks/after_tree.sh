#!/bin/sh
# after_tree: keep a line for every move.
cat >> moves.jsonl
echo >> moves.jsonl
