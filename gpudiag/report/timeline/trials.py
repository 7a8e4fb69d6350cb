"""Trials as bars by worker, with what the box beside the pointer says of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.trial_intervals import trial_names
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.report.format import count, parameter, safe
from gpudiag.run import Run
from gpudiag.schema import OUTCOMES, STOPPED, family

MOST_CHARS = 120
"""Of one text in the box."""
ENDED = {
    "oom": "out of memory",
    "shm": "shared memory full",
    "host_killed": "killed by the host",
    "device_assert": "device-side assert",
    "illegal_access": "illegal memory access",
    "gpu_lost": "the GPU was lost",
    "nccl": "NCCL error",
    "time_limit": "time limit",
    "nan": "not a number (NaN)",
    "other": "another error",
    "unknown": "no error was recorded",
}
"""Why a trial failed, by the kind of its failure."""
BY_HAND = "stopped by hand or by a scheduler"
OPEN = "no end recorded; drawn to where it most likely ended"


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts: each text once, and its place by row."""

    name: str
    texts: list[str]
    at: np.ndarray

    @classmethod
    def of(cls, name: str, values: Iterable[str]) -> Texts:
        """From one text a row; "" is nothing to say."""
        at, texts = pd.factorize(np.array(list(values), dtype=object))
        return cls(name, [str(text) for text in texts], at.astype(np.uint16 if len(texts) < 2**16 else np.uint32))


@dataclass(frozen=True, eq=False)
class Bars:
    """Trials by worker and start. ``workers``: the name of each row."""

    start_us: np.ndarray
    end_us: np.ndarray
    worker: np.ndarray
    state: np.ndarray
    open: np.ndarray
    names: list[str]
    columns: tuple[Texts, ...]
    workers: list[str]
    left_out: int = 0


def bars(
    run: Run, parallelism: ParallelismProfile, failures: FailuresProfile | None, most_parameters: int
) -> Bars | None:
    """The trials placed; None where there are none. ``most_parameters`` go along at most."""
    placed = parallelism.placed
    if placed.empty:
        return None
    placed = placed.sort_values(["worker", "start"], kind="stable", ignore_index=True)
    trials = run.trials.assign(_name=trial_names(run.trials))
    trials = placed[["study", "trial"]].merge(trials, on=["study", "trial"], how="left", validate="m:1")
    worker = placed["worker"].to_numpy(int)
    parameters = family(trials.columns, ("params.",))
    values = family(trials.columns, ("value_",)) or [name for name in ("value",) if name in trials]
    columns = [Texts.of(_shown(name), map(text_of, trials[name])) for name in (*values, *parameters[:most_parameters])]
    columns.append(Texts.of("ended", endings(run, placed, trials, failures, OPEN)))
    return Bars(
        start_us=microseconds(placed["start"]),
        end_us=microseconds(placed["end"]),
        worker=worker,
        state=np.array([OUTCOMES.index(state) for state in placed["state"]], np.uint8),
        open=placed["open"].to_numpy(bool).astype(np.uint8),
        names=[safe(name)[:MOST_CHARS] for name in trials["_name"]],
        columns=tuple(column for column in columns if column.texts != [""]),
        workers=_workers(worker, trials),
        left_out=max(len(parameters) - most_parameters, 0),
    )


def _shown(column: str) -> str:
    return safe(column.removeprefix("params."))[:MOST_CHARS]


def _workers(worker: np.ndarray, trials: pd.DataFrame) -> list[str]:
    """The name of each row: that of its trials where they have one and the same, else its number."""
    names = [str(row) for row in range(int(worker.max()) + 1)]
    if "worker" in trials:
        for row, named in trials.groupby(worker)["worker"]:
            if named.nunique(dropna=False) == 1 and named.notna().all():
                names[int(str(row))] = safe(named.iloc[0])[:MOST_CHARS]
    return names


def is_unknown(cell: object) -> bool:
    """Whether a cell holds no value."""
    return cell is None or cell is pd.NA or cell is pd.NaT or cell != cell


def text_of(value: object) -> str:
    """A parameter or value in few digits: what tells trials apart, not what makes them again."""
    if is_unknown(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating):
        return parameter(float(value))
    return safe(value)[:MOST_CHARS]


def endings(
    run: Run, placed: pd.DataFrame, trials: pd.DataFrame, failures: FailuresProfile | None, no_end: str
) -> Iterable[str]:
    """Why each trial ended, where that is known; ``no_end`` is said of one that began and has no end."""
    keys = list(zip(placed["study"], placed["trial"], strict=True))
    kinds, steps = _kinds(failures), _last_steps(run)
    details = trials["detail"] if "detail" in trials else [None] * len(trials)
    for key, state, pending, detail in zip(keys, placed["state"], placed["open"], details, strict=True):
        if pending:
            yield no_end
        elif state == "PRUNED" and key in steps:
            yield f"pruned after step {count(steps[key])}"
        elif state == STOPPED:
            yield BY_HAND
        elif state == "FAIL":
            said = text_of(detail)
            yield f"{ENDED[kinds.get(key, 'unknown')]}: {said}" if said else ENDED[kinds.get(key, "unknown")]
        else:
            yield ""


def _kinds(failures: FailuresProfile | None) -> dict[tuple[str, int], str]:
    if failures is None:
        return {}
    found = failures.failures
    return dict(zip(zip(found["study"], found["trial"], strict=True), found["kind"], strict=True))


def _last_steps(run: Run) -> dict[tuple[str, int], float]:
    if run.reports.empty:
        return {}
    return run.reports.groupby(["study", "trial"])["step"].max().to_dict()
