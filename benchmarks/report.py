"""Time and size of reports: one over a week of eight GPUs, and fifty small ones by one process and by two.

    python benchmarks/report.py                           10,000 trials x 4.8 M samples; 50 runs
    python benchmarks/report.py --days 1 --trials 1500 --runs 10

The large run is an Optuna study in SQLite, with parameters and intermediate values, beside a log of nvidia-smi with
units; the clock is found from the data. Figures are drawn one by one on the loaded run; the time is that of each call.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import optuna
from ledger_speed import START_S, intervals, write
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

DAYS, TRIALS, RUNS = 7.0, 10_000, 50
SAMPLE = Path(__file__).parents[1] / "data/samples/hpo-aggressive-pruning"
SPACE = {
    "learning_rate": FloatDistribution(1e-5, 1e-1, log=True),
    "batch_size": CategoricalDistribution((64, 128, 256)),
    "layers": IntDistribution(2, 12),
    "dropout": FloatDistribution(0, 0.5),
}
STATES = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


def write_study(path: Path, days: float, trials: int) -> None:
    """The trials of ``ledger_speed.write`` as a study: same times, same GPUs."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    whole = intervals(int(days * 86_400), trials, np.random.default_rng(0))
    rows = sorted((a, b, gpu) for gpu, (start, end) in enumerate(whole) for a, b in zip(start, end, strict=True))
    rng = np.random.default_rng(1)
    frozen = []
    for number, (start, end, gpu) in enumerate(rows):
        state = STATES[rng.choice(3, p=(0.35, 0.6, 0.05))]
        steps = 20 if state == TrialState.COMPLETE else int(rng.integers(1, 8))
        loss = 0.2 + 0.8 * np.exp(-np.arange(steps) / 5) + rng.normal(0, 0.03, steps)
        begun, ended = (datetime.fromtimestamp(START_S + t, UTC).replace(tzinfo=None) for t in (start, end))
        trial = optuna.trial.create_trial(
            state=state,
            value=None if state == TrialState.FAIL else float(loss[-1]),
            params={
                "learning_rate": float(10 ** rng.uniform(-5, -1)),
                "batch_size": int(rng.choice((64, 128, 256))),
                "layers": int(rng.integers(2, 13)),
                "dropout": float(rng.uniform(0, 0.5)),
            },
            distributions=SPACE,
            intermediate_values={step: float(value) for step, value in enumerate(loss)},
            user_attrs={"gpu": gpu},
        )
        trial.number, trial.datetime_start, trial.datetime_complete = number, begun, ended
        frozen.append(trial)
    study = optuna.create_study(storage=f"sqlite:///{path}", study_name="week", load_if_exists=True)
    study.add_trials(frozen)


def large(days: float, trials: int) -> None:
    """Print seconds and MB of the report, and the seconds of each figure."""
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name) / "week", Path(name) / "out"
        folder.mkdir()
        write(folder / "gpu.csv", folder / "unused.csv", days, trials)
        (folder / "unused.csv").unlink()
        write_study(folder / "study.db", days, trials)
        (folder / "run.toml").write_text('timezone = "Europe/Berlin"\n', encoding="utf-8")
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "gpudiag", "report", folder, "-o", out], check=True)
        taken = time.perf_counter() - began
        page = next(iter(sorted(out.rglob("*.html"), key=lambda path: -path.stat().st_size)))
        print(f"report of {trials:,} trials: {taken:.1f} s, {page.name} {page.stat().st_size / 1e6:.2f} MB")
        figures(folder)


def figures(folder: Path) -> None:
    """Print the time of each figure, from call to PNG, the slowest first."""
    import io

    import matplotlib

    matplotlib.use("Agg")
    import gpudiag as gd

    run = gd.load_run(folder)
    diagnosis = gd.diagnose(run)
    times = []
    for name in [name for name in dir(diagnosis.plot) if not name.startswith("_")]:
        began = time.perf_counter()
        try:
            figure = getattr(diagnosis.plot, name)()
        except gd.GpudiagError as error:
            print(f"{name}: {error}")
            continue
        figure.savefig(io.BytesIO(), format="png")
        times.append((time.perf_counter() - began, name))
    for taken, name in sorted(times, reverse=True):
        print(f"figure {name}: {taken:.2f} s")


def batch(runs: int) -> None:
    """Print the seconds of one process and of two over copies of a sample."""
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / f"run{number:02d}" for number in range(runs)]
        for folder in folders:
            shutil.copytree(SAMPLE, folder)
        seconds = {}
        for jobs in (1, 2):
            began = time.perf_counter()
            out = Path(name) / f"out{jobs}"
            command = [sys.executable, "-m", "gpudiag", "report", *folders, "-o", out, "--jobs", str(jobs)]
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
            seconds[jobs] = time.perf_counter() - began
            assert len(list(out.rglob("diagnosis.json"))) == runs
        print(f"{runs} runs: {seconds[1]:.1f} s, with --jobs 2 {seconds[2]:.1f} s, {seconds[2] / seconds[1]:.2f} x")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--days", type=float, default=DAYS, help="of telemetry, eight GPUs at 1 Hz; 0: no large run")
    arguments.add_argument("--trials", type=int, default=TRIALS)
    arguments.add_argument("--runs", type=int, default=RUNS, help="runs of the batch; 0: no batch")
    given = arguments.parse_args()
    if given.days:
        large(given.days, given.trials)
    if given.runs:
        batch(given.runs)


if __name__ == "__main__":
    main()
