"""The history that Hugging Face's Trainer keeps: one list over all times that a training was resumed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from gpudiag.readers._steps.trainer_line import TrainerLine, trainer_said
from gpudiag.readers._steps.trainer_session import Session
from gpudiag.values import is_number

SURE = 0.02
"""A number of steps, or a sum of losses, that is known no better tells no resumption from a training in one go."""
ALIKE = 1e-3
"""Part by which the sum of losses may differ from the stated one: what is missing is then of no account."""
LOSS_DECIMALS = 4
LOSS_ROUNDED = 5e-5
"""Losses were rounded so before 5.0."""


def history_of(state: Mapping[str, Any]) -> tuple[Session, str]:
    """What ``log_history`` says, and why the stated time of the whole is not used; '' where it is, or none is stated.

    A training that was resumed states the time since then alone, beside evaluations of before.
    """
    lines = list(_lines(state["log_history"]))
    total = state.get("max_steps")
    ends = [at for at, line in enumerate(lines) if line.kind == "whole"]
    within = lines[: ends[0]] if ends else lines
    session = Session(within, total=total if isinstance(total, int) and total > 0 else None)
    if not ends:
        return session, ""
    behind = lines[ends[0] + 1 :]
    if len(ends) > 1 or any(line.kind == "step" for line in behind):
        return session, "it states the times of several trainings"
    why = _why_not_in_one_go(session, lines[ends[0]])
    if not why:
        session.whole, session.behind = lines[ends[0]], behind
    return session, why


def _lines(history: Iterable[Any]) -> Iterable[TrainerLine]:
    for count, entry in enumerate(history, 1):
        if not isinstance(entry, dict):
            continue
        said = {str(name): float(value) for name, value in entry.items() if is_number(value)}
        step = said.pop("step", math.nan)
        line = trainer_said(said) if 0 <= step < 1e12 else None
        if line:
            yield replace(line, step=int(step), number=count)


def _why_not_in_one_go(session: Session, whole: TrainerLine) -> str:
    """'' for a training that was never resumed: by its number of steps, which Transformers after 5.0 states as those
    done in the time, and by its mean loss: before, it was the sum of these steps over all steps.
    """
    steps = [line for line in session.lines if line.kind == "step"]
    n, unknown = float(whole.step or 0), "whether it is that of all steps cannot be told"
    if not steps or not n > 0 or not whole.seconds > 0 or any(a.step >= b.step for a, b in pairwise(steps)):  # type: ignore[operator]
        return unknown
    losses = [line.said["loss"] for line in steps]
    ahead = [after - before for before, after in pairwise([0, *(int(line.step or 0) for line in steps)])]
    if not all(map(math.isfinite, losses)):
        return unknown
    rounded = all(abs(round(loss, LOSS_DECIMALS) - loss) < 1e-9 for loss in losses)
    n_stated = whole.said.get("train_steps_per_second", math.nan) * whole.seconds
    blur = LOSS_ROUNDED * 10 * whole.seconds + 1
    if math.isnan(n_stated) or (not rounded and blur > SURE * n):
        return unknown
    if not any(abs(n_stated - known) <= blur for known in (n, float(session.total or 0))):
        return "it is that of the steps since the training was resumed"
    weight = sum(abs(loss) * steps_ for loss, steps_ in zip(losses, ahead, strict=True))
    added = sum(loss * steps_ for loss, steps_ in zip(losses, ahead, strict=True))
    slack = ALIKE * weight + LOSS_ROUNDED * n
    if not 2 * abs(added) >= weight >= slack / SURE:
        return unknown
    off = (whole.said["train_loss"] * n - added) * math.copysign(1, added)
    rest = (n - int(steps[-1].step or 0)) * max(map(abs, losses))
    return "" if -slack <= off <= rest + slack else "it is that of the steps since the training was resumed"
