"""Time and memory of reading a large study: gpudiag against Optuna, each in a process of its own.

    python benchmarks/read_trials.py                            5,000 trials in SQLite
    python benchmarks/read_trials.py --size 50000               50,000 trials, 1 M parameters, 2.9 M values
    python benchmarks/read_trials.py --storage postgresql mysql journal
    python benchmarks/read_trials.py --alone --size 5000 50000 500000 --params 4 --reports 6
                                                                gpudiag alone: how its cost grows
    python benchmarks/read_trials.py --ways --storage postgresql mysql journal --rounds 3
                                                                what reading by columns buys over simpler ways

Both read everything, after their imports: Optuna through ``load_study().trials_dataframe()`` and the intermediate
values of every trial, gpudiag through ``read_trials()``. A side that passes the time limit is printed as such;
nothing is extrapolated. ``--ways`` reads with what gpudiag falls back on in place of its columns: lines of a journal
through ``json`` (and ``orjson``, where that is installed), rows of a server one by one.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from importlib.util import find_spec

from large_study import PARAMS, REPORTS, STORAGES, Shape, filled

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
    "imports": """
import polars, pyarrow.csv, sqlalchemy.dialects.mysql.pymysql, sqlalchemy.dialects.postgresql.psycopg
from gpudiag.readers.trials import optuna_server, read_trials
""",
    "read": """
out = read_trials(sys.argv[1], timezone="UTC")
trials, reports, total = len(out.trials), len(out.reports), float(out.reports["value"].sum())
cells = int(out.trials.filter(like="params.").notna().to_numpy().sum())
""",
}
OPTUNA = {
    "imports": """
import optuna, pandas as pd, sqlalchemy.dialects.mysql.pymysql, sqlalchemy.dialects.postgresql.psycopg
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
optuna.logging.set_verbosity(optuna.logging.WARNING)
""",
    "read": """
where = sys.argv[1]
if where.endswith(".log"):
    storage = JournalStorage(JournalFileBackend(where))
else:
    storage = where if "://" in where else f"sqlite:///{where}"
study = optuna.load_study(study_name="bench", storage=storage)
frame = study.trials_dataframe()
rows = [(t.number, k, v) for t in study.get_trials(deepcopy=False) for k, v in t.intermediate_values.items()]
values = pd.DataFrame(rows, columns=["trial", "step", "value"])
trials, reports, total = len(frame), len(values), float(values["value"].sum())
cells = int(frame.filter(like="params_").notna().to_numpy().sum())
""",
}
SIDES = {"Optuna": OPTUNA, "gpudiag": OURS}
_LINES = "from gpudiag.readers._studies import journal, journal_cut\njournal_cut.BULK_BYTES = 1 << 62\n"
JOURNAL_WAYS = {"line by line, json": _LINES}
if find_spec("orjson"):
    # Optuna writes NaN and Infinity, which orjson refuses.
    JOURNAL_WAYS["line by line, orjson"] = (
        _LINES
        + """
import json, orjson, types
def loads(text):
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)
journal.json = types.SimpleNamespace(loads=loads)
"""
    )
SERVER_WAYS = {"rows of the driver": "optuna_server.as_arrays = optuna_server.as_points = lambda *_: None\n"}


def measure(side: dict[str, str], where: str, limit_s: float) -> list[float] | None:
    """Seconds, CPU seconds, peak MiB, and what was read; None if the limit was passed."""
    code = MEASURE.format(**side)
    try:
        done = subprocess.run([sys.executable, "-c", code, where], stdout=subprocess.PIPE, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"reading {where} failed")
    return json.loads(done.stdout)


def compare(kind: str, shape: Shape, sides: tuple[str, ...], rounds: int, limit_s: float) -> None:
    """Print one line per side, the better of ``rounds`` alternating runs, and the ratios."""
    with filled(kind, shape) as (where, size_mib):
        runs: dict[str, list[list[float]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name in sides:
                found = measure(SIDES[name], where, limit_s)
                runs[name] += [found] if found else []
    n = shape.trials
    sizes = f"{n:,} trials, {n * shape.params:,} parameters, {n * shape.reports:,} values, {size_mib:.0f} MiB"
    print(f"\n{kind}: {sizes}\n")
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
        print("| ratio | {:.0f} | {:.0f} | {:.1f} |".format(*ratios), flush=True)


def compare_ways(kind: str, shape: Shape, rounds: int, limit_s: float) -> None:
    """Print one line per way of reading the same study: medians of ``rounds`` alternating runs."""
    simpler = JOURNAL_WAYS if kind == "journal" else SERVER_WAYS
    sides = {"gpudiag": OURS} | {name: OURS | {"imports": OURS["imports"] + code} for name, code in simpler.items()}
    with filled(kind, shape) as (where, size_mib):
        runs: dict[str, list[list[float]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                runs[name] += [measure(side, where, limit_s) or [float("nan")] * 7]
    print(f"\n{kind}: {shape.trials:,} trials, {size_mib:.0f} MiB; medians of {rounds}\n")
    print("| | seconds | CPU seconds | peak MiB |\n|---|--:|--:|--:|")
    for name, found in runs.items():
        seconds, cpu, mib = (statistics.median(run[i] for run in found) for i in range(3))
        print(f"| {name} | {seconds:.2f} | {cpu:.2f} | {mib:.0f} |", flush=True)
    if len({tuple(run[3:6]) for found in runs.values() for run in found}) > 1:
        raise SystemExit("the ways read different things")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="+", default=[5000], help="trials of the study, one after the other")
    parser.add_argument("--storage", nargs="+", choices=STORAGES, default=["sqlite"], help="where the study lies")
    parser.add_argument("--params", type=int, default=PARAMS, help="parameters of a trial")
    parser.add_argument("--reports", type=int, default=REPORTS, help="intermediate values of a trial")
    parser.add_argument("--alone", action="store_true", help="gpudiag without Optuna beside it")
    parser.add_argument("--ways", action="store_true", help="gpudiag's columns against simpler ways of reading")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each side; the fastest counts")
    parser.add_argument("--limit-s", type=float, default=600, help="time limit of one run")
    given = parser.parse_args()
    for kind in given.storage:
        for trials in given.size:
            if given.ways:
                compare_ways(kind, Shape(trials, given.params, given.reports), given.rounds, given.limit_s)
                continue
            compare(
                kind,
                Shape(trials, given.params, given.reports),
                ("gpudiag",) if given.alone else tuple(SIDES),
                given.rounds,
                given.limit_s,
            )


if __name__ == "__main__":
    main()
