"""Which combinations of parameters take how much memory, and a constraint that refuses the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.forecast.memory.peaks import CONTEXT_MIB, Peaks
from gpudiag.measures._trials.constraints import infeasible
from gpudiag.run import Run

MAX_COMBINATIONS = 40
MAX_VALUES = 6
N_BINS = 4


@dataclass(frozen=True)
class Constraint:
    """What a limit on the memory of one trial would have done with k at once.

    ``limit_mib``: an equal share of what is usable. ``n_refused`` of ``n`` trials with a known peak, and in percent;
    ``n_oom`` of the trials that ran out of memory, ``n_oom_refused`` of them; ``best_refused``: whether the best trial
    was among the refused (None without a best). ``code``: Python for the objective.
    """

    k: int
    limit_mib: float
    n: int
    n_refused: int
    n_oom: int
    n_oom_refused: int
    best_refused: bool | None
    code: str

    @property
    def leaves_some(self) -> bool:
        """Whether it refuses trials and not all: after one that refuses all there is no search."""
        return 0 < self.n_refused < self.n


def share_code(share_mib: int) -> str:
    """Python that makes a trial fail alone at its share of the GPU, where no parameter tells its memory beforehand.

    The allocator is limited; the CUDA context that comes on top of it is taken off, but for half of a small share.
    """
    limit = max(share_mib - int(CONTEXT_MIB[2]), share_mib // 2)
    return (
        f"LIMIT_MIB = {limit}  # {share_mib} less a CUDA context\n"
        "total = torch.cuda.mem_get_info()[1]\n"
        "torch.cuda.set_per_process_memory_fraction(LIMIT_MIB * 2**20 / total)  # a trial beyond it fails alone"
    )


def combinations(run: Run, peaks: Peaks) -> pd.DataFrame:
    """One row a combination of the parameters that memory depends on, largest first.

    Columns: the parameters by name (numbers with more than 6 values as ranges), n_trials, n_oom, share_pct (of all
    trials), peak_mib (median), low_mib, high_mib (least low and greatest high end of its trials' intervals), max_mib
    (the largest trial). Empty where memory depends on no parameter.
    """
    names = list(peaks.parameters)
    columns = [*names, "n_trials", "n_oom", "share_pct", "peak_mib", "low_mib", "high_mib", "max_mib"]
    known = peaks.trials[peaks.known]
    if not names or known.empty:
        return pd.DataFrame(columns=columns)
    values = parameter_values(run, known, names)
    while len(names) > 1 and len(values[names].drop_duplicates()) > MAX_COMBINATIONS:
        names = names[:-1]  # the most telling come first
    frame = pd.concat([values[names], known[["peak_mib", "low_mib", "high_mib"]]], axis=1)
    frame["oom"] = (known["kind"] == "oom").to_numpy()
    grouped = frame.groupby(names, sort=False, dropna=False, observed=True)
    out = grouped.agg(
        n_trials=("peak_mib", "size"), n_oom=("oom", "sum"), peak_mib=("peak_mib", "median"),
        low_mib=("low_mib", "min"), high_mib=("high_mib", "max"), max_mib=("peak_mib", "max"),
    ).reset_index()  # fmt: skip
    out["share_pct"] = 100 * out["n_trials"] / len(known)
    out = out.sort_values(["peak_mib", "n_trials"], ascending=False, kind="stable", ignore_index=True)
    return out[[name for name in columns if name in out]]


def parameter_values(run: Run, trials: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The named parameters of these trials, on their index; numbers with many values as text of a range."""
    rows = run.trials.set_index(["study", "trial"])
    picked = rows.loc[pd.MultiIndex.from_frame(trials[["study", "trial"]])]
    out = {}
    for name in names:
        values = picked[f"params.{name}"].set_axis(trials.index)
        number = pd.to_numeric(values, errors="coerce")
        if number.notna().all() and number.nunique() > MAX_VALUES:
            values = (
                pd.qcut(number, N_BINS, duplicates="drop")
                .map(lambda part: f"{part.left:.4g} to {part.right:.4g}")
                .astype(str)
            )
        out[name] = values
    return pd.DataFrame(out, index=trials.index)


def constraint(
    run: Run, peaks: Peaks, table: pd.DataFrame, usable_mib: float, baseline_mib: float, k: int
) -> Constraint:
    """The constraint that lets any k trials fit together: none takes more than an equal share of the room."""
    limit = math.floor((usable_mib - baseline_mib) / k)
    known = peaks.trials[peaks.known]
    refused = known["peak_mib"] > limit
    oom = known["kind"] == "oom"
    best = _best(run)
    hit = pd.Series(pd.MultiIndex.from_frame(known[["study", "trial"]]).isin(list(best)), known.index)
    return Constraint(
        k=k,
        limit_mib=float(limit),
        n=len(known),
        n_refused=int(refused.sum()),
        n_oom=int(oom.sum()),
        n_oom_refused=int((oom & refused).sum()),
        best_refused=bool((hit & refused).any()) if hit.any() else None,
        code=_code(run, peaks, table, limit, k),
    )


def _best(run: Run) -> set[tuple[str, int]]:
    """The best COMPLETE trial of each study whose direction is known, of those that broke no constraint."""
    out: set[tuple[str, int]] = set()
    if "value" not in run.trials:
        return out
    done = run.trials[(run.trials["state"] == "COMPLETE") & run.trials["value"].notna() & ~infeasible(run.trials)]
    directions = run.studies.drop_duplicates("study").set_index("study")["directions"].to_dict()
    for study, part in done.groupby("study"):
        way = directions.get(study, "")
        if way in ("MINIMIZE", "MAXIMIZE"):
            row = part["value"].idxmin() if way == "MINIMIZE" else part["value"].idxmax()
            out.add((str(study), int(part.at[row, "trial"])))
    return out


def _code(run: Run, peaks: Peaks, table: pd.DataFrame, limit: int, k: int) -> str:
    """Lines for the objective: a table of combinations, or where parameters are continuous a formula."""
    raise_line = "    raise optuna.TrialPruned()  # " + (
        f"beside {k - 1} as large it would not fit" if k > 1 else "it would not fit"
    )
    if not peaks.parameters:
        return share_code(limit)
    names = [name for name in peaks.parameters if name in table.columns]
    exact = all(run.trials[f"params.{name}"].nunique() <= MAX_VALUES or not _numeric(run, name) for name in names)
    if exact and len(names) == len(peaks.parameters):
        known = ",\n".join(
            f"    {tuple(_plain(row[name]) for name in names)!r}: {row['peak_mib']:.0f}"
            for row in table.to_dict("records")
        )
        return (
            f"PEAK_MIB = {{\n{known},\n}}\nLIMIT_MIB = {limit}{_for(k)}\n"
            f"key = tuple(trial.params.get(name) for name in {tuple(names)!r})\n"
            f"if PEAK_MIB.get(key, 0) > LIMIT_MIB:  # after all suggest_ calls\n{raise_line}"
        )
    return _formula(run, peaks, f"{limit}{_for(k)}", raise_line)


def _for(k: int) -> str:
    return f"  # an equal share for {k} trials at once" if k > 1 else ""


def _formula(run: Run, peaks: Peaks, limit: str, raise_line: str) -> str:
    """Memory as a linear function of the numeric parameters by value of the others, fitted to the peaks."""
    known = peaks.trials[peaks.known]
    rows = run.trials.set_index(["study", "trial"]).loc[pd.MultiIndex.from_frame(known[["study", "trial"]])]
    numbers = [name for name in peaks.parameters if _numeric(run, name)]
    words = [name for name in peaks.parameters if name not in numbers]
    y = known["peak_mib"].to_numpy()
    x = np.column_stack([np.ones(len(y)), *(rows[f"params.{name}"].astype(float).fillna(0.0) for name in numbers)])
    values = rows[[f"params.{name}" for name in words]].map(lambda value: str(_plain(value)))
    groups = values.agg(",".join, axis=1) if words else pd.Series("", rows.index)
    lines = []
    for group in pd.unique(groups):
        here = (groups == group).to_numpy()
        fitted = np.linalg.lstsq(x[here], y[here], rcond=None)[0]
        lines.append(f"    {group!r}: ({', '.join(f'{value:.6g}' for value in fitted)}),")
    key = " + ',' + ".join(f"str(trial.params.get({name!r}))" for name in words) or "''"
    terms = " + ".join(f"c[{i + 1}] * trial.params.get({name!r}, 0)" for i, name in enumerate(numbers))
    return (
        "PEAK_MIB = {  # constant, then MiB per unit of " + ", ".join(numbers) + "\n" + "\n".join(lines) + "\n}\n"
        f"LIMIT_MIB = {limit}\nc = PEAK_MIB.get({key}, {(0,) * (1 + len(numbers))})\n"
        f"if c[0] + {terms} > LIMIT_MIB:  # after all suggest_ calls\n{raise_line}"
    )


def _numeric(run: Run, name: str) -> bool:
    values = run.trials[f"params.{name}"]
    return bool(values.dtype != bool and pd.to_numeric(values, errors="coerce").notna().sum() == values.notna().sum())


def _plain(value: object) -> object:
    """A Python value whose repr is a literal; what a trial lacks is None, as ``params.get`` has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value
