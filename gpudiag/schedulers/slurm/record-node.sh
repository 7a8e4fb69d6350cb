# Record the GPUs that the job has on this node into FOLDER/gpu.NODE.csv, until SIGTERM: record_node FOLDER [STEP]
# shellcheck disable=SC2329  # called by name, in a bash of its own
record_node() {
    local file only=()
    file=$1/gpu.${SLURMD_NODENAME:-$(hostname -s)}${2:+.step$2}.csv
    case ${CUDA_VISIBLE_DEVICES:-} in # the node may show the GPUs of other jobs as well
        '' | *[!0-9,]*) ;;
        *) only=("$CUDA_VISIBLE_DEVICES") ;;
    esac
    trap : TERM # the recorder gets it too, and ends by itself
    if command -v gpudiag >/dev/null; then
        gpudiag record -o "$file" --host --processes "${only[@]/#/--gpus=}"
        # 2: the driver does not know these numbers, as on a MIG device; then whatever the job can see.
        if [ $? -eq 2 ] && [ ${#only[@]} -gt 0 ]; then
            gpudiag record -o "$file" --host --processes
        fi
    elif command -v nvidia-smi >/dev/null; then # without gpudiag on the node
        nvidia-smi "${only[@]/#/--id=}" -l 1 --format=csv --query-gpu=@FIELDS@ >>"$file"
    else
        echo "${file##*/}: neither gpudiag nor nvidia-smi is on the PATH of this node; nothing is recorded." >&2
    fi
}
