"""What must not change a verdict, for every rule: order, labels, units, sampling period, a healthy GPU beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from planted import FAULTS, Fault
from planted.base import log, ticks
from planted.healthy import healthy_run
from plantedruns import RULE, analysis, verdict

from gpudiag.analysis import Analysis
from gpudiag.readers.telemetry import read_telemetry
from gpudiag.rules import RULES
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds
from gpudiag.rules._engine.verdict import Status, Verdict
from gpudiag.run import Run
from gpudiag.schema import GPU, GPUS, TABLES, conform

FAULTY = pytest.mark.parametrize("planted", FAULTS.values(), ids=lambda planted: planted.rule)
FOUND, OK, NOT_ASSESSED = Status.FOUND, Status.OK, Status.NOT_ASSESSED
HEALTHY_SEEDS = (0, 4)
SMALL_SEED = 4


def judged(run: Run, *ids: str) -> dict[str, Verdict]:
    """Verdicts of these rules, or of all."""
    rules = tuple(RULE[name] for name in ids) or RULES
    return {v.rule: v for v in judge_all(rules, Analysis(run), check_thresholds(rules, {}))}


def planted_run(rule: str) -> Run:
    return analysis(rule).given


@cache
def healthy(seed: int) -> Run:
    return healthy_run(seed)


@cache
def healthy_verdicts(seed: int) -> dict[str, Verdict]:
    return judged(healthy(seed))


def near(a: Any, b: Any) -> bool:
    """Equal, numbers up to rounding; texts up to the order of names in them."""
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-6, abs=1e-9, nan_ok=True)
    if isinstance(a, str) and isinstance(b, str):
        return sorted(a.split(", ")) == sorted(b.split(", "))
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    return bool(a == b)


def same(a: Verdict, b: Verdict) -> None:
    assert (a.status, a.severity) == (b.status, b.severity), (a.summary or a.reason, b.summary or b.reason)
    assert near(a.evidence, b.evidence), (a.evidence, b.evidence)
    assert near(a.lost_gpu_h or 0.0, b.lost_gpu_h or 0.0) and near(a.margin or 0.0, b.margin or 0.0)


def shuffled(run: Run) -> Run:
    return run.map_tables(lambda _, table: table.sample(frac=1, random_state=3, ignore_index=True))


NAMES = {"0": "6", "1": "4", "2": "5", "3": "11"}


def relabelled(run: Run) -> Run:
    """GPUs under other indices, trials under other numbers of another study."""

    def change(name: str, table: pd.DataFrame) -> pd.DataFrame:
        if "gpu" in table and len(table):
            table = table.assign(gpu=table["gpu"].map(lambda gpu: NAMES.get(gpu, gpu)).astype(table["gpu"].dtype))
        if "study" in table:
            table = table.assign(study=table["study"].map(lambda study: f"{study}-again").astype(table["study"].dtype))
        return table.assign(trial=table["trial"] + 1000) if "trial" in table and name != "events" else table

    return run.map_tables(change)


def unlabelled(value: Any) -> Any:
    """Evidence without labels."""
    if isinstance(value, Mapping):
        return {key: unlabelled(part) for key, part in value.items() if not isinstance(part, str | list)}
    return value


@pytest.mark.many
@pytest.mark.slow
@FAULTY
def test_the_order_of_rows_does_not_matter(planted: Fault) -> None:
    run = planted_run(planted.rule)
    same(verdict(planted.rule), judged(shuffled(run), planted.rule)[planted.rule])


@FAULTY
def test_neither_labels_nor_order_matter(planted: Fault) -> None:
    run = planted_run(planted.rule)
    before, after = verdict(planted.rule), judged(shuffled(relabelled(run)), planted.rule)[planted.rule]
    same(replace(before, evidence=unlabelled(before.evidence)), replace(after, evidence=unlabelled(after.evidence)))
    if "gpu" in before.where:
        assert {NAMES.get(gpu, gpu) for gpu in before.where["gpu"].split(", ")} == set(after.where["gpu"].split(", "))


@pytest.mark.slow
@pytest.mark.parametrize("seed", HEALTHY_SEEDS)
def test_order_and_labels_do_not_matter_to_healthy_runs(seed: int) -> None:
    before, after = healthy_verdicts(seed), judged(shuffled(relabelled(healthy(seed))))
    for rule, told in before.items():
        assert (told.status, told.severity) == (after[rule].status, after[rule].severity), rule


def thinned(run: Run, step: int, first: int) -> Run:
    """Every ``step``-th tick of telemetry and host."""

    def change(name: str, table: pd.DataFrame) -> pd.DataFrame:
        if name == "gpu":
            return table[table.groupby("gpu").cumcount() % step == first].reset_index(drop=True)
        return table.iloc[first::step].reset_index(drop=True) if name == "host" else table

    return run.map_tables(change)


@pytest.mark.many
@pytest.mark.slow
@FAULTY
@pytest.mark.parametrize(("step", "first"), [(2, 1), (3, 1)])
def test_another_sampling_period_finds_the_same_or_says_that_it_cannot_tell(
    planted: Fault, step: int, first: int
) -> None:
    if (planted.rule, step) in TOO_BRIEF:
        pytest.skip("what is planted is shorter than the samples are apart")
    after = judged(thinned(planted_run(planted.rule), step, first), planted.rule)[planted.rule]
    assert after.status in (FOUND, NOT_ASSESSED), after.reason


TOO_BRIEF = {("stalls-periodic", 3)}
"""Drops of 10 s at samples each 15 s: two of three are seen."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", HEALTHY_SEEDS)
def test_another_sampling_period_finds_nothing_new_in_healthy_runs(seed: int) -> None:
    before, after = healthy_verdicts(seed), judged(thinned(healthy(seed), 2, 0))
    for rule, told in after.items():
        assert told.status is not FOUND or before[rule].status is FOUND, told.summary


