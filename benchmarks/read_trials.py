"""Time and memory of reading a large study: gpudiag against Optuna and rustuna, each in a process of its own.

    python benchmarks/read_trials.py                            5,000 trials in SQLite
    python benchmarks/read_trials.py --size 50000               50,000 trials, 1 M parameters, 2.9 M values
    python benchmarks/read_trials.py --storage postgresql mysql journal
    python benchmarks/read_trials.py --alone --size 5000 50000 500000 --params 4 --reports 6
                                                                gpudiag alone: how its cost grows
    python benchmarks/read_trials.py --ways --storage postgresql mysql journal --rounds 3
                                                                what reading by columns buys over simpler ways
    python benchmarks/read_trials.py --storage sqlite journal --size 10000 --reports 10 --finite --rounds 3
                                                                with rustuna beside it, where that is installed

All read everything: Optuna through ``load_study().trials_dataframe()`` and the intermediate values of every trial,
gpudiag through ``read_trials()``, rustuna (0.2.0 reads SQLite and journals) as its objects come, with every value of
them looked at, and as the tables that the others give. rustuna refuses a journal with the NaN that Optuna writes, so
that it reads journals with ``--finite`` only. A side that passes the time limit is printed as such; nothing is
extrapolated. Times are those after the imports and those of the whole process. ``--ways`` reads with what gpudiag
falls back on in place of its columns: lines of a journal through ``json`` (and ``orjson``, where that is installed),
rows of a server one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.util import find_spec

from large_study import PARAMS, REPORTS, STORAGES, Shape, filled

MEASURE = """
import json, resource, sys, time
{imports}
began, began_cpu = time.perf_counter(), time.process_time()
{read}
whole_cpu = time.process_time()
seconds, cpu = time.perf_counter() - began, whole_cpu - began_cpu
if sys.platform == "linux":  # where ru_maxrss is never less than that of the process that started this one
    mib = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) / 1024
else:
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 ** 2  # macOS counts bytes
whole = time.time() - float(sys.argv[2])
{count}
print(json.dumps([seconds, cpu, whole, whole_cpu, mib, trials, cells, reports, total]))
"""
OURS = {
    "imports": """
from gpudiag.readers.trials import read_trials
if "://" in sys.argv[1]:
    import sqlalchemy.dialects.mysql.pymysql, sqlalchemy.dialects.postgresql.psycopg
    from gpudiag.readers.trials import optuna_server
""",
    "read": """
out = read_trials(sys.argv[1], timezone="UTC")
""",
    "count": """
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
""",
    "count": """
trials, reports, total = len(frame), len(values), float(values["value"].sum())
cells = int(frame.filter(like="params_").notna().to_numpy().sum())
""",
}
_RUSTUNA = {
    "imports": "import rustuna",
    "read": """
where = sys.argv[1]
if where.endswith(".log"):
    storage = rustuna.storages.JournalFileStorage(where)
else:
    storage = rustuna.storages.SQLite3Storage(where, create_database=False)
found = rustuna.load_study(study_name="bench", storage=storage).trials
""",
    "count": """
trials, reports = len(found), sum(len(t.intermediate_values) for t in found)
total = sum(v for t in found for v in t.intermediate_values.values() if v == v)
cells = sum(v is not None for t in found for v in t.params.values())
""",
}
_LOOKED_AT = """
for t in found:
    t.number, t.state, t.values, t.datetime_start, t.datetime_complete, t.params, t.intermediate_values
    t.user_attrs.to_dict(), t.system_attrs.to_dict()
