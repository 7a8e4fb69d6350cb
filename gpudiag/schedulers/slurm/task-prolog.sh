#!/bin/bash
# Starts a recorder on each node of a step, beside its tasks:
#
#     srun --task-prolog=task-prolog.sh --task-epilog=task-epilog.sh python train.py
#
# or for all jobs of a cluster TaskProlog= and TaskEpilog= in slurm.conf. Steps without a GPU are left alone.

# @include run-folder.sh

# @include describe-run.sh

# @include record-node.sh

[ -n "${CUDA_VISIBLE_DEVICES:-}${SLURM_STEP_GPUS:-}" ] || exit 0
run=$(run_folder)
tasks=$run/.tasks/${SLURMD_NODENAME:-$(hostname -s)}.$SLURM_STEP_ID.${SLURM_RESTART_COUNT:-0}
mkdir -p "$tasks" && : >"$tasks/task.$SLURM_PROCID" || exit 0
if mkdir "$tasks/recorder" 2>/dev/null; then # the first task of the node
    [ "$SLURM_NODEID" = 0 ] && describe_run "$run"
    # In a session of its own, and waited for until it is there: Slurm kills the rest of a prolog's process group.
    setsid bash -c "$(declare -f record_node); echo \$\$ >\"\$3/pid\"; record_node \"\$1\" \"\$2\"" \
        gpudiag-recorder "$run" "$SLURM_STEP_ID" "$tasks/recorder" </dev/null >"$tasks/recorder/log" 2>&1 &
    for ((tries = 0; tries < 50; tries++)); do
        [ -s "$tasks/recorder/pid" ] && break
        sleep 0.1
    done
fi
exit 0
