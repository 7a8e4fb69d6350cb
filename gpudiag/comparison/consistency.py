"""How much work an item is in one run against the other, and statements that cannot all be true."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from gpudiag.comparison.differences import boards, logged_params, requested_params
from gpudiag.comparison.intervals import Ratio
from gpudiag.comparison.match import Match
from gpudiag.comparison.named_work import REPEATS, SIZES
from gpudiag.comparison.quantity import SAME_WITHIN
from gpudiag.comparison.shared_gpus import shared_gpus
from gpudiag.comparison.side import Side
from gpudiag.comparison.steps import steps_per_item
from gpudiag.comparison.throughput import time_per_item_s
from gpudiag.plain_data import Scalar
from gpudiag.statement import NOTHING, Statement, joined

IMPOSSIBLE_SHARE = 0.5
"""Time below this part of the work ratio does not fit (METHODS 7, "impossible" rule)."""
SAME_WORK = 0.2
"""Part by which samples per item may differ and an item is still the same amount of work."""
SPANS = (
    "The {n_shared} shared items span {span_s} in {outer} and {inner_s} in {inner}: taken at face value "
    "{naive:as gain}{work}. That is not impossible, it is not comparable: {n_between} other items ended within that "
    "span ({failed})."
)
WORK = (
    "By {source} an item is {amount} times the work. Wall time over n is {a_s:as precise} and {b_s:as precise} an "
    "item, {ratio:as ratio} times the time"
)
TOO_FAST = "{text}: less than half of what the work would take. Before it is called impossible: {why}."
NOT_THE_JOB = (
    "{gpu} averaged {mean_pct:exact} over the {span_s} of telemetry, but the job of {side} ran for {job_s} of them "
    "({job_pct:exact}): to come from the job it would have needed {need_pct} utilization. Most of that activity "
    "belongs to something else."
)
_BUSY = (
    "An item kept GPUs busy for {a_s:as precise} and for {b_s:as precise} ({more:=×}). At constant work, mean "
    "utilization of {before_pct:exact} would have become {expected_pct:exact}, not {after_pct:exact}: the GPU did "
)
MORE_BUSY = _BUSY + "more work for an item, so higher utilization is not the same work done sooner."
LESS_BUSY = _BUSY + "less work for an item."
RATES = (
    "The training log states {rate} times the samples a second ({a} and {b}), yet an item takes {time} times the time, "
    "where the same data would take {expected} times"
)
OTHER_DATA = "{text}: an item is {samples} times the data, or one of the figures is wrong."
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:batch|batches|it|iter|step|steps)(?:es)?/s")


@dataclass(frozen=True)
class WorkRatio:
    """Work of an item, experiment over baseline: at least ``low``, at most ``high``; ``source`` says from what."""

    low: float
    high: float
    source: Statement


@dataclass(frozen=True)
class Consistency:
    """A statement and whether the numbers allow it: ``status`` is consistent, inconsistent or unknown."""

    claim: str
    status: str
    text: Statement
    values: dict[str, float] = field(default_factory=dict)


def work_ratio(baseline: Side, experiment: Side) -> WorkRatio | None:
    """From steps reported, else from parameters that count repetitions (and sizes) as logged, else as requested."""
    a, b = steps_per_item(baseline), steps_per_item(experiment)
    if a and b and a > 0:
        return WorkRatio(b / a, b / a, Statement("steps of a COMPLETE trial, {a} and {b}", a=a, b=b))
    a_params, b_params = (_numbers(side) for side in (baseline, experiment))
    repeats = [name for name in REPEATS if name in a_params and name in b_params]
    sizes = [name for name in SIZES if name in a_params and name in b_params]
    if not repeats and not sizes:
        return None
    low = math.prod(b_params[name] / a_params[name] for name in repeats)
    size = math.prod(b_params[name] / a_params[name] for name in sizes)
    held = (
        Statement("{name} {a} to {b}", name=name, a=a_params[name], b=b_params[name]) for name in (*repeats, *sizes)
    )
    return WorkRatio(min(low, low * size), max(low, low * size), joined(*held, by=", "))


def samples_per_s(side: Side) -> float | None:
    """Batch size times the batches a second that a training log states; None where one is not known."""
    batch = _numbers(side).get("batch_size", side.run.info.dataloader.batch_size)
    rate = _batches_per_s(side)
    return float(batch) * rate if batch and rate else None


def busy_s_per_item(side: Side) -> float | None:
    """Seconds that GPUs were busy for one item that did not fail, from utilization over the job; None unknown."""
    ledger = side.get("ledger")
    if ledger is None or not ledger.has_trials or not len(side.results):
        return None
    busy = float((ledger.per_gpu["mean_util_pct"] / 100 * ledger.per_gpu["window_s"]).sum())
    return busy / len(side.results) if busy > 0 else None


def consistency(baseline: Side, experiment: Side, matched: Match, time: Ratio, failed: list[str]) -> list[Consistency]:
    """Statements about the pair; ``time`` is time per item, ``failed`` the failed checks, the most telling first."""
    work = work_ratio(baseline, experiment)
    parts = [
        _span_claim(matched, experiment, baseline, work, failed),
        _time_against_work(time, work, failed, time_per_item_s(baseline), time_per_item_s(experiment)),
        *(_telemetry_against_job(side) for side in (baseline, experiment)),
        _busy_against_time(baseline, experiment),
        _rate_against_time(baseline, experiment),
    ]
    return [part for part in parts if part is not None]


def _span_claim(
    matched: Match, experiment: Side, baseline: Side, work: WorkRatio | None, failed: list[str]
) -> Consistency | None:
    """What a comparison of spans would say, where one run holds the other's items among others."""
    part = matched.subset
    if part is None or not part.n_between or not part.span_s > 0:
        return None
    inner = experiment if part.inner == experiment.name else baseline
    naive = part.span_s / inner.wall_s if inner is experiment else inner.wall_s / part.span_s
    more = NOTHING
    if work is not None and work.low > 1 and naive > 1:
        more = Statement(" with at least {times} times the work", times=work.low)
    text = Statement(
        SPANS,
        n_shared=part.n_shared,
        span_s=part.span_s,
        outer=part.outer,
        inner_s=inner.wall_s,
        inner=part.inner,
        naive=naive,
        work=more,
        n_between=part.n_between,
        failed="; ".join(failed),
    )
    return Consistency("span of the shared items", "inconsistent", text, {"naive_speedup": naive})