"""
_TABLES = """
frame = pd.DataFrame([
    {"number": t.number, "state": t.state.name, "values": t.values, "start": t.datetime_start,
     "complete": t.datetime_complete, **{f"params_{k}": v for k, v in t.params.items()},
     **{f"user_attrs_{k}": v for k, v in t.user_attrs.items()}}
    for t in found
])
rows = [(t.number, k, v) for t in found for k, v in t.intermediate_values.items()]
values = pd.DataFrame(rows, columns=["trial", "step", "value"])
"""
RUSTUNA = {
    "rustuna, objects": _RUSTUNA,
    "rustuna, all values": _RUSTUNA | {"read": _RUSTUNA["read"] + _LOOKED_AT},
    "rustuna, tables": _RUSTUNA | {"imports": "import pandas as pd, rustuna", "read": _RUSTUNA["read"] + _TABLES},
}
SIDES = {"Optuna": OPTUNA, "gpudiag": OURS} | (RUSTUNA if find_spec("rustuna") else {})
HEAD = """| | seconds | CPU seconds | whole process, seconds | whole process, CPU seconds | peak MiB |
|---|--:|--:|--:|--:|--:|"""
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
    """Seconds and CPU seconds after the imports and of the whole process, peak MiB, and what was read.

    None if the limit was passed.
    """
    command = [sys.executable, "-c", MEASURE.format(**side), where, str(time.time())]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"reading {where} failed")
    return json.loads(done.stdout)


def compare(kind: str, shape: Shape, sides: tuple[str, ...], rounds: int, limit_s: float) -> None:
    """Print one line per side: the lowest, middle and highest of ``rounds`` alternating runs."""
    with filled(kind, shape) as (where, size_mib):
        runs: dict[str, list[list[float]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name in sides:
                found = measure(SIDES[name], where, limit_s)
                runs[name] += [found] if found else []
    n = shape.trials
    sizes = f"{n:,} trials, {n * shape.params:,} parameters, {n * shape.reports:,} values, {size_mib:.0f} MiB"
    print(f"\n{kind}: {sizes}\n")
    print(f"load {' '.join(f'{load:.1f}' for load in os.getloadavg())}\n\n{HEAD}")
    for name, found in runs.items():
        columns = [sorted(column) for column in zip(*(run[:5] for run in found), strict=True)]
        shown = [" / ".join(f"{fold(column):.{digits}f}" for fold in (min, statistics.median, max))
                 for column, digits in zip(columns, (2, 2, 2, 2, 0), strict=True)]  # fmt: skip
        print(f"| {name} | {' | '.join(shown) or f'more than {limit_s:g} s'} |", flush=True)
    ours = runs["gpudiag"][0][5:] if runs["gpudiag"] else None
    for name, found in runs.items():
        if ours and found and (found[0][5:8] != ours[:3] or abs(found[0][8] - ours[3]) > 1e-6 * abs(ours[3])):
            raise SystemExit(f"{name} and gpudiag read different things: {found[0][5:]} and {ours}")


def compare_ways(kind: str, shape: Shape, rounds: int, limit_s: float) -> None:
    """Print one line per way of reading the same study: medians of ``rounds`` alternating runs."""
    simpler = JOURNAL_WAYS if kind == "journal" else SERVER_WAYS
    sides = {"gpudiag": OURS} | {name: OURS | {"imports": OURS["imports"] + code} for name, code in simpler.items()}
    with filled(kind, shape) as (where, size_mib):
        runs: dict[str, list[list[float]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                runs[name] += [measure(side, where, limit_s) or [float("nan")] * 9]
    print(f"\n{kind}: {shape.trials:,} trials, {size_mib:.0f} MiB; medians of {rounds}\n")
    print("| | seconds | CPU seconds | peak MiB |\n|---|--:|--:|--:|")
    for name, found in runs.items():
        seconds, cpu, mib = (statistics.median(run[i] for run in found) for i in (0, 1, 4))
        print(f"| {name} | {seconds:.2f} | {cpu:.2f} | {mib:.0f} |", flush=True)
    if len({tuple(run[5:8]) for found in runs.values() for run in found}) > 1:
        raise SystemExit("the ways read different things")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs="+", default=[5000], help="trials of the study, one after the other")
    parser.add_argument("--storage", nargs="+", choices=STORAGES, default=["sqlite"], help="where the study lies")
    parser.add_argument("--params", type=int, default=PARAMS, help="parameters of a trial")
    parser.add_argument("--reports", type=int, default=REPORTS, help="intermediate values of a trial")
    parser.add_argument("--finite", action="store_true", help="no NaN among the values")
    parser.add_argument("--alone", action="store_true", help="gpudiag without Optuna beside it")
    parser.add_argument("--ways", action="store_true", help="gpudiag's columns against simpler ways of reading")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each side")
    parser.add_argument("--limit-s", type=float, default=600, help="time limit of one run")
    given = parser.parse_args()
    for kind in given.storage:
        for trials in given.size:
            shape = Shape(trials, given.params, given.reports, given.finite)
            if given.ways:
                compare_ways(kind, shape, given.rounds, given.limit_s)
                continue
            able = {"sqlite": True, "journal": given.finite}.get(kind, False)
            sides = [name for name in SIDES if able or name not in RUSTUNA]
            compare(kind, shape, ("gpudiag",) if given.alone else tuple(sides), given.rounds, given.limit_s)


if __name__ == "__main__":
    main()
