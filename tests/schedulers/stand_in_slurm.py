"""srun, squeue and scancel on one machine, as far as the job script needs them; one file under three names.

It does what Slurm 22.05 did with two slurmd on one machine: SIGTERM to srun is SIGKILL for its tasks, ``scancel
--signal`` reaches the process groups of the tasks of a step, a task prolog's output is waited for and the rest of its
process group killed, and a task epilog has two seconds. Steps lie in $STAND_IN_STEPS: a file a task, which holds its
process group, below a folder ``ID NAME``. $STAND_IN_STATE is the state of the job.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

STEPS = Path(os.environ["STAND_IN_STEPS"])
NODES = int(os.environ["SLURM_NNODES"])
JOB = os.environ["SLURM_JOB_ID"]


def srun(arguments: list[str]) -> int:
    options: dict[str, str] = {}
    while arguments and arguments[0].startswith("--"):
        name, _, value = arguments.pop(0).removeprefix("--").partition("=")
        options[name] = value
    n_tasks = int(options.get("ntasks") or os.environ["SLURM_NTASKS"])
    with suppress(FileExistsError):
        STEPS.mkdir(parents=True)
    number = len(list(STEPS.iterdir()))
    step = STEPS / f"{JOB}.{number} {options.get('job-name', Path(arguments[0]).name)}"
    step.mkdir()
    tasks = []
    for rank in range(n_tasks):
        per_node = n_tasks // NODES
        place = {"PROCID": rank, "NODEID": rank // per_node, "LOCALID": rank % per_node, "STEP_ID": number}
        env = os.environ | {f"SLURM_{name}": str(value) for name, value in place.items()}
        env["SLURMD_NODENAME"] = f"n{rank // per_node + 1}"
        if "task-prolog" in options:
            prolog(options["task-prolog"], env)
        tasks.append((subprocess.Popen(arguments, env=env, start_new_session=True), env))
        (step / str(rank)).write_text(str(tasks[-1][0].pid))

    def abort(number: int, frame: object) -> None:
        for task, _ in tasks:
            with suppress(ProcessLookupError):
                os.killpg(task.pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, abort)
    codes = []
    for task, env in tasks:
        codes.append(task.wait())
        if "task-epilog" in options:
            subprocess.run([options["task-epilog"]], env=env, timeout=2, check=True)
    for file in step.iterdir():
        file.unlink()
    return max(code if code >= 0 else 128 - code for code in codes)


def prolog(path: str, env: dict[str, str]) -> None:
    running = subprocess.Popen([path], env=env, stdout=subprocess.PIPE, start_new_session=True)
    running.communicate(timeout=20)
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0


def squeue(arguments: list[str]) -> int:
    if "--steps" not in arguments:
        print(os.environ["STAND_IN_STATE"])
        return 0
    print(f"{JOB}.batch batch")
    for step in sorted(STEPS.iterdir()):
        if any(step.iterdir()):
            print(step.name)
    return 0


def scancel(arguments: list[str]) -> int:
    option, step_id = arguments
    number = signal.Signals[f"SIG{option.removeprefix('--signal=')}"]
    for file in STEPS.glob(f"{step_id} */*"):
        os.killpg(int(file.read_text()), number)
    return 0


if __name__ == "__main__":
    sys.exit({"srun": srun, "squeue": squeue, "scancel": scancel}[Path(sys.argv[0]).name](sys.argv[1:]))
