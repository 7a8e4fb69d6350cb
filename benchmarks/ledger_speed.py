"""Time of the clock, the attribution, the ledger and the costs against the time of reading the two inputs.

    python benchmarks/ledger_speed.py                     8 GPUs x 1 Hz x 7 days, 50,000 trials
    python benchmarks/ledger_speed.py --grow              the same for smaller logs and for fewer and more trials
    python benchmarks/ledger_speed.py --grow --figure benchmarks/ledger_speed.png

A log of nvidia-smi with units and a table of trials in CSV, the cheapest of all trial inputs to read, lie in a
temporary folder; trials follow each other on each GPU, with start-up, work and pauses, and name their GPU. The
telemetry is in local time, the trials are in UTC: the clock is found from the data. Each run has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

GPUS = 8
DAYS = 7.0
TRIALS = 50_000
START_S = 1_771_135_968
HEADER = (
    "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
    "power.draw [W], temperature.gpu\n"
)
STAGES = ("telemetry", "trials", "clock", "ledger", "costs")

MEASURE = """
import json, resource, sys, time
import gpudiag
from gpudiag.alignment import apply_clock, establish_clock
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.memo import MemoRun
from gpudiag.readers.telemetry import read_telemetry
from gpudiag.readers.trials import read_trials
from gpudiag.run import Run, RunInfo
from gpudiag.schema import STUDIES, TRIALS, conform
telemetry_csv, trials_csv = sys.argv[1:]
marks = [(time.perf_counter(), time.process_time())]
def mark(): marks.append((time.perf_counter(), time.process_time()))
telemetry = read_telemetry(telemetry_csv, timezone="Europe/Berlin"); mark()
read = read_trials(trials_csv, timezone="Europe/Berlin"); mark()
run = Run(gpu=telemetry.gpu, gpus=telemetry.gpus, trials=conform(read.trials, TRIALS),
          studies=conform(read.studies, STUDIES), info=RunInfo(timezone="Europe/Berlin"))
run = apply_clock(run, establish_clock(run)); mark()
run = MemoRun.of(run)  # as a diagnosis does
ledger = measure_ledger(run); mark()
costs = measure_costs(run); mark()
mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 ** 2)
wall, cpu = ([b[k] - a[k] for a, b in zip(marks, marks[1:])] for k in (0, 1))
print(json.dumps({"wall": wall, "cpu": cpu, "mib": mib, "samples": len(run.gpu), "trials": len(run.trials),
                  "clock": [run.info.clock.confidence, run.info.clock.offset_s],
                  "conserved": abs(float(ledger.cells["gpu_s"].sum()) - ledger.total_gpu_s),
                  "attributed": costs.attributed_pct}))
"""


def intervals(seconds: int, trials: int, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Start and end of the trials of each GPU: one after the other, most of the time there is one."""
    found = []
    for gpu in range(GPUS):
        count = trials // GPUS + (gpu < trials % GPUS)
        cuts = np.sort(rng.uniform(0, seconds, count))
        length = np.diff(cuts, append=seconds)
        found.append((cuts, cuts + length * rng.uniform(0.7, 0.98, count)))
    return found


