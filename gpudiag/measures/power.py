"""Power and temperature, with readings that the board cannot produce set aside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards, most_plausible_w
from gpudiag.measures._gpu.clocks import POWER_CAP
from gpudiag.measures._gpu.energy import JOULES_PER_KWH, counted_curves
from gpudiag.measures._gpu.gpu_rows import of_its_gpu, slices
from gpudiag.measures._time.cells import cells, cells_of, cells_where, sampled_gpus
from gpudiag.measures._time.coverage import coverage_pct, covered_pct, least_pct
from gpudiag.measures._time.expected import expected_window
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.weighted import weighted_mean
from gpudiag.measures.base import RECORD_LONGER, Profile, need_gpu
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import has_values, text_dtype

SUSTAINED_LIMIT = 1.10
LOAD_BIN_PCT = 5.0
LOAD_BINS = 20


class GpuPower(Row):
    """A GPU. Readings of 0 W mean an absent sensor and count as unknown."""

    mean_w: Column[float] = column("mean of plausible readings", label="mean of the plausible ones")
    max_w: Column[float] = column("highest of plausible readings")
    mean_all_w: Column[float] = column("mean of all readings", label="mean of all readings")
    max_all_w: Column[float] = column("highest of all readings", label="highest reading")
    n_rejected: Column[int] = column("implausible readings", label="readings set aside")
    rejected_pct: Column[float] = column("their share", label="part set aside")
    energy_kwh: Column[float] = column(
        "of the observed time: the board's own counter from its first reading to its last, else trapezoids within gaps"
    )
    over_limit_pct: Column[float] = column(
        "share of observed time above 1.10 x limit among plausible readings of an averaging sensor, else NaN",
        label="time over the limit",
    )
    longest_rejected_s: Column[float] = column("longest stretch of them", label="longest at a stretch")
    rejected_capped_pct: Column[float] = column(
        "share of rejected readings with the software power cap active, NaN unknown",
        label="of these while power was capped",
    )
    coverage_pct: Column[float] = column("observed part of the run")
    mean_temp_c: Column[float] = column("mean temperature")
    max_temp_c: Column[float] = column("highest temperature", label="highest temperature")
    energy_source: Column[str] = column("'counter', 'power', or 'both': power where the counter tells nothing")
    limit_w: Column[float] = column("power limit", label="limit of the board")
    limit_source: Column[str] = column("'log', 'run.toml', 'data sheet' or ''")
    board: Column[str] = column("matched data-sheet name")
    laptop: Column[bool] = column("it is a board for laptops")
    averaged_sensor: Column[bool] = column("True for Ampere except GA100 and newer, NaN unknown")
    board_note: Column[str] = column("what was assumed to match the board")
    plausible_w: Column[float] = column("greatest plausible reading, NaN without a limit", label="highest plausible")


class RejectedPower(Row):
    """An implausible reading."""

    gpu: Column[str] = column("GPU")
    time: Column[pd.Timestamp] = column("instant")
    power_w: Column[float] = column("the reading")
    limit_w: Column[float] = column("power limit then")


class PowerLoad(Row):
    """A bin of utilization and of power, both in steps of 5 % and given by their middle; plausible readings only."""

    gpu: Column[str] = column("GPU")
    util_pct: Column[float] = column("utilization")
    load_pct: Column[float] = column("power as a share of the limit, of the greatest reading where none is known")
    observed_s: Column[float] = column("time at both")


class PowerProfile(Profile, topic="power"):
    """What power was drawn, and which readings no board of the kind can produce."""

    per_gpu: Rows = table_of(GpuPower)
    rejected: Rows = table_of(RejectedPower)
    load: Rows = table_of(PowerLoad)
    energy_kwh: Fact[float] = fact("energy of all GPUs, where observed", label="energy of the observed time")
    n_rejected: Fact[int] = fact("implausible readings of all GPUs")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


def power_cells(run: Run, *columns: str) -> pd.DataFrame:
    """:func:`cells` of the readings of power above 0 W, with ``columns``: 0 W is a sensor without a value."""
    if "power_w" not in run.gpu:
        return cells_of(run.gpu.iloc[:0].assign(power_w=math.nan), "power_w", *columns)
    return cells_where(run, (run.gpu["power_w"] > 0).to_numpy(), "power_w", *columns)


@memoized
def measure_power(run: Run) -> PowerProfile:
    """Power, energy and temperature per GPU. Needs gpu.power_w, or a counter of energy."""
    counted = counted_curves(run)
    if not counted:
        need_gpu(run, "power_w")
    optional = [name for name in ("throttle_reasons", "util_pct") if name in run.gpu]
    samples = power_cells(run, *optional)
    if not counted and not samples["weight_s"].sum() > 0:
        raise NotMeasurable("No GPU has two or more readings of its power above 0 W.", RECORD_LONGER)
    boards = gpu_boards(run)
    boards["plausible_w"] = most_plausible_w(boards)
    window = expected_window(run, samples if len(samples) else cells(run, "energy_j"))
    coverage = {gpu: covered_pct(run, gpu, curve.start_us, curve.end_us, window) for gpu, curve in counted.items()}
    coverage |= coverage_pct(run, samples, window)
    of_board, arrays = boards.to_dict("index"), {name: samples[name].to_numpy() for name in ARRAYS}
    arrays["time_us"] = microseconds(samples["time"])
    rows: dict[str, dict[str, object]] = {gpu: dict.fromkeys(OF_READINGS, math.nan) for gpu in counted}
    bad = np.zeros(len(samples), bool)
    for gpu, own in slices(samples):
        np.greater(arrays["power_w"][own], of_board[gpu]["plausible_w"], out=bad[own])
        columns = {name: column[own] for name, column in arrays.items()} | {"rejected": bad[own]}
        rows[gpu] = _one_gpu(columns, samples.iloc[own], of_board[gpu])
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").reindex(sampled_gpus(run)).rename_axis("gpu")
    per_gpu["coverage_pct"] = pd.Series(coverage)
    per_gpu["n_rejected"] = per_gpu["n_rejected"].fillna(0).astype(int)
    per_gpu = per_gpu.join(_temperature(run)).assign(energy_source="power")
    for gpu, curve in counted.items():
        per_gpu.loc[gpu, ["energy_kwh", "energy_source"]] = [curve.total_kwh, curve.source]
    described = boards[["limit_w", "limit_source", "board", "laptop", "averaged_sensor", "note", "plausible_w"]]
    per_gpu = per_gpu.join(described.rename(columns={"note": "board_note"}))
    rejected = samples.loc[bad, ["gpu", "time", "power_w"]].reset_index(drop=True)
    rejected["limit_w"] = of_its_gpu(rejected, boards["limit_w"])
    return PowerProfile(
        per_gpu=per_gpu,
        rejected=rejected,
        load=_load(samples[~bad] if bad.any() else samples, boards["limit_w"]),
        energy_kwh=float(per_gpu["energy_kwh"].sum()),
        n_rejected=len(rejected),
        coverage_pct=least_pct(coverage.values()),
    )


def _load(samples: pd.DataFrame, limit_w: pd.Series) -> pd.DataFrame:
    """Time by utilization and share of the power limit of samples that are plausible; empty where utilization was not
    recorded.
    """
    parts = []
    samples = samples if "util_pct" in samples else samples.iloc[:0]
    names = ("util_pct", "power_w", "weight_s")
    columns = [samples[name].to_numpy(float) for name in names] if len(samples) else []
    limits = limit_w.to_dict()
    for gpu, own in slices(samples):
        util, power, weight = (column[own] for column in columns)
        known = (util >= 0) & (util <= 100)
        full = limits[gpu] if limits[gpu] > 0 else power.max()
        if not known.all():
            util, power, weight = util[known], power[known], weight[known]
        # The last bin of utilization takes 100 % in; power may go beyond its limit. No fifth is rounded up to a whole.
        column = np.minimum((util / LOAD_BIN_PCT).astype(int), LOAD_BINS - 1)
        row = (100 * power / full / LOAD_BIN_PCT).astype(int)
        seconds = np.bincount(row * LOAD_BINS + column, weight)
        at = np.flatnonzero(seconds)
        parts.append((np.full(len(at), gpu, dtype=object), at, seconds[at]))
    if not parts:
        return pd.DataFrame(columns=["gpu", "util_pct", "load_pct", "observed_s"])
    gpus, bins, seconds = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return pd.DataFrame(
        {
            "gpu": pd.Series(gpus, dtype=text_dtype()),
            "util_pct": (bins % LOAD_BINS + 0.5) * LOAD_BIN_PCT,
            "load_pct": (bins // LOAD_BINS + 0.5) * LOAD_BIN_PCT,
            "observed_s": seconds,
        }
    )


OF_READINGS = (
    "mean_w", "max_w", "mean_all_w", "max_all_w", "n_rejected", "rejected_pct", "energy_kwh", "over_limit_pct",
    "longest_rejected_s", "rejected_capped_pct",
)  # fmt: skip
"""What :func:`_one_gpu` tells of readings of power, in its order."""
ARRAYS = ("power_w", "weight_s", "start_us", "end_us")


def _one_gpu(own: dict[str, np.ndarray], part: pd.DataFrame, board: Mapping[Any, Any]) -> dict[str, object]:
    """Figures of one GPU of its columns as arrays, which are the same as those of its part of the samples."""
    power, weight, bad = own["power_w"], own["weight_s"], own["rejected"]
    kept = own
    if bad.any():
        good = cells_of(part.loc[~bad, ["gpu", "time", "power_w"]], "power_w")
        kept = {name: good[name].to_numpy() for name in ARRAYS if name in good} | {
            "time_us": microseconds(good["time"])
        }
    kept_power, kept_weight = kept["power_w"], kept["weight_s"]
    over = kept_power > SUSTAINED_LIMIT * board["limit_w"]
    judged = board["averaged_sensor"] == True and board["limit_w"] > 0  # noqa: E712 - NaN is unknown
    told = (
        weighted_mean(kept_power, kept_weight),
        float(kept_power.max()) if len(kept_power) else math.nan,
        weighted_mean(power, weight),
        float(power.max()),
        int(bad.sum()),
        100 * float(bad.mean()),
        _energy_kwh(kept),
        100 * weighted_mean(over, kept_weight) if judged else math.nan,
        _longest_s(bad, weight),
        _capped_pct(part[bad]) if bad.any() else math.nan,
    )
    return dict(zip(OF_READINGS, told, strict=True))


def _energy_kwh(samples: Mapping[str, np.ndarray]) -> float:
    """Trapezoids between neighbouring readings, none across a gap."""
    power = samples["power_w"]
    joined = samples["start_us"][1:] == samples["end_us"][:-1]
    step_s = np.diff(samples["time_us"]) / SECOND_US
    return float(((power[1:] + power[:-1]) / 2 * step_s)[joined].sum() / JOULES_PER_KWH)


def _longest_s(bad: np.ndarray, weight: np.ndarray) -> float:
    """Length of the longest unbroken series of rejected readings."""
    if not bad.any():
        return 0.0
    series = np.cumsum(~bad)[bad]
    return float(np.bincount(series, weights=weight[bad]).max())


def _capped_pct(rejected: pd.DataFrame) -> float:
    if not has_values(rejected, "throttle_reasons"):
        return math.nan
    mask = rejected["throttle_reasons"].dropna().astype("int64")
    return 100 * float(((mask & POWER_CAP) > 0).mean())


def _temperature(run: Run) -> pd.DataFrame:
    """mean_temp_c and max_temp_c per GPU; readings of 0 °C or less, or above 110 °C, are dropped (METHODS 8)."""
    names = ["mean_temp_c", "max_temp_c"]
    if "temp_c" not in run.gpu:
        return pd.DataFrame(columns=names, dtype=float)
    good = ((run.gpu["temp_c"] > 0) & (run.gpu["temp_c"] <= 110)).to_numpy()
    known = cells_where(run, good, "temp_c")
    temp, weight = known["temp_c"].to_numpy(float), known["weight_s"].to_numpy()
    rows = {gpu: (weighted_mean(temp[own], weight[own]), temp[own].max()) for gpu, own in slices(known)}
    return pd.DataFrame.from_dict(rows, orient="index", columns=names)
