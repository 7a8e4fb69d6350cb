"""What GPUs waited for, found against the truth of simulated trainings (gpudiag.simulation.trainings).

    python benchmarks/accuracy_causes.py [--runs 120] [--seed 270000]

writes its section of benchmarks/accuracy.md. Trainings are drawn over loaders that keep up or not, for their
processors or their storage, steps that wait for the GPU or run ahead, slow launches, copies, pauses for evaluation and
checkpoints, crashes, slow first steps and neighbors that keep a core busy. Each is read four times: its telemetry with
the host alone, with a log that has timestamps alone, with one that states its waits, and with profiled steps too.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from accuracy_ledger import seeds, write_section

import gpudiag as gd
from gpudiag.measures.causes import CausesProfile, measure_causes
from gpudiag.simulation.spec import TelemetrySpec
from gpudiag.simulation.trainings.spec import Between, LoaderSpec, ProfilerSpec, StepSpec, TrainingSpec
from gpudiag.simulation.trainings.training import SimulatedTraining, simulate_training
from gpudiag.simulation.trainings.truth import idle_by_cause

READINGS = ("samples", "plain log", "log with waits", "log and trace")
SIGNATURES = {"cpu_bound": ("loader", "launch"), "io_wait": ("loader",), "launch_bound": ("launch",), "small_work": ()}
"""By signature: the true causes that it may stand for."""


def drawn(rng: np.random.Generator) -> TrainingSpec:
    """One training."""
    gpu_s = float(rng.uniform(0.05, 0.4))
    step_s = gpu_s * float(rng.uniform(1.0, 3.0))
    feeds = float(rng.choice([0.5, 0.9, 1.0, 1.3, 2.0, 4.0]))
    workers = int(rng.integers(1, 9))
    steps = int(rng.integers(300, 900))
    crashes = (int(rng.integers(steps // 2, 2 * steps)),) if rng.random() < 0.25 else ()
    saves = bool(crashes) or rng.random() < 0.5
    return TrainingSpec(
        epochs=3,
        steps_per_epoch=steps,
        step=StepSpec(
            gpu_s=gpu_s,
            gpu_cv=float(rng.uniform(0, 0.1)),
            launch_s=gpu_s * float(rng.choice([0.1, 0.3, 0.8, 1.3])),
            pieces=int(rng.integers(3, 12)),
            copy_s=gpu_s * float(rng.choice([0, 0, 0.05, 0.2])),
            host_s=gpu_s * float(rng.choice([0, 0.02, 0.2])),
            sync_every=int(rng.choice([0, 1, 1, 1, 10])),
        ),
        loader=LoaderSpec(
            workers=workers,
            batch_s=feeds * step_s * workers / 2,
            batch_cv=float(rng.uniform(0.05, 0.5)),
            hiccup_rate=float(rng.choice([0, 0, 0.003])),
            spawn_s=float(rng.choice([0, 0, 6])),
            waits_for="storage" if rng.random() < 0.3 else "cpu",
        ),
        between=Between(
            startup_s=float(rng.uniform(10, 60)),
            first_step_s=float(rng.choice([0, 0, 15, 60])),
            evaluate_s=float(rng.choice([0, 15, 60])),
            evaluate_share=float(rng.uniform(0.2, 0.9)),
            checkpoint_every=int(rng.integers(100, 400)) if saves else 0,
            checkpoint_s=float(rng.uniform(6, 30)),
            crashes=crashes,
            down_s=float(rng.uniform(30, 300)),
        ),
        log="mmengine" if crashes or rng.random() < 0.5 else "timm",  # timm goes on at the start of an epoch alone
        log_every=int(rng.choice([10, 20, 50])),
        profiler=ProfilerSpec(first=60, n_steps=int(rng.integers(5, 21)), slows=float(rng.choice([1.0, 1.2, 1.5]))),
        hot_neighbor=bool(rng.random() < 0.15),
        telemetry=TelemetrySpec(period_s=float(rng.choice([1.0, 2.0, 5.0])), util_noise_pct=2.0),
    )


def truth_of(made: SimulatedTraining, *, stated: bool) -> dict[str, float]:
    """Seconds by cause. Before the first kernel and after the last no source tells what is done, but a log that has
    ``stated`` how long the first steps took.
    """
    rank, (low, high) = made.history.ranks[0], made.span_s
    last = rank.steps[-1].end_s
    held = idle_by_cause(rank, low, last)
    after = idle_by_cause(rank, last, high)
    for pause in ("evaluation", "checkpoint"):  # of which the log tells behind its last step
        held[pause] += after[pause]
    held["outside"] += held.pop("startup") + after["outside"] + after["host"] + after["launch"]
    held["outside"] += 0.0 if stated else held.pop("first_steps")
    return held


def read(made: SimulatedTraining, reading: str, folder: Path) -> CausesProfile:
    """What is found where so much was recorded."""
    made.write(folder)
    names = {"samples": [], "plain log": ["train.log"], "log with waits": ["train.log"]}.get(reading)
    artifacts = ["train.log", "rank0.pt.trace.json.gz"] if names is None else names
    zone = made.spec.timezone
    run = gd.load_run(telemetry=folder / "gpu.csv", artifacts=[folder / name for name in artifacts], timezone=zone)
    return measure_causes(run)


def rows(seed: int) -> Iterator[dict[str, object]]:
    """Each cause of one training in each reading: found, bounds and truth as percent of the observed time."""
    spec = drawn(np.random.default_rng(seed))
    for reading in READINGS:
        made = simulate_training(replace(spec, log="plain") if reading == "plain log" else spec, seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            found = read(made, reading, Path(folder))
        truth, total = truth_of(made, stated=reading in READINGS[2:]), found.observed_gpu_s
        held = found.by_cause
        pauses = held.index.isin(["evaluation", "checkpoint", "evaluation_checkpoint"])
        about = {"seed": seed, "reading": reading, "fit": found.trace_fit, "neighbor": spec.hot_neighbor}
        for cause in ("outside", "restart", "first_steps", "loader", "launch", "copy", "host"):
            if cause not in truth or (reading == "samples" and cause != "outside"):
                continue
            yield about | _row(cause, held[held.index == cause], held, truth[cause], total)
        if reading != "samples":
            yield about | _row("pauses", held[pauses], held, truth["evaluation"] + truth["checkpoint"], total)
        for name, may in SIGNATURES.items():
            if name in held.index:
                known = {cause for cause in held.index if held.at[cause, "source"] in ("log", "trace")}
                left = sum(truth[cause] for cause in may if cause not in known)
                yield about | _row(f"sign: {name}", held.loc[[name]], held, left, total)


def _row(cause: str, found: pd.DataFrame, all_: pd.DataFrame, true_s: float, total_s: float) -> dict[str, object]:
    """A cause that is not named may be all that is unknown, or a stretch that is slower than usual."""
    open_ = all_.index.isin(["unknown", "pause"])
    named = found if len(found) else all_[open_].assign(gpu_s=0.0, low_gpu_s=0.0)
    values = [100 * float(named[name].sum()) / total_s for name in ("gpu_s", "low_gpu_s", "high_gpu_s")]
    return {"cause": cause, "found": values[0], "low": values[1], "high": values[2], "true": 100 * true_s / total_s}


def table_lines(table: pd.DataFrame) -> Iterator[str]:
    """A table a reading that tells more than the samples do."""
    for reading in READINGS[1:]:
        part = table[table["reading"] == reading]
        fits = part.groupby("seed")["fit"].first() == ""
        part = part[part["seed"].map(fits)] if reading == READINGS[-1] else part
        yield ""
        yield f"{reading} ({part['seed'].nunique()} runs), points of the observed GPU time:"
        yield ""
        yield "| waited for | runs | true | bias | median error | 95 % | worst | beyond its bounds: 95 %, worst |"
        yield "|---|--:|--:|--:|--:|--:|--:|--:|"
        for cause, own in part.groupby("cause", sort=False):
            told = own[~own["cause"].str.startswith("sign") & ((own["true"] > 0.05) | (own["found"] > 0.05))]
            if len(told) < 3 or not (told["found"] > 0).any():
                continue
            error, beyond = told["error"].abs(), told["beyond"]
            yield (
                f"| {cause} | {len(told)} | {told['true'].mean():.1f} | {told['error'].mean():+.1f} "
                f"| {error.median():.1f} | {error.quantile(0.95):.1f} | {error.max():.1f} "
                f"| {beyond.quantile(0.95):.1f}, {beyond.max():.1f} |"
            )


def sign_lines(table: pd.DataFrame) -> Iterator[str]:
    """How much of what signs in the samples make likely truly was the loader or launching."""
    signs = table[table["cause"].str.startswith("sign") & (table["reading"] == "samples") & (table["found"] > 0.5)]
    for neighbor, part in signs.groupby("neighbor"):
        right = float(np.minimum(part["found"], part["true"]).sum() / part["found"].sum())
        beside = "with another program that keeps a core busy" if neighbor else "without other programs"
        yield f"- {beside} ({len(part)} runs): {100 * right:.0f} % at most."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=270_000)
    a = parser.parse_args()
    table = pd.DataFrame([row for seed in range(a.seed, a.seed + a.runs) for row in rows(seed)])
    table["error"] = table["found"] - table["true"]
    table["beyond"] = np.maximum(np.maximum(table["low"] - table["true"], table["true"] - table["high"]), 0)
    fits = table[table["reading"] == READINGS[-1]].groupby("seed")["fit"].first()
    n_like, n_steps, n_work = (int((fits == fit).sum()) for fit in ("", "other_steps", "other_work"))
    lines = [
        f"{a.runs} simulated trainings (`gpudiag.simulation.trainings`), each read with its telemetry and the host, "
        "and with a log that has timestamps alone, one that states its waits, and profiled steps too. What no source "
        "names is unknown there, and counts in the bounds of every cause that is not named.",
        *table_lines(table),
        "",
        f"Of {a.runs} traces {n_like} stand for the run; the others are refused, since their steps ({n_steps}) or "
        f"kernels ({n_work}) are not those of the run.",
        "",
        "With the samples alone nothing within the work is certain. Of the time that lies beside a busy core or I/O "
        "wait, the loader or launching truly was:",
        "",
        *sign_lines(table),
    ]
    body = "\n".join(lines) + seeds(a.seed, a.runs)
    print(body)
    write_section("What the GPU waited for", body)


if __name__ == "__main__":
    main()
