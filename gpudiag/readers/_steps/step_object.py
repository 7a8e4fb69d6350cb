"""One object of a log in JSON Lines as what it says of a training step."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers._steps.stated_loss import not_finite_of
from gpudiag.readers._steps.step_line import StepLine
from gpudiag.values import is_number

STEPS = (
    "step",
    "global_step",
    "trainer/global_step",
    "train/global_step",
    "train/step",
    "train_step",
    "iteration",
    "iter",
    "train/iteration",
    "train/iter",
    "num_updates",
    "current_steps",
    "_step",
)
"""W&B's own count stands last: it is one more with each call of ``log``, unless the training states a step there."""
TOTALS = ("total_steps", "max_steps", "num_steps", "total_iters", "max_iters")
_STAMP = ("timestamp", "@timestamp", "_timestamp", "time", "ts", "datetime", "asctime", "date", "created_at")
_TOOK = ("step_time", "time_per_step", "sec_per_step", "iter_time", "time_per_iter", "step_time_s", "time")
"""Seconds of a step; ``time`` holds these, a moment or a timestamp."""
_TOOK_MS = ("step_time_ms", "iter_time_ms", "time_ms")
WAIT = ("data_time", "loader_time", "data_wait_s")
_ELAPSED = ("elapsed", "elapsed_s", "elapsed_time")
_TOKENS = ("tokens_per_second", "tokens_per_sec", "tokens/s", "tok/s", "throughput/tokens_per_sec")
_SAMPLES = (
    "samples_per_second",
    "samples_per_sec",
    "images_per_second",
    "images_per_sec",
    "throughput/samples_per_sec",
)
_RATE = re.compile(r"(?<![a-z])(?:lr|learning_rate)\d?(?![a-z])")
_NO_LOSS = re.compile(
    r"(?:packet|path|insertion|return|profit|stop)[-_ /]?loss|loss[-_ /](?:dbm?|rate|ratio|pct|percent)(?![a-z])"
)
"""Losses of networks, radio and markets."""
_EVALUATION = re.compile(
    r"(?:(?<![A-Za-z])|(?=[A-Z]))(?:[Ee]val|EVAL|[Vv]alid|VAL|[Vv]al(?![a-z])|[Tt]est|TEST"
    r"|[Dd]ev(?![a-z])|DEV(?![A-Z])|[Hh]old[-_ ]?out)"
)
"""As in val_loss, loss/val and valLoss; not as in value_loss and latest_loss."""
_SPLIT = ("split", "phase", "mode", "stage", "subset", "partition")
_OF_OTHERS = frozenset(
    ("val", "valid", "validation", "validate", "eval", "evaluation", "test", "testing", "dev", "holdout")
)
"""Of which data a row is; mmcv's log has both with a learning rate, told apart by ``mode``."""
_OF_DAY = re.compile(r"[T ]\d|^\d{5,}")
"""A date alone is no moment: what has one a day is no log of steps."""
_DAY = datetime(2000, 1, 1)
_EPOCH, RANKS = ("epoch",), ("rank", "global_rank")
_KNOWN = {
    name: (names, place)
    for names in (STEPS, TOTALS, _TOOK, _TOOK_MS, WAIT, _ELAPSED, _TOKENS, _SAMPLES, _EPOCH, RANKS)
    for place, name in enumerate(names)
}
_MOST = 1e12
_LONGEST_S, _LONGEST_RUN_S = 1e6, 1e8