def _time_against_work(
    time: Ratio, work: WorkRatio | None, failed: list[str], time_a: float, time_b: float
) -> Consistency | None:
    if work is None or not time.ratio > 0 or abs(math.log(work.low * work.high)) < 2 * math.log(1 + SAME_WITHIN):
        return None  # the same work says nothing that the ratio does not say
    upper = time.high if not math.isnan(time.high) else time.ratio
    amount = Statement("{low}" if work.high < 1.05 * work.low else "{low} to {high}", low=work.low, high=work.high)
    text = Statement(WORK, source=work.source, amount=amount, a_s=time_a, b_s=time_b, ratio=time.ratio)
    values = {"work_low": work.low, "work_high": work.high, "time_ratio": time.ratio}
    if upper < IMPOSSIBLE_SHARE * work.low:
        why = "; ".join(failed) or "no check failed, so look for a change of code, data or hardware that is not logged"
        return Consistency(
            "time against work",
            "inconsistent",
            Statement(TOO_FAST, text=text, why=why),
            values,
        )
    return Consistency("time against work", "consistent", Statement("{text}: plausible.", text=text), values)


def _telemetry_against_job(side: Side) -> Consistency | None:
    """A mean over a log that is longer than the job cannot belong to the job if it would need over 100 %."""
    needed = needed_util_pct(side)
    if needed is None or needed[1] <= 100:
        return None
    gpu, need, mean, span = needed
    job = side.wall_s
    return Consistency(
        f"telemetry of {side.name}",
        "inconsistent",
        Statement(
            NOT_THE_JOB,
            gpu=gpu,
            mean_pct=mean,
            span_s=span,
            side=side.name,
            job_s=job,
            job_pct=100 * job / span,
            need_pct=need,
        ),
        {"needed_util_pct": need, "mean_util_pct": mean},
    )