UNITS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "util_pct": ("utilization.gpu [%]", lambda x: f"{x:.6g} %"),
    "mem_used_mib": ("memory.used [MiB]", lambda x: f"{x:.6f} MiB"),
    "mem_total_mib": ("memory.total [MiB]", lambda x: f"{x:.6f} MiB"),
    "power_w": ("power.draw [W]", lambda x: f"{x:.6f} W"),
    "power_limit_w": ("power.limit [W]", lambda x: f"{x:.6f} W"),
    "temp_c": ("temperature.gpu", lambda x: f"{x:.0f}"),
    "sm_clock_mhz": ("clocks.sm [MHz]", lambda x: f"{x:.3f} MHz"),
    "throttle_reasons": ("clocks_event_reasons.active", lambda x: f"0x{int(x):016X}"),
}
"""Columns and cells as nvidia-smi prints them."""
OTHER: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "util_pct": ("gpu_utilization_percent", lambda x: f"{x:.6g}"),
    "mem_used_mib": ("gpu_memory_used_bytes", lambda x: f"{x * 2**20:.0f}"),
    "mem_total_mib": ("gpu_memory_total_gib", lambda x: f"{x / 1024:.9f}"),
    "power_w": ("gpu_power_mw", lambda x: f"{x * 1000:.3f}"),
    "power_limit_w": ("gpu_power_limit_mw", lambda x: f"{x * 1000:.3f}"),
    "temp_c": ("gpu_temperature_c", lambda x: f"{x:.0f}"),
    "sm_clock_mhz": ("gpu_sm_clock_ghz", lambda x: f"{x / 1000:.9f}"),
}
"""The same in a table of one's own, with other units."""


