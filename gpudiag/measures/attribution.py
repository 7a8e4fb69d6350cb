"""Which GPU each trial ran on, how that is known, and how sure it is."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag._run.gpu_names import declared_gpus, gpus_of_events
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.footprint import active_gpus, gpus_by_memory
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures.base import GIVE_TRIALS, Profile, TrialRow, need_columns
from gpudiag.measures.sampling import gpu_order
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import text_dtype

METHODS = ("declared", "log line", "process", "only GPU", "only active GPU", "memory", "unknown")


class TrialGpus(TrialRow):
    """A trial and where it ran."""

    gpu: Column[str] = column("names of its GPUs joined by commas, missing if unknown")
    n_gpus: Column[int] = column("how many")
    method: Column[str] = column("one of METHODS, best first")
    confidence: Column[str] = column(
        "strong (stated, or there is no other GPU), weak (read off the telemetry: state it with any number that rests "
        "on it) or unknown"
    )


class TrialGpu(TrialRow):
    """A trial on one of its GPUs."""

    gpu: Column[str] = column("GPU")


class OpenGpu(Row):
    """A GPU where a trial of unknown GPU may have run."""

    gpu: Column[str] = column("GPU")


class AttributionProfile(Profile, topic="attribution"):
    """On which GPU each trial ran."""

    trials: Rows = table_of(TrialGpus)
    links: Rows = table_of(TrialGpu)
    open_to: Rows = table_of(OpenGpu)
    n_trials: Fact[int] = fact("trials")
    n_attributed: Fact[int] = fact("trials whose GPU is known")
    n_inferred: Fact[int] = fact("trials whose GPU was read off the telemetry")
    attributed_pct: Fact[float] = fact("share of the trials whose GPU is known")


@memoized
def measure_attribution(run: Run) -> AttributionProfile:
    """The GPU of each trial. Needs trials.

    In this order: what the record of the trial names, a line of a log, its process on a GPU, the only GPU
    there is; then, marked ``weak``, the only GPU with any activity, and the GPU whose memory rose and fell with
    the trial.
    """
    need_columns(run.trials, ("state",), "trials table", GIVE_TRIALS)
    known = gpu_order({*known_gpus(run), *run.info.left_out_gpus})
    found: dict[int, tuple[tuple[str, ...], str]] = {}
    n = len(run.trials)
    lines = gpus_of_events(run)
    keys = zip(run.trials["study"], run.trials["trial"], strict=True) if lines else ()
    ways = (
        ("declared", declared_gpus(run)),
        ("log line", {row: lines[key] for row, key in enumerate(keys) if key in lines}),
        ("process", _by_process(run)),
    )
    for method, gpus in ways:
        found |= {row: (names, method) for row, names in gpus.items() if row not in found}
    open_to = tuple(known)
    if len(known) == 1:
        found |= {row: ((known[0],), "only GPU") for row in range(n) if row not in found}
    elif len(found) < n and run.info.clock.joined:
        active = active_gpus(run)
        open_to = tuple(gpu for gpu in known if gpu in active) or open_to
        guesses = gpus_by_memory(run, [row for row in range(n) if row not in found])
        if len(open_to) == 1 and active:
            found |= {row: (open_to, "only active GPU") for row in range(n) if row not in found}
        found |= {row: ((gpu,), "memory") for row, gpu in guesses.items() if row not in found}
    return _profile(run, found, open_to)


def known_gpus(run: Run) -> list[str]:
    """Every GPU of the telemetry or of its list of GPUs."""
    return gpu_order(set(run.gpu["gpu"].dropna().unique()) | set(run.gpus["gpu"].dropna()))


def _by_process(run: Run) -> dict[int, tuple[str, ...]]:
    """GPUs by row of trials whose process was seen on them while the trial ran."""
    if "pid" not in run.trials or run.processes.empty or not run.info.clock.joined:
        return {}
    seen = run.processes.groupby(["pid", "gpu"])["time"].agg(["min", "max"]).reset_index()
    trials = run.trials[["pid", "start", "end"]].reset_index(drop=True).rename_axis("row").reset_index()
    both = trials[trials["pid"].notna()].merge(seen, on="pid")
    slack = pd.Timedelta(microseconds=SECOND_US)
    met = (both["max"] >= both["start"] - slack) & ~(both["min"] > both["end"] + slack)
    found = both[met].groupby("row")["gpu"].unique()
    return {int(row): tuple(gpu_order(gpus)) for row, gpus in found.items()}


def _profile(run: Run, found: dict[int, tuple[tuple[str, ...], str]], open_to: tuple[str, ...]) -> AttributionProfile:
    n = len(run.trials)
    nothing: tuple[tuple[str, ...], str] = ((), "unknown")
    rows = [found.get(row, nothing) for row in range(n)]
    method = np.array([how for _, how in rows], dtype=object)
    weak = np.isin(method, ["only active GPU", "memory"])
    trials = run.trials[["study", "trial"]].reset_index(drop=True)
    trials["gpu"] = pd.Series([",".join(gpus) or None for gpus, _ in rows], dtype=text_dtype())
    trials["n_gpus"] = [len(gpus) for gpus, _ in rows]
    trials["method"] = pd.Series(method, dtype=text_dtype())
    confidence = np.where(method == "unknown", "unknown", np.where(weak, "weak", "strong"))
    trials["confidence"] = pd.Series(confidence, dtype=text_dtype())
    links = trials[["study", "trial"]].take(np.repeat(np.arange(n), trials["n_gpus"])).reset_index(drop=True)
    links["gpu"] = pd.Series([gpu for gpus, _ in rows for gpu in gpus], dtype=text_dtype())
    attributed = int((method != "unknown").sum())
    candidates = pd.DataFrame({"gpu": pd.Series(open_to, dtype=text_dtype())})
    return AttributionProfile(trials, links, candidates, n, attributed, int(weak.sum()), 100 * attributed / n)
