# The report and its diagnosis.json from what was recorded.
write_report() {
    if ! command -v gpudiag >/dev/null; then
        echo "Where gpudiag is installed: gpudiag report '$1' -o '$1/report' --no-notebook"
        return
    fi
    gpudiag report "$1" -o "$1/report" --no-notebook || echo "No report of $1; its files are kept."
}
