"""How fast gpudiag is, against its peers, and what limits it: the figures in benchmarks/README.md.

    python benchmarks/goals.py                     all, three rounds: half an hour on two cores
    python benchmarks/goals.py --only starts week  some of them
    python benchmarks/goals.py --rounds 5

Sides of one goal run in turn, each in a process of its own, imports included. A floor is the same work with nothing
else (benchmarks/floors/): what no diagnosis of ours can go below. The week is of 8 GPUs at 1 Hz: 4,838,400 samples.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from check import DIAGNOSE, LOAD, reading
from inspect_folder import write_logs
from large_study import Shape, filled
from ledger_speed import write
from read_telemetry import SIDES as TELEMETRY
from read_telemetry import WITHOUT
from read_telemetry import write as write_log
from read_trials import SIDES as STUDIES
from report import write_study
from rounds import in_turn

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "data/samples"
HEALTHY, PRUNING = SAMPLES / "healthy", SAMPLES / "hpo-aggressive-pruning"
TOOL = ("-m", "gpudiag")
DAYS, TRIALS, RUNS = 7.0, 10_000, 12


@dataclass(frozen=True)
class Goal:
    """``aim`` is of the first side's CPU time against each peer's by its name, or of its own seconds or MB."""

    name: str
    ours: tuple[str, ...]
    peers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    aim: str = ""


def floor(name: str, *arguments: object) -> tuple[str, ...]:
    return (str(HERE / "floors" / f"{name}.py"), *map(str, arguments))


def code(text: str, *arguments: object) -> tuple[str, ...]:
    return ("-c", text, *map(str, arguments))


def starts(folder: Path) -> Iterator[Goal]:
    """A small run: most of it are imports."""
    imports = {"import pandas, polars": code("import pandas, polars"), "floor": floor("small_diagnosis", HEALTHY)}
    yield Goal("diagnose the healthy sample", (*TOOL, "diagnose", str(HEALTHY)), imports, "2.5 x")
    imports = {"import typer, rich": code("import typer, rich"), "floor": floor("help_page", "--help")}
    yield Goal("--help", (*TOOL, "--help"), imports, "1.5 x")
    report = (*TOOL, "report", str(PRUNING), "-o", str(folder / "out"))
    empty = {"papermill and nbconvert of an empty notebook": floor("empty_notebook", folder / "empty.ipynb")}
    plain = {"floor: libraries and plain figures": floor("figures", folder / "plain.html")}
    yield Goal("report of the pruning sample", report, empty | plain, "2 x")
    yield Goal("the same with --no-notebook", (*report, "--no-notebook"), plain, "3 s")
    runs = [folder / f"runs/{number:02d}" for number in range(RUNS)]
    for run in runs:
        shutil.copytree(PRUNING, run)
    many = (*TOOL, "report", *map(str, runs), "-o", str(folder / "batch"))
    yield Goal(f"{RUNS} reports, --jobs 2", (*many, "--jobs", "2"), {}, f"a third of {RUNS} times one")


def telemetry(folder: Path) -> Iterator[Goal]:
    """A week as text, whole and with one row in a hundred torn; many small logs."""
    for name, dirt in (("a week as text", 0.0), ("a week, 1 % of its rows torn", 0.01)):
        log = folder / f"log{dirt}.csv"
        write_log(log, DAYS, dirt)
        sides = {name: (*reading(*one), str(log)) for name, one in TELEMETRY.items() if name != WITHOUT}
        sides |= {"floor": floor("torn_rows", log)} if dirt else {}
        yield Goal(f"read {name}", sides.pop("gpudiag"), sides, "1/6 pandas, 8 x newlines")
        log.unlink()
    (folder / "logs").mkdir()
    write_logs(folder / "logs", 1000)
    start = {"inspect one": (*TOOL, "inspect", str(folder / "logs/00000.csv"))}
    start |= {"floor": floor("small_logs", folder / "logs")}
    yield Goal("inspect 1,000 small logs", (*TOOL, "inspect", str(folder / "logs")), start, "3 s over inspect one")


def diagnoses(folder: Path) -> Iterator[Goal]:
    """Of a week alone, with ever more trials, and of shorter times: linear in both."""
    for days, trials in ((DAYS, 0), (DAYS, 50_000), (DAYS / 4, 12_500), (DAYS / 16, 3_125)):
        run = folder / f"week{days}-{trials}"
        run.mkdir()
        write(run / "gpu.csv", run / "trials.csv", days, trials or 8)
        if not trials:
            (run / "trials.csv").unlink()
        name = f"diagnose {days * 691_200:,.0f} samples" + (f" and {trials:,} trials" if trials else "")
        peers = {"reading them": code(LOAD, run), "floor": floor("large_diagnosis", run)}
        yield Goal(name, code(DIAGNOSE, run), peers, "2 x, 1.0 GB")
        shutil.rmtree(run)


def studies(_: Path) -> Iterator[Goal]:
    """Of Optuna, in SQLite."""
    with filled("sqlite", Shape(10_000, reports=10)) as (study, _):
        sides = {name: (*reading(one["imports"], one["read"]), study) for name, one in STUDIES.items()}
        yield Goal("read 10,000 trials of 20 parameters", sides.pop("gpudiag"), sides, "rustuna, 2 x its MiB")
    for trials in (5_000, 50_000, 500_000):
        with filled("sqlite", Shape(trials, params=4, reports=6)) as (study, _):
            ours = (*reading(STUDIES["gpudiag"]["imports"], STUDIES["gpudiag"]["read"]), study)
            yield Goal(f"read {trials:,} trials of 4 parameters", ours, {}, "linear")


def week(folder: Path) -> Iterator[Goal]:
    """The report of a week with a study."""
    run = folder / "week"
    run.mkdir()
    write(run / "gpu.csv", run / "unused.csv", DAYS, TRIALS)
    (run / "unused.csv").unlink()
    write_study(run / "study.db", DAYS, TRIALS)
    (run / "run.toml").write_text('timezone = "Europe/Berlin"\n', encoding="utf-8")
    report = (*TOOL, "report", str(run), "-o", str(folder / "week-out"))
    yield Goal(f"report of a week with {TRIALS:,} trials", report, {}, "20 s, 5 MB")
    size = max(page.stat().st_size for page in (folder / "week-out").rglob("*.html"))
    print(f"\nThe largest page of it has {size / 1e6:.1f} MB.\n")


KINDS = {kind.__name__: kind for kind in (starts, diagnoses, telemetry, studies, week)}


def spread(values: list[float], form: str) -> str:
    return " / ".join(format(value, form) for value in (min(values), statistics.median(values), max(values)))


def rows(goal: Goal, rounds: int) -> Iterator[str]:
    """One line a side; a ratio is of medians of CPU time."""
    load = os.getloadavg()[0]
    sides = {"gpudiag": goal.ours, **goal.peers}
    found = dict(zip(sides, in_turn(list(sides.values()), rounds), strict=True))
    ours = statistics.median(run.cpu_s for run in found["gpudiag"])
    for name, runs in found.items():
        cpu, wall, peak = (list(column) for column in zip(*runs, strict=True))
        first = name == "gpudiag"
        ratio = "" if first else f"{ours / statistics.median(cpu):.2f} x"
        said = f"**{goal.name}** ({goal.aim})" if first else name
        yield f"| {said} | {spread(cpu, '.2f')} | {spread(wall, '.2f')} | {max(peak):,.0f} | {ratio} | {load:.1f} |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", nargs="*", choices=KINDS, default=list(KINDS), help="these kinds")
    given = arguments.parse_args()
    print("| least / median / most | CPU s | wall s | peak MiB | gpudiag's CPU | load before |")
    print("|:--|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        for kind in given.only:
            for goal in KINDS[kind](Path(name)):
                for row in rows(goal, given.rounds):
                    print(row, flush=True)


if __name__ == "__main__":
    main()
