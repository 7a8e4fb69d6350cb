"""The scripts for Slurm, run by bash with stand-ins of Slurm's commands: two nodes, each with a driver of its own.

What the stand-ins do was taken from Slurm 22.05, with which the same scripts were run by hand.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from commandline import called

import gpudiag as gd
from gpudiag.report.document import read_document
from gpudiag.schedulers.slurm.scripts import FIELDS, SCRIPTS, script_text, write_scripts

sys.path.append(str(Path(__file__).resolve().parents[1] / "record"))
from stubdriver import StubDriver, build, h200

ENDED_S = 5
"""What was told to end may take as long on a busy machine."""
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
pytestmark = pytest.mark.skipif(shutil.which("setsid") is None, reason="these scripts are for Linux")

UTIL_PCT = {"n1": 85, "n2": 20}
TRAINING = r"""
import os, pathlib, signal, sys, time
def end(*_):
    print("saving checkpoint", flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
def recorded():
    files = pathlib.Path(__file__).parent.glob("runs/*/gpu.*.csv")
    return sum(path.read_text(encoding="utf-8").count("# gpudiag-record 1 ") for path in files)
given_up = time.time() + 30
while recorded() < int(sys.argv[3]) and time.time() < given_up:
    time.sleep(0.1)
if os.environ["SLURM_PROCID"] != "0":
    time.sleep(float(sys.argv[1]))
    sys.exit(0)
until, step = time.time() + float(sys.argv[1]), 0
while time.time() < until:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    print(f"{stamp} step {step} loss {1 / (step + 1):.4f}", flush=True)
    time.sleep(0.2)
    step += 1
sys.exit(int(sys.argv[2]))
"""


@dataclass
class Job:
    """A job of two nodes; ``variables`` are added to its environment."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    n_tasks: int = 2

    @property
    def environment(self) -> Mapping[str, str]:
        given = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "TZ": "Asia/Taipei",
            "SLURM_JOB_ID": "4711",
            "SLURM_JOB_NAME": "lr search/2",
            "SLURM_JOB_USER": "ada",
            "SLURM_JOB_ACCOUNT": 'vision "a\\b"',
            "SLURM_JOB_NODELIST": "n[1-2]",
            "SLURM_CLUSTER_NAME": "c",
            "SLURM_SUBMIT_DIR": str(self.folder),
            "SLURM_NNODES": "2",
            "SLURM_NTASKS": str(self.n_tasks),
            "CUDA_VISIBLE_DEVICES": "0",
            "STAND_IN_STEPS": str(self.folder / "steps"),
            "STAND_IN_STATE": "RUNNING",
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "GPUDIAG_"))}
        return inherited | given | self.variables

    @property
    def run(self) -> Path:
        return self.folder / "runs" / "lr-search-2-4711"

    def start(self, text: str, *arguments: str) -> subprocess.Popen[str]:
        script = self.folder / "spooled"  # sbatch runs a copy elsewhere
        script.write_text(text, encoding="utf-8")
        return subprocess.Popen(
            ["bash", str(script), *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def training(self, seconds: float, code: int, recordings: int = 2) -> tuple[str, ...]:
        """A training of so many seconds from where that many recordings have begun, which a slow machine takes
        seconds for."""
        return (sys.executable, str(self.folder / "train.py"), *map(str, (seconds, code, recordings)))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def job(library: Path, tmp_path: Path) -> Iterator[Job]:
    """What is on the PATH of both nodes. The report is noted, and made only where $REPORT says so, with options of
    ours: a short one takes half as long.
    """
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("srun", "squeue", "scancel"):
        executable(commands / name, f"#!{sys.executable}\n" + (HERE / "stand_in_slurm.py").read_text(encoding="utf-8"))
    for node, util in UTIL_PCT.items():
        gpus = [h200(number, util=util) | {"uuid": f"GPU-{node}{number}{'ab' * 8}"} for number in range(2)]
        (tmp_path / f"scenario.{node}").write_text(StubDriver(library, tmp_path, gpus).scenario(), encoding="utf-8")
    executable(
        commands / "gpudiag",
        f'#!/bin/bash\n[ "$1" = report ] && echo "$@" >>"{tmp_path}/reports" && [ -z "$REPORT" ] && exit 0\n'
        '[ "$1" = report ] && set -- "$@" $REPORT\n'
        f'export LD_LIBRARY_PATH="{library}" NVML_STUB="{tmp_path}/scenario.$SLURMD_NODENAME"\n'
        f'export NVML_STUB_CALLS="{tmp_path}/calls.$SLURMD_NODENAME" PYTHONPATH="{ROOT}"\n'
        f'exec "{sys.executable}" -P -m gpudiag "$@"\n',
    )
    (tmp_path / "train.py").write_text(TRAINING, encoding="utf-8")
    yield Job(tmp_path)
    until = time.monotonic() + ENDED_S
    while left := [
        path for path in Path("/proc").iterdir() if path.name.isdigit() and str(tmp_path) in command_line(path)
    ]:
        assert time.monotonic() < until, f"something still runs: {[command_line(path) for path in left]}"
        time.sleep(0.1)


def executable(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def command_line(path: Path) -> str:
    try:
        return (path / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


def wait_for(path: Path, text: str) -> None:
    for _ in range(300):
        if path.exists() and text in path.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    pytest.fail(f"{path} never came to hold {text!r}")


def utilization(run: gd.Run) -> dict[str, float]:
    """Mean utilization by uuid."""
    uuids = dict(zip(run.gpus["gpu"], run.gpus["uuid"], strict=True))
    return {uuids[gpu]: float(rows["util_pct"].mean()) for gpu, rows in run.gpu.groupby("gpu", observed=True)}


@pytest.mark.slow
def test_a_failing_training_is_recorded_on_both_nodes_and_reported_and_its_code_stays(job: Job) -> None:
    job.variables = {"REPORT": "-p minimal=true"}
    code, output = ended(job.start(script_text(), *job.training(3, 3)))
    assert code == 3, output
    assert sorted(path.name for path in job.run.iterdir()) == [
        "gpu.n1.csv", "gpu.n2.csv", "report", "run.toml", "train.log"
    ]  # fmt: skip
    run = gd.load_run(job.run)
    # one GPU a node is the job's, and each node has two
    assert utilization(run) == {f"GPU-{node}0{'ab' * 8}": util for node, util in UTIL_PCT.items()}
    log = (job.run / "train.log").read_text(encoding="utf-8")
    assert log in output and len(run.steps) == log.count(" step ") > 5
    # the log, in local time, tells whole seconds
    assert run.gpu["time"].min().floor("s") <= run.steps["time"].min() <= run.gpu["time"].max()
    assert all("record_end" in (job.run / f"gpu.{node}.csv").read_text(encoding="utf-8") for node in UTIL_PCT)
    document = read_document(job.run / "report" / "diagnosis.json")
    assert document.run.name == "lr-search-2-4711"
    assert (job.folder / "reports").read_text(encoding="utf-8").count("\n") == 1
    stated = tomllib.loads((job.run / "run.toml").read_text(encoding="utf-8"))
    assert stated == {
        "name": "lr-search-2-4711",
        "timezone": "Asia/Taipei",
        "user": "ada",
        "project": 'vision "a\\b"',
        "host": "n[1-2]",
        "notes": ["Slurm job 4711 (lr search/2) of cluster c."],
    }


@pytest.mark.slow
def test_sigterm_before_the_time_limit_reaches_the_tasks_and_the_report_is_written(job: Job) -> None:
    process = job.start(script_text(), *job.training(60, 0))
    wait_for(job.run / "train.log", "step 2")
    process.terminate()
    code, output = ended(process)
    assert (code, "saving checkpoint" in output) == (7, True), "the training ended in its own way, with its own code"
    assert (job.folder / "reports").read_text(
        encoding="utf-8"
    ) == f"report {job.run} -o {job.run}/report --no-notebook\n"
    assert "record_end" in (job.run / "gpu.n2.csv").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_cancelled_job_is_not_told_twice_and_a_requeued_one_goes_on_in_its_folder(job: Job) -> None:
    """scancel tells the steps and this script; a later run of the same job appends."""
    job.variables = {"STAND_IN_STATE": "COMPLETING", "SLURM_ARRAY_JOB_ID": "4700", "SLURM_ARRAY_TASK_ID": "11"}
    job.n_tasks = 4
    run = job.folder / "runs" / "lr-search-2-4700_11"
    process = job.start(script_text(), *job.training(4, 0))
    wait_for(run / "train.log", "step 2")
    process.terminate()
    assert ended(process)[0] == 0, "the script alone was told, and the training ran to its end"
    (run / "run.toml").write_text('timezone = "UTC"\n', encoding="utf-8")
    shutil.rmtree(job.folder / "steps")
    assert ended(job.start(script_text(), *job.training(1, 0, recordings=4)))[0] == 0
    assert (run / "run.toml").read_text(encoding="utf-8") == 'timezone = "UTC"\n'
    assert (run / "gpu.n1.csv").read_text(encoding="utf-8").count("# gpudiag-record 1 ") == 2
    assert (run / "train.log").read_text(encoding="utf-8").count(" step 0 ") == 2
    assert set(utilization(gd.load_run(run)).values()) == {85.0, 20.0}


@pytest.mark.slow
def test_prolog_and_epilogs_record_a_script_of_ones_own(job: Job) -> None:
    """Two tasks a node have one recorder, which ends with the last of them; the script's code stays."""
    job.n_tasks = 4
    scripts = job.folder / "scripts of mine"
    assert {path.name for path in write_scripts(scripts)} == set(SCRIPTS)
    own = (
        f"#!/bin/bash\ntrap 'bash \"{scripts}/job-epilog.sh\"' EXIT\n"
        f'srun --task-prolog="{scripts}/task-prolog.sh" --task-epilog="{scripts}/task-epilog.sh" "$@"\n'
    )
    code, output = ended(job.start(own, *job.training(4, 5)))
    assert code == 5, output
    assert utilization(gd.load_run(job.run)) == {f"GPU-{node}0{'ab' * 8}": util for node, util in UTIL_PCT.items()}
    assert (job.folder / "reports").read_text(
        encoding="utf-8"
    ) == f"report {job.run} -o {job.run}/report --no-notebook\n"
    recordings = sorted(job.run.glob("gpu.*.csv"))
    assert [path.name for path in recordings] == ["gpu.n1.step0.csv", "gpu.n2.step0.csv"]
    for path in recordings:  # no task follows that could wait for it
        wait_for(path, "record_end")


@pytest.mark.slow
def test_without_gpudiag_on_the_nodes_nvidia_smi_records(job: Job) -> None:
    (job.folder / "bin" / "gpudiag").unlink()
    job.variables = {"PATH": f"{job.folder / 'bin'}:{slim_path(job.folder)}", "CUDA_VISIBLE_DEVICES": "1"}
    names = FIELDS.replace(",", ", ")
    row = (
        "2026/03/01 10:00:0$n.000, 1, NVIDIA H200, GPU-$SLURMD_NODENAME$SLURMD_NODENAME-abcdabcd, 64 %, 9 %, 1000 MiB, "
        "2000 MiB, 300 W, 700 W, 50, 1500 MHz, 0x4"
    )
    executable(
        job.folder / "bin" / "nvidia-smi",
        f'#!/bin/bash\necho "$@" >>"{job.folder}/asked"\necho "{names}"\n'
        f'for n in 1 2 3 4 5; do echo "{row}"; done\nexec sleep 30\n',
    )
    code, output = ended(job.start(script_text(), *job.training(0.5, 0, recordings=0)))
    assert (code, "gpudiag report" in output) == (0, True), output
    asked = (job.folder / "asked").read_text(encoding="utf-8").splitlines()
    assert asked == [f"--id=1 -l 1 --format=csv --query-gpu={FIELDS}"] * 2
    run = gd.load_run(job.run)
    assert len(run.gpus) == 2 and set(run.gpu["util_pct"]) == {64.0}
    assert run.gpu["time"].min().isoformat() == "2026-03-01T02:00:01+00:00", "local time of Asia/Taipei"


def slim_path(folder: Path) -> Path:
    """A folder with the commands that the scripts need, and nothing that is called gpudiag."""
    slim = folder / "slim"
    slim.mkdir()
    for name in ("bash", "mkdir", "mv", "readlink", "basename", "hostname", "sleep", "tee", "env"):
        (slim / name).symlink_to(str(shutil.which(name)))
    return slim


def test_without_a_training_it_says_what_is_expected(job: Job) -> None:
    code, output = ended(job.start(script_text()))
    assert code == 2 and "sbatch gpudiag.sbatch COMMAND" in output
    assert not (job.folder / "runs").exists()


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_whole_and_are_bash(name: str, tmp_path: Path) -> None:
    text = script_text(name)
    assert "@" not in text.replace('"$@"', "").replace("[@]", "").replace("TERM@120", "")
    (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["bash", "-n", str(tmp_path / name)], check=True)
    if checker := shutil.which("shellcheck"):
        subprocess.run([checker, str(tmp_path / name)], check=True)


def test_the_directives_stand_before_the_first_command() -> None:
    """sbatch reads no further than that."""
    head = script_text().partition("\nif ")[0].splitlines()
    assert "#SBATCH --signal=B:TERM@120" in head and "#SBATCH --output=%x-%j.out" in head
    assert all(line.startswith("#") or not line for line in head)


def test_the_command_prints_the_job_or_writes_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "slurm-template") == 0
    assert capsys.readouterr().out == script_text()
    folder = tmp_path / "new" / "scripts"
    for _ in range(2):  # what is there already is written again
        assert called(monkeypatch, "slurm-template", "-o", folder) == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == {
        name: script_text(name) for name in SCRIPTS
    }
    assert all(os.access(path, os.X_OK) for path in folder.iterdir())
    (folder / "task-epilog.sh").write_text("# mine\n", encoding="utf-8")
    capsys.readouterr()
    assert called(monkeypatch, "slurm-template", "-o", folder) == 2
    assert "task-epilog.sh: exists" in capsys.readouterr().err
    assert (folder / "task-epilog.sh").read_text(encoding="utf-8") == "# mine\n"
