#!/bin/sh
# after_compact: keep every summary, for people who want to read what the model was told.
cat >> summaries.jsonl
echo >> summaries.jsonl
