"""Time and memory of reading a large study: gpudiag against Optuna, each in a process of its own.

    python benchmarks/read_trials.py                 5,000 trials
    python benchmarks/read_trials.py --size 50000    50,000 trials, 1 M parameters, 2.9 M intermediate values

Both read everything from one SQLite file: Optuna through ``load_study().trials_dataframe()`` and the
intermediate values of every trial, gpudiag through ``read_trials()``. A side that passes the time limit
is printed as such; nothing is extrapolated.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution, distribution_to_json

PARAMS = 20
REPORTS = 58
STATES = ("COMPLETE", "PRUNED", "FAIL")
SPACES = (
    FloatDistribution(1e-5, 1e-1, log=True),
    FloatDistribution(0, 1),
    IntDistribution(1, 100),
    CategoricalDistribution(("adam", "sgd", "rmsprop", None, 3)),
)

MEASURE = """
import json, resource, sys, time
{imports}
began, began_cpu = time.perf_counter(), time.process_time()
{read}
seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
# Linux counts in KiB, macOS in bytes.
mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 ** 2)
print(json.dumps([seconds, cpu, mib, trials, cells, reports, total]))
"""
OURS = {
    "imports": "from gpudiag.readers.trials import read_trials",
    "read": """
out = read_trials(sys.argv[1], timezone="UTC")
trials, reports, total = len(out.trials), len(out.reports), float(out.reports["value"].sum())
cells = int(out.trials.filter(like="params.").notna().to_numpy().sum())
""",
}
OPTUNA = {
    "imports": "import optuna, pandas as pd\noptuna.logging.set_verbosity(optuna.logging.WARNING)",
    "read": """
study = optuna.load_study(study_name="bench", storage=f"sqlite:///{sys.argv[1]}")
frame = study.trials_dataframe()
rows = [(t.number, k, v) for t in study.get_trials(deepcopy=False) for k, v in t.intermediate_values.items()]
values = pd.DataFrame(rows, columns=["trial", "step", "value"])
trials, reports, total = len(frame), len(values), float(values["value"].sum())
cells = int(frame.filter(like="params_").notna().to_numpy().sum())
""",
}


def rows_of(trials: int, rng: random.Random) -> dict[str, Iterator[tuple]]:
    """Rows by INSERT statement, made while they are inserted."""
    spaces = [(f"p{i:02d}", SPACES[i % 4], distribution_to_json(SPACES[i % 4])) for i in range(PARAMS)]
    states = [rng.choices(STATES, (30, 65, 5))[0] for _ in range(trials)]

    def stamp(seconds: float) -> str:
        return datetime.fromtimestamp(1.7e9 + seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")

    def stored(space: object) -> float:
        if isinstance(space, CategoricalDistribution):
            return float(rng.randrange(len(space.choices)))
        return float(rng.randint(1, 100)) if isinstance(space, IntDistribution) else rng.uniform(1e-4, 0.1)

    ids = range(1, trials + 1)
    return {
        "trials (trial_id, number, study_id, state, datetime_start, datetime_complete) VALUES (?, ?, 1, ?, ?, ?)": (
            (at, at - 1, states[at - 1], stamp(at * 30.125), stamp(at * 30.125 + 250.5)) for at in ids
        ),
        "trial_params (trial_id, param_name, param_value, distribution_json) VALUES (?, ?, ?, ?)": (
            (at, name, stored(space), text) for at in ids for name, space, text in spaces
        ),
        "trial_values (trial_id, objective, value, value_type) VALUES (?, 0, ?, 'FINITE')": (
            (at, rng.random()) for at in ids if states[at - 1] != "FAIL"
        ),
        "trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type) VALUES (?, ?, ?, ?)": (
            (at, step, *((None, "NAN") if (at * REPORTS + step) % 1000 == 0 else (rng.random(), "FINITE")))
            for at in ids
            for step in range(REPORTS)
        ),
        "trial_user_attributes (trial_id, key, value_json) VALUES (?, ?, ?)": (
            (at, key, json.dumps(value)) for at in ids for key, value in (("seconds", rng.random()), ("gpu", at % 4))
        ),
    }


def make_study(path: Path, trials: int) -> None:
    """A study in a schema that Optuna created, filled by SQL."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    optuna.create_study(storage=f"sqlite:///{path}", study_name="bench")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        for target, rows in rows_of(trials, random.Random(0)).items():
            connection.executemany(f"INSERT INTO {target}", rows)
        connection.commit()


def measure(side: dict[str, str], path: Path, limit_s: float) -> list[float] | None:
    """Seconds, CPU seconds, peak MiB, and what was read; None if the limit was passed."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", MEASURE.format(**side), str(path)],
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)


def compare(trials: int, rounds: int, limit_s: float) -> None:
    """Print one line per side, the better of ``rounds`` alternating runs, and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        make_study(path, trials)
        size_mib = path.stat().st_size / 1024**2
        runs: dict[str, list[list[float]]] = {"Optuna": [], "gpudiag": []}
        for _ in range(rounds):
            for name, side in (("Optuna", OPTUNA), ("gpudiag", OURS)):
                found = measure(side, path, limit_s)
                runs[name] += [found] if found else []
    print(f"\n{trials:,} trials, {trials * PARAMS:,} parameters, {trials * REPORTS:,} values, {size_mib:.0f} MiB\n")
    print("| | seconds | CPU seconds | peak MiB |\n|---|--:|--:|--:|")
    best = {name: min(found) for name, found in runs.items() if found}
    for name in runs:
        shown = "{:.2f} | {:.2f} | {:.0f}".format(*best[name][:3]) if name in best else f"more than {limit_s:g} | | "
        print(f"| {name} | {shown} |")
    if len(best) == 2:
        theirs, ours = best["Optuna"], best["gpudiag"]
        if theirs[3:6] != ours[3:6] or abs(theirs[6] - ours[6]) > 1e-6 * abs(theirs[6]):
            raise SystemExit(f"the two sides read different things: {theirs[3:]} and {ours[3:]}")
        ratios = [a / b for a, b in zip(theirs[:3], ours[:3], strict=True)]
        print("| ratio | {:.0f} | {:.0f} | {:.1f} |".format(*ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", type=int, nargs="+", default=[5000], help="trials of the study (several: one after the other)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="runs of each side; the fastest counts")
    parser.add_argument("--limit-s", type=float, default=600, help="time limit of one run")
    given = parser.parse_args()
    for trials in given.size:
        compare(trials, given.rounds, given.limit_s)


if __name__ == "__main__":
    main()