def write(telemetry: Path, table: Path, days: float, trials: int) -> None:
    """The log and the table of trials."""
    rng = np.random.default_rng(0)
    seconds = int(days * 86_400)
    whole = intervals(seconds, trials, rng)
    cells = []
    for start, end in whole:
        at = np.arange(seconds)
        trial = np.searchsorted(start, at, "right") - 1
        runs = (trial >= 0) & (at < end[trial])
        since = at - start[trial]
        works = runs & (since > np.minimum(20, (end - start)[trial] / 4))
        util = np.where(works, rng.integers(30, 101, seconds), 0)
        memory = np.where(runs, 600, 4) + np.where(works, 5000 + 1000 * (trial % 9), 0)
        power = np.where(works, 100 + 5 * util, 70) + rng.integers(0, 100, seconds) / 100
        cells.append((util, memory, power))
    timestamps = np.datetime_as_string((START_S + 3600 + np.arange(seconds)).astype("datetime64[s]"))
    with telemetry.open("w", encoding="utf-8") as log:
        log.write(HEADER)
        for second, timestamp in enumerate(timestamps):
            clock = timestamp.replace("-", "/").replace("T", " ")
            for gpu, (util, memory, power) in enumerate(cells):
                log.write(
                    f"{clock}.{7 * second % 990 + gpu:03d}, {gpu}, NVIDIA H100 80GB HBM3, {util[second]} %, "
                    f"{util[second] // 2} %, {memory[second]} MiB, 81559 MiB, {power[second]:.2f} W, 55\n"
                )
    states = rng.choice(["COMPLETE", "PRUNED", "FAIL"], trials, p=[0.35, 0.6, 0.05])
    rows = sorted((a, b, gpu) for gpu, (start, end) in enumerate(whole) for a, b in zip(start, end, strict=True))
    with table.open("w", encoding="utf-8") as out:
        out.write("number,state,datetime_start,datetime_complete,value,gpu\n")
        for number, (start, end, gpu) in enumerate(rows):
            begin, done = (np.datetime64(round((START_S + t) * 1e6), "us").item().isoformat(" ") for t in (start, end))
            out.write(f"{number},{states[number]},{begin},{done},{rng.uniform():.6f},{gpu}\n")


def measure(days: float, trials: int, rounds: int) -> dict[str, object]:
    """The best of some rounds, each in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        telemetry, table = Path(folder) / "gpu.csv", Path(folder) / "trials.csv"
        write(telemetry, table, days, trials)
        found = []
        for _ in range(rounds):
            command = [sys.executable, "-c", MEASURE, str(telemetry), str(table)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    return min(found, key=lambda one: sum(one["wall"]))


def row(one: dict) -> str:
    """One line of the table: seconds of each stage, and what follows reading over reading."""
    wall, cpu = one["wall"], one["cpu"]
    ratio, ratio_cpu = (sum(times[2:]) / sum(times[:2]) for times in (wall, cpu))
    stages = " | ".join(f"{wall[k]:.2f}" for k in range(len(STAGES)))
    return f"| {one['samples']:,} | {one['trials']:,} | {stages} | {ratio:.2f} | {ratio_cpu:.2f} | {one['mib']:,.0f} |"


def draw(by_samples: list[dict], by_trials: list[dict], path: Path) -> None:
    """Seconds of each stage against samples and against trials, with a straight line through the largest."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, points, key in zip(axes, (by_samples, by_trials), ("samples", "trials"), strict=True):
        x = np.array([one[key] for one in points], float)
        for label, places in (("reading both", (0, 1)), ("clock", (2,)), ("ledger", (3,)), ("costs", (4,))):
            y = np.array([sum(one["cpu"][k] for k in places) for one in points])
            axis.plot(x, y, marker="o", label=label)
        axis.set_xlabel(key)
        axis.set_ylabel("CPU seconds")
        axis.set_xscale("log", base=2)
        axis.set_xticks(x, [f"{one:,.0f}" for one in x], minor=False)
        axis.set_yscale("log", base=2)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.plot(x, y[-1] * x / x[-1], color="0.6", linestyle="--", label="linear")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--days", type=float, default=DAYS)
    arguments.add_argument("--trials", type=int, default=TRIALS)
    arguments.add_argument("--rounds", type=int, default=2, help="rounds; the best counts")
    arguments.add_argument("--grow", action="store_true", help="also for smaller logs, and fewer and more trials")
    arguments.add_argument("--figure", type=Path, help="draw what --grow found into this PNG")
    given = arguments.parse_args()
    print(f"| samples | trials | {' s | '.join(STAGES)} s | all after reading / reading | by CPU | peak MiB |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    whole = measure(given.days, given.trials, given.rounds)
    print(row(whole), flush=True)
    if not given.grow:
        return
    by_samples = [measure(given.days / n, given.trials, given.rounds) for n in (8, 4, 2)]
    by_trials = [measure(given.days, int(given.trials * n), given.rounds) for n in (0.125, 0.25, 0.5)]
    for one in (*by_samples, *by_trials):
        print(row(one), flush=True)
    if given.figure:
        draw([*by_samples, whole], [*by_trials, whole], given.figure)


if __name__ == "__main__":
    main()
