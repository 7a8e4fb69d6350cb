# What the files of a run do not say. A run.toml that is there is left as it is.
describe_run() {
    local file=$1/run.toml draft zone=${TZ:-}
    draft=$1/.run.toml.$SLURM_JOB_ID.$$
    [ -e "$file" ] && return 0
    if [ ! -e "/usr/share/zoneinfo/${zone:-none}" ]; then
        zone=$(readlink -f /etc/localtime)
        case $zone in
            */zoneinfo/*) zone=${zone##*/zoneinfo/} ;;
            *) zone= ;;
        esac
    fi
    {
        echo "name = $(quoted "$(basename "$1")")"
        [ -n "$zone" ] && echo "timezone = $(quoted "${zone#posix/}")"
        [ -n "${SLURM_JOB_USER:-}" ] && echo "user = $(quoted "$SLURM_JOB_USER")"
        [ -n "${SLURM_JOB_ACCOUNT:-}" ] && echo "project = $(quoted "$SLURM_JOB_ACCOUNT")"
        [ -n "${SLURM_JOB_NODELIST:-}" ] && echo "host = $(quoted "$SLURM_JOB_NODELIST")"
        echo "notes = [$(quoted "Slurm job $SLURM_JOB_ID (${SLURM_JOB_NAME:-}) of cluster ${SLURM_CLUSTER_NAME:-}.")]"
    } >"$draft"
    mv "$draft" "$file"
}

# Text as TOML writes it.
quoted() {
    local text=${1//[[:cntrl:]]/ }
    text=${text//\\/\\\\}
    echo "\"${text//\"/\\\"}\""
}