def needed_util_pct(side: Side) -> tuple[str, float, float, float] | None:
    """GPU, utilization that the job alone would have needed for its log's mean, that mean, and the log's span in s."""
    return side.memo.once("needed utilization", lambda: _needed_util_pct(side))


def _needed_util_pct(side: Side) -> tuple[str, float, float, float] | None:
    use, sampling = side.get("utilization"), side.get("sampling")
    if use is None or sampling is None or side.window is None or not side.wall_s > 0:
        return None
    timestamps = (sampling.per_gpu["end"] - sampling.per_gpu["start"]).dt.total_seconds()
    need = use.per_gpu["mean_pct"] * timestamps.reindex(use.per_gpu.index) / side.wall_s
    if not need.notna().any():
        return None
    gpu = need.idxmax()
    return str(gpu), float(need[gpu]), float(use.per_gpu.at[gpu, "mean_pct"]), float(timestamps[gpu])


def _busy_against_time(baseline: Side, experiment: Side) -> Consistency | None:
    """GPU-busy seconds of an item: at constant work utilization can only rise as the time falls. Seconds of two models
    of GPUs are no common measure of work.
    """
    a, b = busy_s_per_item(baseline), busy_s_per_item(experiment)
    u_a, u_b = (_ledger_util(side) for side in (baseline, experiment))
    if a is None or b is None or not (u_a > 0 and u_b > 0) or shared_gpus(baseline, experiment) is not None:
        return None
    if boards(baseline).get("gpu_model") != boards(experiment).get("gpu_model"):
        return None
    more = b / a
    expected = u_b / more
    values = {"busy_s_baseline": a, "busy_s_experiment": b, "busy_ratio": more, "constant_work_util_pct": expected}
    if 0.5 <= more <= 2.0:
        return None
    text = Statement(
        MORE_BUSY if more > 1 else LESS_BUSY,
        a_s=a,
        b_s=b,
        more=more,
        before_pct=u_a,
        expected_pct=min(expected, 100),
        after_pct=u_b,
    )
    return Consistency("GPU work per item", "inconsistent", text, values)


def _rate_against_time(baseline: Side, experiment: Side) -> Consistency | None:
    """Samples a second and time per item must give the same number of samples per item."""
    a, b = samples_per_s(baseline), samples_per_s(experiment)
    t_a, t_b = (float(side.finished["duration_s"].dropna().median()) for side in (baseline, experiment))
    if a is None or b is None or not (t_a > 0 and t_b > 0):
        return None
    rate, samples = b / a, b * t_b / (a * t_a)
    values = {"samples_per_s_ratio": rate, "time_ratio": t_b / t_a, "samples_per_item_ratio": samples}
    text = Statement(RATES, rate=rate, a=a, b=b, time=t_b / t_a, expected=1 / rate)
    if math.isclose(samples, 1, rel_tol=SAME_WORK):
        return Consistency("samples against time", "consistent", Statement("{text}: this fits.", text=text), values)
    return Consistency(
        "samples against time",
        "inconsistent",
        Statement(OTHER_DATA, text=text, samples=samples),
        values,
    )


def samples_per_item_ratio(baseline: Side, experiment: Side) -> float | None:
    """Samples of an item, experiment over baseline, by the training logs; None where not known."""
    found = _rate_against_time(baseline, experiment)
    return found.values["samples_per_item_ratio"] if found else None


def _ledger_util(side: Side) -> float:
    ledger = side.get("ledger")
    return float(ledger.mean_util_pct) if ledger is not None else math.nan


def _batches_per_s(side: Side) -> float | None:
    events = side.run.events
    rates = events.loc[events["kind"] == "epoch", "detail"].astype(str).map(_RATE.search).dropna()
    return float(np.median([float(found[1]) for found in rates])) if len(rates) else None


def _numbers(side: Side) -> dict[str, float]:
    """Parameters that are one number in the whole run: as logged, else as requested."""
    held: dict[str, Scalar] = requested_params(side) | logged_params(side)
    return {
        name: float(value)
        for name, value in held.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and pd.notna(value) and value > 0
    }
