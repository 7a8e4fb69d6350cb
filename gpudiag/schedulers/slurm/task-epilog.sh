#!/bin/bash
# Stops what task-prolog.sh started, with the last task of the step on the node.

# @include run-folder.sh

run=$(run_folder)
tasks=$run/.tasks/${SLURMD_NODENAME:-$(hostname -s)}.$SLURM_STEP_ID.${SLURM_RESTART_COUNT:-0}
[ -d "$tasks" ] || exit 0
rm -f "$tasks/task.$SLURM_PROCID"
for other in "$tasks"/task.*; do
    [ -e "$other" ] && exit 0
done
# The recorder leads a session, and so a process group, of its own.
[ -s "$tasks/recorder/pid" ] && read -r group <"$tasks/recorder/pid" && kill -TERM -- "-$group"
exit 0
