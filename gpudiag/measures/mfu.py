"""Model FLOPs utilization: which part of the arithmetic that its GPU can do a training did for its model."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Fact, fact
from gpudiag.hardware import find_board
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._steps.stated_model import SAME, stated_model
from gpudiag.measures._steps.token_rate import token_rate
from gpudiag.measures._time.cells import rows_by_gpu, sampled_gpus
from gpudiag.measures._time.weighted import weighted_mean
from gpudiag.measures._time.work import beside_work, work_by_gpu
from gpudiag.measures.base import Profile
from gpudiag.measures.feed import meant_to_work
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import UNUSED_PCT
from gpudiag.statement import NOTHING, Statement

TERA = 1e12
STATE = (
    "State under [training] in run.toml what the log does not say: parameters, dtype, and tokens_per_step of all GPUs "
    "together."
)


class MfuProfile(Profile, topic="mfu"):
    """Model FLOPs (6 a parameter and token, where all are trained) over the dense peak of the GPU at boost clock. NaN
    is unknown, as the high bound is where nobody says whether parameters are frozen.
    """

    mfu_low_pct: Fact[float] = fact("model FLOPs over the GPU's peak, at least", label="MFU, at least")
    mfu_high_pct: Fact[float] = fact("the same, at most", label="MFU, at most")
    withheld: Fact[Statement] = fact("why there is no MFU, '' where there is")
    parameters: Fact[float] = fact("parameters that a token passes", label="parameters")
    trained_parameters: Fact[float] = fact("of these, parameters that are trained", label="trained parameters")
    sharded: Fact[bool] = fact("the trained ones may be the share of one rank, and all be trained")
    parameters_from: Fact[str] = fact("who states them: run.toml, log, '' for nobody")
    low_tokens_s_per_gpu: Fact[float] = fact("tokens per second of one GPU in steps at their usual pace, at least")
    high_tokens_s_per_gpu: Fact[float] = fact("the same, at most", label="tokens per second of a GPU")
    training_gpus: Fact[float] = fact("GPUs of the training")
    dtype: Fact[str] = fact("number format of the matrix products, '' where nobody states it", label="number format")
    formats: Fact[str] = fact("formats in which the GPU could have done so much, the slowest first")
    low_peak_tflops: Fact[float] = fact("dense peak of the GPU in the slowest of these")
    high_peak_tflops: Fact[float] = fact("the same in the fastest", label="peak of the GPU")
    tensor_active_pct: Fact[float] = fact(
        "share of the cycles at work in which tensor cores were active (DCGM): what they did is at most that share of "
        "their peak",
        label="tensor cores active",
    )
    log_mfu_pct: Fact[float] = fact("MFU that the log states, the median, by its own count and peak")
    log_tflops: Fact[float] = fact("model TFLOP/s of a GPU that the log states, the median, by its own count")
    log_low_pct: Fact[float] = fact("these TFLOP/s over the GPU's peak, at least")
    log_high_pct: Fact[float] = fact("the same, at most")
    log_kind: Fact[str] = fact("what wrote these lines")


@memoized
def measure_mfu(run: Run) -> MfuProfile:
    """MFU from tokens per second, parameters and the GPU's peak, and the activity of tensor cores. Needs one of tokens
    per second (or per step), a log that states its MFU, or DCGM's field 1004.
    """
    used = _used(run)
    model = stated_model(run)
    rate = token_rate(run, model.tokens_per_step, used)
    own = _own(run)
    active_pct = _tensor_active_pct(run, used)
    if math.isnan(rate.high) and math.isnan(active_pct) and not own.kind:
        raise NotMeasurable(rate.why.template, STATE, **rate.why.values)
    peaks, why = _peaks(run, used, model.dtype)
    low_flops, high_flops = _flops_per_token(model.parameters, model.trained, sharded=model.sharded)
    least, most = rate.low * low_flops / TERA, rate.high * high_flops / TERA
    # What is above the peak of a format cannot have been done in it.
    could = {name: peak for name, peak in sorted(peaks.items(), key=lambda item: item[1]) if least <= peak}
    why = rate.why or model.why or why
    if not why and not could:
        why = Statement(
            "A GPU would have done {least:=TFLOP/s}, more than its peak of {peak:=TFLOP/s}: parameters, tokens or the "
            "number format are not what was stated, or there are more GPUs (state gpus under [training]).",
            least=least,
            peak=max(peaks.values()),
        )
    known = could if not why else {}
    of_log = [peak for peak in peaks.values() if own.tflops <= peak]
    return MfuProfile(
        mfu_low_pct=100 * least / max(known.values()) if known else math.nan,
        mfu_high_pct=_capped(100 * most / min(known.values())) if known else math.nan,
        withheld=why,
        parameters=model.parameters,
        trained_parameters=model.trained,
        sharded=model.sharded,
        parameters_from=model.source,
        low_tokens_s_per_gpu=rate.low,
        high_tokens_s_per_gpu=rate.high,
        training_gpus=rate.n_gpus,
        dtype=model.dtype,
        formats=", ".join(known),
        low_peak_tflops=min(known.values(), default=math.nan),
        high_peak_tflops=max(known.values(), default=math.nan),
        tensor_active_pct=active_pct,
        log_mfu_pct=own.mfu_pct,
        log_tflops=own.tflops,
        log_low_pct=100 * own.tflops / max(of_log) if of_log else math.nan,
        log_high_pct=100 * own.tflops / min(of_log) if of_log else math.nan,
        log_kind=own.kind,
    )


def _used(run: Run) -> list[str]:
    """GPUs of the telemetry that did anything; all of them where their utilization is unknown."""
    if "util_pct" not in run.gpu:
        return list(sampled_gpus(run))
    util = run.gpu["util_pct"].to_numpy(float)
    return [gpu for gpu, own in sorted(rows_by_gpu(run).items()) if np.fmax.reduce(util[own]) > UNUSED_PCT]


def _flops_per_token(parameters: float, trained: float, *, sharded: bool) -> tuple[float, float]:
    """FLOPs of forward and backward, the bounds. Forward takes 2 a parameter, the gradient of the weights 2 a trained
    one, that of the activations 2 for each through which it passes: the trained ones at least, all at most. So these
    are 6 where all are trained (Kaplan et al., arXiv 2001.08361), and 2 to 4 for a frozen model with small adapters;
    2 to 6 where the trained ones may be the share of one rank.
    """
    if math.isnan(parameters):
        return 6 * trained, math.nan
    if trained >= (1 - SAME) * parameters:
        return 6 * parameters, 6 * parameters
    return 2 * parameters + 4 * trained, 6 * parameters if sharded else 4 * parameters + 2 * trained


def _capped(pct: float) -> float:
    return pct if math.isnan(pct) else min(pct, 100.0)


def _peaks(run: Run, used: list[str], dtype: str) -> tuple[dict[str, float], Statement]:
    """Peak of the GPUs that worked, by format; or why it is unknown."""
    if not used:
        return {}, Statement("No telemetry shows which GPU it ran on.")
    boards = gpu_boards(run).loc[used]
    names = sorted({str(name) for name in boards["name"]} - {""})
    if not names or (boards["name"] == "").any():
        return {}, Statement("The telemetry does not name the model of the GPU.")
    found = [find_board(str(row["name"]), float(row["total_mib"])) for row in boards.to_dict("records")]
    known = {tuple(board.peaks_tflops().items()) if board else () for board in found}
    if len(known) > 1:
        return {}, Statement("The GPUs are of different models: {names}.", names=names)
    of_dtype = found[0].peaks_tflops(dtype) if found[0] else {}
    if not any(known):
        return {}, Statement("The peak of {names} is not in gpudiag's data sheet.", names=names)
    if not of_dtype:
        return {}, Statement("{names} has no tensor cores for {dtype}.", names=names, dtype=dtype)
    return of_dtype, NOTHING


def _tensor_active_pct(run: Run, used: list[str]) -> float:
    """Mean over the time at work of the GPUs that worked; NaN unknown."""
    if not {"tensor_active_pct", "util_pct"} <= set(run.gpu):
        return math.nan
    works = {gpu: work for gpu, work in work_by_gpu(run).items() if gpu in used}
    values: list[float] = []
    weights: list[float] = []
    for work, columns in zip(works.values(), beside_work(run, works, ("tensor_active_pct",)), strict=True):
        active = columns["tensor_active_pct"]
        at = meant_to_work(work) & ~(active != active)  # NaN differs from itself
        values += active[at].tolist()
        weights += work.weight_s[at].tolist()
    return weighted_mean(values, weights)


class _Own(NamedTuple):
    """What a log itself says of its FLOPs, NaN and '' for nothing."""

    mfu_pct: float = math.nan
    tflops: float = math.nan
    kind: str = ""


def _own(run: Run) -> _Own:
    stated = run.steps.reindex(columns=["mfu_pct", "gpu_tflops", "series"])
    stated = stated[stated["mfu_pct"].notna() | stated["gpu_tflops"].notna()]
    if stated.empty:
        return _Own()
    kind = stated["series"].mode().iloc[0]
    of_kind = stated[stated["series"] == kind]
    return _Own(float(of_kind["mfu_pct"].median()), float(of_kind["gpu_tflops"].median()), str(kind))