def written(run: Run, style: Mapping[str, tuple[str, Callable[[float], str]]], path: Path) -> Run:
    """The run with its telemetry as read from a file in that style; what the style lacks stays away."""
    columns = [name for name in style if name in run.gpu]
    lines = [", ".join(["timestamp", "index", *(style[name][0] for name in columns)])]
    rows = run.gpu.sort_values("time", kind="stable")
    timestamps = rows["time"].dt.strftime("%Y/%m/%d %H:%M:%S.%f").str[:-3]
    values = [rows[name].to_numpy(float, na_value=math.nan) for name in columns]
    for i, (timestamp, gpu) in enumerate(zip(timestamps, rows["gpu"], strict=True)):
        lines.append(", ".join([timestamp, gpu, *(style[c][1](v[i]) for c, v in zip(columns, values, strict=True))]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return replace(run, gpu=read_telemetry(path, timezone="UTC").gpu)


@pytest.mark.many
@pytest.mark.slow
@FAULTY
def test_units_of_the_log_do_not_matter(planted: Fault, tmp_path: Path) -> None:
    run = planted_run(planted.rule)
    if run.gpu.empty:
        pytest.skip("its fault is planted in a run without telemetry")
    kept = [name for name in run.gpu if name in {"time", "gpu", *OTHER}]
    if set(run.gpu) <= {"time", "gpu", *UNITS}:
        same(verdict(planted.rule), judged(written(run, UNITS, tmp_path / "a.csv"), planted.rule)[planted.rule])
    plain = replace(run, gpu=run.gpu[kept])
    other = written(plain, OTHER, tmp_path / "b.csv")
    before, after = judged(plain, planted.rule)[planted.rule], judged(other, planted.rule)[planted.rule]
    assert (before.status, before.severity) == (after.status, after.severity), (
        before.summary,
        after.summary or after.reason,
    )


def with_a_healthy_gpu(run: Run) -> Run:
    """The run and a GPU 8 that is well fed throughout, at the same instants; trials of unknown GPU may be its work."""
    first = run.gpu["gpu"].iloc[0]
    at = run.gpu.loc[run.gpu["gpu"] == first, "time"].drop_duplicates()
    steady = log(ticks(5.0 * len(at)), "8").assign(time=at.to_numpy()).astype({"time": run.gpu["time"].dtype})
    wave = np.arange(len(at)) % 5
    steady = steady.assign(util_pct=94.0 + wave, power_w=380.0 + wave, temp_c=65.0 + wave % 2)
    board = run.gpus[run.gpus["gpu"] == first].assign(gpu="8")
    return replace(
        run,
        gpu=conform(pd.concat([run.gpu, steady[[c for c in steady if c in run.gpu]]], ignore_index=True), GPU),
        gpus=conform(pd.concat([run.gpus, board], ignore_index=True), GPUS),
    )


@FAULTY
def test_a_healthy_gpu_beside_it_hides_nothing(planted: Fault) -> None:
    run = planted_run(planted.rule)
    if run.gpu.empty:
        pytest.skip("its fault is planted in a run without telemetry")
    after = judged(with_a_healthy_gpu(run), planted.rule)[planted.rule]
    assert after.status is FOUND, after.reason


def without_column(table: str, column: str) -> Callable[[Run], Run]:
    return lambda run: run.map_tables(
        lambda name, frame: frame.drop(columns=column) if name == table and column in frame else frame
    )


def without_rows(table: str, low: float, high: float) -> Callable[[Run], Run]:
    """Without the rows from one share of the length of a table to another; of telemetry, for every GPU alike."""

    def change(name: str, frame: pd.DataFrame) -> pd.DataFrame:
        if name != table or frame.empty:
            return frame
        if "time" in frame:
            first, last = frame["time"].min(), frame["time"].max()
            gone = frame["time"].between(first + low * (last - first), first + high * (last - first))
            return frame[~gone].reset_index(drop=True)
        return frame.drop(index=frame.index[int(low * len(frame)) : int(high * len(frame))]).reset_index(drop=True)

    return lambda run: run.map_tables(change)


COLUMNS: dict[str, Callable[[Run], Run]] = {
    **{f"gpu.{c}": without_column("gpu", c) for c in UNITS},
    **{f"host.{c}": without_column("host", c) for c in ("cpu_max_core_pct", "io_wait_pct")},
    **{f"trials.{c}": without_column("trials", c) for c in ("worker", "gpu", "detail")},
}
ROWS: dict[str, Callable[[Run], Run]] = {
    **{f"no {table}": without_rows(table, 0.0, 1.0) for table in ("gpu", "host", "reports", "events", "trials")},
    "first half of the telemetry": without_rows("gpu", 0.0, 0.5),
    "second half of the telemetry": without_rows("gpu", 0.5, 1.0),
    "middle of the telemetry": without_rows("gpu", 0.3, 0.7),
    "all but a glance": without_rows("gpu", 0.02, 1.0),
    "second half of the host": without_rows("host", 0.5, 1.0),
}


def differs(less: Run, run: Run) -> bool:
    """Whether there was anything to delete."""
    return any(getattr(less, name) is not getattr(run, name) for name in TABLES)


def cleared(before: Mapping[str, Verdict], after: Mapping[str, Verdict], what: str) -> list[str]:
    """Rules that were not assessed and now say that all is well.

    Not those that lacked coverage: without the trials nobody knows how much time telemetry should have covered.
    """
    return [
        f"{what}: {rule} ({before[rule].reason})"
        for rule, told in after.items()
        if before[rule].status is NOT_ASSESSED and told.status is OK
        if not (what.endswith("no trials") and "% is needed" in before[rule].reason)
    ]


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("name", [*COLUMNS, *ROWS])
def test_deleting_data_never_clears_what_was_not_assessed_of_a_healthy_run(name: str) -> None:
    run = healthy(SMALL_SEED)
    less = {**COLUMNS, **ROWS}[name](run)
    wrong = cleared(healthy_verdicts(SMALL_SEED), judged(less), name) if differs(less, run) else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.many
@pytest.mark.slow
@FAULTY
def test_deleting_data_never_clears(planted: Fault) -> None:
    """A column less may hide a fault, but then nobody can tell; and what cannot be told with less data stays so."""
    rule, run = planted.rule, planted_run(planted.rule)
    after = {
        name: judged(less, rule) if differs(less := delete(run), run) else {rule: verdict(rule)}
        for name, delete in {**COLUMNS, **ROWS}.items()
    }
    clear = {name for name in COLUMNS if after[name][rule].status is OK}
    assert clear <= ALLOWED.get(rule, set()), "the fault was there and a column less makes it healthy"
    short = [name for name, verdicts in after.items() if verdicts[rule].status is NOT_ASSESSED][:2]
    wrong = []
    for name in short:
        poor = {**COLUMNS, **ROWS}[name](run)
        for other, again in ROWS.items():
            if other != name and differs(less := again(poor), poor):
                wrong += cleared(after[name], judged(less, rule), f"{name}, then {other}")
    assert not wrong, "\n".join(wrong)


ALLOWED: Mapping[str, set[str]] = {
    "placeholder-columns": {"gpu.power_w"},  # the column is the fault
    "identity-mixed": {"gpu.mem_total_mib"},
}
"""By rule, the columns without which it has nothing to find, and why that is no matter of data."""
