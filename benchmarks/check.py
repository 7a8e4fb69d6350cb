"""Has gpudiag become slower? Small runs of each kind, as CPU time against a peer in the same run.

    python benchmarks/check.py            exit 1 where a ratio is more than 1.5 times that in check.csv
    python benchmarks/check.py --write    take the ratios of this run

Each side is a process of its own whose CPU time counts, imports included, since others may use the cores. Busy cores
make a round dear: what seems slower is measured again in several, taken in turn, of which the least counts, as it does
of what is kept; a loss is what stays.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path

from inspect_folder import write_logs
from large_study import Shape, filled
from ledger_speed import write
from read_telemetry import SIDES as TELEMETRY
from read_trials import SIDES as STUDIES
from rounds import in_turn

TABLE = Path(__file__).with_name("check.csv")
SAMPLES = Path(__file__).parents[1] / "data/samples"
SAMPLE, SEARCH = SAMPLES / "healthy", SAMPLES / "hpo-aggressive-pruning"
BAND = 1.5
"""Machines, and versions of the peers, differ by less; what is lost by mistake is mostly more."""
ROUNDS = 4
"""Of what is kept, and where a first round says that it became slower."""
LOAD = "import sys, gpudiag\nrun = gpudiag.load_run(sys.argv[1], timezone='Europe/Berlin')\n"
DIAGNOSE = LOAD + "gpudiag.diagnose(run)\n"
MANY_LOGS = """
import sys, pathlib, pandas as pd
for path in pathlib.Path(sys.argv[1]).iterdir():
    frame = pd.read_csv(path, skipinitialspace=True)
    for name in [name for name in frame if "[" in name]:
        frame[name] = pd.to_numeric(frame[name].astype(str).str.replace(r"[^0-9.]", "", regex=True))
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], format="%Y/%m/%d %H:%M:%S.%f")
"""


@dataclass(frozen=True)
class Check:
    """Arguments of Python on both sides."""

    name: str
    ours: list[str]
    against: str
    peer: list[str]


def reading(imports: str, read: str) -> list[str]:
    """Arguments of Python for a way to read, of read_telemetry.py or read_trials.py; what is read comes behind."""
    return ["-c", f"import sys\n{imports}\n{read}"]


def checks(folder: Path, study: str) -> list[Check]:
    """What is compared, on what lies in the folder."""
    tool = ["-m", "gpudiag"]
    code = {name: reading(imports, read) for name, (imports, read) in TELEMETRY.items()}
    trials = {name: [*reading(side["imports"], side["read"]), study] for name, side in STUDIES.items()}
    log, day, search, logs = (str(folder / name) for name in ("day/gpu.csv", "day", "search", "logs"))
    return [
        Check("diagnose, a small run", [*tool, "diagnose", str(SAMPLE)], "imports", ["-c", "import pandas, polars"]),
        Check("--help", [*tool, "--help"], "imports", ["-c", "import typer, rich.table"]),
        Check(
            "reports of two small runs, no notebooks",
            [*tool, "report", str(SAMPLE), str(SEARCH), "-o", str(folder / "out"), "--no-notebook"],
            "imports",
            ["-c", "import pandas, polars, matplotlib.pyplot, nbconvert, papermill"],
        ),
        Check("diagnose, 345,600 samples", ["-c", DIAGNOSE, day], "reading them", ["-c", LOAD, day]),
        Check("diagnose, with 1,000 trials", ["-c", DIAGNOSE, search], "reading them", ["-c", LOAD, search]),
        Check("read 345,600 samples", [*code["gpudiag"], log], "pandas idiom", [*code["pandas idiom"], log]),
        Check("inspect 200 logs", [*tool, "inspect", logs], "pandas idiom", ["-c", MANY_LOGS, logs]),
        Check("read 1,000 trials", trials["gpudiag"], "Optuna", trials["Optuna"]),
    ]


def measured(check: Check, kept: float | None) -> tuple[float, float]:
    """CPU seconds of both sides; the least of several rounds, but where one is within the band about the kept ratio."""

    def least(rounds: int) -> tuple[float, float]:
        ours, peer = in_turn((check.ours, check.peer), rounds)
        return min(run.cpu_s for run in ours), min(run.cpu_s for run in peer)

    if kept:
        ours, peer = least(1)
        if ours <= BAND * kept * peer:
            return ours, peer
    return least(ROUNDS)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--write", action="store_true", help="take these ratios for those to keep")
    given = arguments.parse_args()
    rows = list(csv.DictReader(TABLE.open(encoding="utf-8"))) if TABLE.exists() else []
    kept = {row["check"]: float(row["ratio"]) for row in rows}
    ratios, slower = {}, []
    with tempfile.TemporaryDirectory() as name, filled("sqlite", Shape(1000, reports=10)) as (study, _):
        folder = Path(name)
        for part in ("day", "search", "logs"):
            (folder / part).mkdir()
        write(folder / "search/gpu.csv", folder / "search/trials.csv", 0.5, 1000)
        (folder / "day/gpu.csv").symlink_to(folder / "search/gpu.csv")
        write_logs(folder / "logs", 200)
        for check in checks(folder, study):
            before = kept.get(check.name)
            ours, peer = measured(check, None if given.write else before)
            ratios[check.name] = (check.against, ours / peer)
            said = f"{check.name}: {ours:.2f} s of CPU, {ours / peer:.2f} x {check.against} ({peer:.2f} s)"
            print(said + (f"; {before:.2f} x is kept" if before else ""), flush=True)
            if before and ours / peer > BAND * before:
                slower.append(check.name)
    if given.write:
        lines = ["check,against,ratio", *(f'"{name}",{peer},{ratio:.2f}' for name, (peer, ratio) in ratios.items())]
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif slower:
        raise SystemExit(f"More than {BAND} times as slow as in {TABLE.name}: {'; '.join(slower)}.")


if __name__ == "__main__":
    main()
