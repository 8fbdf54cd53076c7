#!/bin/sh
#SBATCH --array=1-30 --cpus-per-task=1 --mem=1G --time=01:00:00 --requeue
# One task per line of tasks.txt; sbatch slurm.sh. A task that Slurm requeues continues where it was cut off.
set -eu
SHARED=${SHARED:-$PWD/fleet}
REPOSITORY=${REPOSITORY:-https://git.example.org/app.git}
place=$SHARED/task-$SLURM_ARRAY_TASK_ID
mkdir -p "$place"
[ -d "$place/app" ] || git clone --quiet --depth 1 "$REPOSITORY" "$place/app"
TUI_AGENT_DATA_DIR=$place/data exec tui-agent -p "$(sed -n "${SLURM_ARRAY_TASK_ID}p" tasks.txt)" \
  --key "task-$SLURM_ARRAY_TASK_ID" --mode auto-edit --cwd "$place/app" \
  --result "$place/result.patch" --max-tokens 2000000 --timeout 30m </dev/null
