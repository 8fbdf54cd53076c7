#!/bin/sh
# subagent_start: keep a line for each task that a subagent is given.
cat >> subagent_start.jsonl
echo >> subagent_start.jsonl