def step_of_object(said: Mapping[str, Any], series: str = "json") -> StepLine | None:
    """What it says of a step of the training: an object with a step and a loss, a learning rate or our phase; None
    for another.

    Our own callbacks' objects name the phase ``training``, and state the means of the steps since the object before.
    mmengine's ``scalars.json`` states the mean time since the object before; detectron2's ``metrics.json`` the median
    of the last 20 steps, and counts them from 0 as ``iteration``.
    """
    found = _numbers(said)
    step = found.get(STEPS, math.nan)
    if not math.isfinite(step) or step < 0 or step != int(step) or not _trains(said):
        return None
    with_wait = found.get(WAIT, math.nan)
    from_0 = "iteration" in said and with_wait >= 0
    took_s = found.get(_TOOK, math.nan)
    took_s = took_s if 0 <= took_s <= _LONGEST_S else found.get(_TOOK_MS, math.nan) / 1000
    epoch, total, rank = (found.get(names, -1.0) for names in (_EPOCH, TOTALS, RANKS))
    return StepLine(
        series,
        int(step) + from_0,
        int(total) if total >= 1 else None,
        "step",
        int(epoch) if epoch >= 0 and epoch == epoch // 1 else None,
        "window" if _is_ours(said) or (with_wait >= 0 and not from_0) else "running",
        took_s if took_s >= 0 else math.nan,
        with_wait,
        found.get(_SAMPLES, math.nan),
        found.get(_TOKENS, math.nan),
        None,
        elapsed_s=found.get(_ELAPSED, math.nan),
        rank=int(rank) if rank >= 0 else None,
        not_finite=not_finite_of(said),
    )


def stamp_of_object(said: Mapping[str, Any]) -> str:
    """Its timestamp as text, '' for none: a date, or seconds or milliseconds since 1970."""
    for name in _STAMP:
        value = said.get(name)
        if isinstance(value, str) and value[:4].isdigit() and _OF_DAY.search(value):
            return value.replace(",", ".")
        if is_number(value):
            seconds = value / 1000 if value > 1e11 else value
            if is_epoch(seconds):
                return datetime.fromtimestamp(seconds, UTC).isoformat()
    return ""


def runtime_of_object(said: Mapping[str, Any]) -> str:
    """The timestamp on a day of our own that stands for the time since W&B started, which was before the training; ''
    without one.
    """
    seconds = said.get("_runtime")
    if not isinstance(seconds, int | float) or not 0 <= seconds <= _LONGEST_RUN_S:
        return ""
    return (_DAY + timedelta(seconds=seconds)).isoformat()


def is_known(name: str) -> bool:
    """Whether an object tells by this name of a step, how it went or when it was."""
    return name in _KNOWN or name in _STAMP


def counts_calls(said: Mapping[str, Any]) -> bool:
    """Whether all that it counts steps by is W&B's own count."""
    return "_step" in said and not any(name in said for name in STEPS if name != "_step")


def evaluates(said: Mapping[str, Any]) -> bool:
    """Whether all that it says is of other data than is trained on."""
    of = [said[name] for name in _SPLIT if name in said]
    return any(isinstance(data, str) and data.strip().lower() in _OF_OTHERS for data in of)


def _trains(said: Mapping[str, Any]) -> bool:
    return (_is_ours(said) or any(map(is_of_training, said))) and not evaluates(said)


@lru_cache(4096)  # the names of a log are few
def is_of_training(name: str) -> bool:
    """Whether training steps log a metric of this name: a loss that is not of an evaluation, or a learning rate."""
    lower = name.lower()
    is_loss = "loss" in lower and _NO_LOSS.search(lower) is None
    return (is_loss or _RATE.search(lower) is not None) and not is_of_evaluation(name)


@lru_cache(4096)
def is_of_evaluation(name: str) -> bool:
    """Whether the name says that an evaluation logged it."""
    return _EVALUATION.search(name) is not None


def _is_ours(said: Mapping[str, Any]) -> bool:
    """Whether it is a line of ``gpudiag.record.step_writer``."""
    return said.get("phase") == "training"


def _numbers(said: Mapping[str, Any]) -> dict[tuple[str, ...], float]:
    """By the names of one thing, the number under the first of them that has one."""
    found: dict[tuple[str, ...], float] = {}
    places: dict[tuple[str, ...], int] = {}
    for name, value in said.items():
        if name in _KNOWN and is_number(value) and abs(value) <= _MOST:
            names, place = _KNOWN[name]
            if place < places.get(names, len(names)):
                found[names], places[names] = float(value), place
    return found
