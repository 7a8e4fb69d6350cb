# One folder a job: NAME-JOBID, of an array NAME-JOBID_INDEX. A requeued job goes on in its folder.
run_folder() {
    local name=${SLURM_JOB_NAME:-job} id=$SLURM_JOB_ID
    if [ -n "${SLURM_ARRAY_JOB_ID:-}" ]; then
        id=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
    fi
    echo "${GPUDIAG_RUNS:-$SLURM_SUBMIT_DIR/runs}/${name//[^A-Za-z0-9._-]/-}-$id"
}
