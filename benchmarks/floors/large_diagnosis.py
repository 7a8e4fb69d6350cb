"""What any diagnosis of a long log with many trials cannot go below: reading, and one look at each sample and trial.

    python benchmarks/floors/large_diagnosis.py FOLDER      with gpu.csv, and trials.csv that names GPUs

gpudiag reads and finds the clock. Then, by NumPy alone: the order of the samples is checked, trials are placed on
workers, each sample gets the time that it stands for and its trial, trials get their time, busy time, energy and most
memory, GPUs the quantiles of three columns and the autocorrelation of their utilization by FFT.

Left out is what tells one case from another: gaps, duplicates and unknown values, trials that share a GPU, start-ups
and tails, stalls, shifts, leaks, throttling, failures, what is drawn, tables of results and all verdicts.
"""

from __future__ import annotations

import heapq
import sys
import time

import numpy as np
import pandas as pd

import gpudiag
from gpudiag.fourier import fast_length

SHARES = (0.05, 0.5, 0.95)


def workers(start: np.ndarray, end: np.ndarray) -> int:
    """How many it takes where each trial, in order of starts, takes the one that is free first."""
    running: list[int] = []
    for begins, ends in zip(start.tolist(), end.tolist(), strict=True):
        heapq.heapreplace(running, ends) if running and running[0] <= begins else heapq.heappush(running, ends)
    return len(running)


def quantiles(values: np.ndarray) -> np.ndarray:
    places = [int(share * (len(values) - 1)) for share in SHARES]
    return np.partition(values, places)[places]


def autocorrelation(values: np.ndarray) -> np.ndarray:
    """Of lags up to a third of the time."""
    size = fast_length(len(values) + len(values) // 3)
    return np.fft.irfft(np.abs(np.fft.rfft(values - values.mean(), size)) ** 2, size)[: len(values) // 3]


def trials_of(when: np.ndarray, columns: list[np.ndarray], start: np.ndarray, end: np.ndarray) -> list[np.ndarray]:
    """Seconds, busy seconds, joules and most memory of each trial of a GPU, which runs one after the other."""
    util, memory, power = columns
    middle = (when[1:] + when[:-1]) / 2
    weight = np.diff(middle, prepend=when[0], append=when[-1]) / 1e6
    trial = np.searchsorted(start, when, "right") - 1
    trial[(trial < 0) | (when >= end[trial])] = len(start)
    sums = [np.bincount(trial, weight * each, len(start) + 1)[:-1] for each in (1.0, util / 100, power)]
    low, high = np.searchsorted(when, start), np.searchsorted(when, end)
    most = np.maximum.reduceat(np.append(memory, 0.0), np.column_stack([low, high]).ravel())[::2]
    return [*sums, np.where(high > low, most, np.nan)]


run = gpudiag.load_run(sys.argv[1], timezone="Europe/Berlin")
read_s = time.process_time()
code, names = pd.factorize(run.gpu["gpu"])
when = run.gpu["time"].to_numpy("datetime64[us]").view(np.int64)
assert ((code[1:] > code[:-1]) | ((code[1:] == code[:-1]) & (when[1:] > when[:-1]))).all()
edges = np.searchsorted(code, np.arange(len(names) + 1))
trials = run.trials.sort_values("start")
start, end = (trials[name].to_numpy("datetime64[us]").view(np.int64) for name in ("start", "end"))
gpu_of = trials.get("user_attrs.gpu", pd.Series(dtype=str)).astype(str).to_numpy()
found = [workers(start, end)]
for gpu, low, high in zip(names, edges[:-1], edges[1:], strict=True):
    columns = [run.gpu[name].to_numpy()[low:high] for name in ("util_pct", "mem_used_mib", "power_w")]
    mine = np.flatnonzero(gpu_of == gpu)
    found += [quantiles(values) for values in columns]
    found.append(autocorrelation(columns[0]))
    found += trials_of(when[low:high], columns, start[mine], end[mine]) if len(mine) else []
print(f"{len(when):,} samples, {len(trials):,} trials on {found[0]} workers: {len(found)} results")
print(f"start and reading {read_s:.2f} s of CPU, the rest {time.process_time() - read_s:.2f} s")
