#!/bin/sh
# One task per line of tasks.txt with GNU parallel, four at a time, here or on the machines of --sshloginfile.
# Run it again to retry what failed: finished tasks are not done twice.
set -eu
export SHARED=${SHARED:-$PWD/fleet} REPOSITORY=${REPOSITORY:-https://git.example.org/app.git}
one_task() {
  place=$SHARED/task-$1
  mkdir -p "$place"
  [ -d "$place/app" ] || git clone --quiet --depth 1 "$REPOSITORY" "$place/app"
  TUI_AGENT_DATA_DIR=$place/data tui-agent -p "$2" --key "task-$1" --mode auto-edit --cwd "$place/app" \
    --result "$place/result.patch" --max-tokens 2000000 --timeout 30m </dev/null
}
export -f one_task 2>/dev/null || { echo "Run this with bash: bash parallel.sh" >&2; exit 2; }
parallel --jobs 4 --retries 3 --joblog "$SHARED.log" one_task {#} {} :::: tasks.txt
