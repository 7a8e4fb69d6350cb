#!/bin/bash
# Writes the report of a job whose steps were recorded by task-prolog.sh. In your own job script, before the first srun:
#
#     trap 'bash job-epilog.sh' EXIT
#
# The exit code of the script stays what it was.

# @include run-folder.sh

# @include write-report.sh

write_report "$(run_folder)"
