"""Scalars that a training wrote by tag and step, as its steps and its evaluations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from gpudiag.readers._io.scalar_events import Scalar
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers._steps.metric_kinds import EVENTS, of_epochs
from gpudiag.readers._steps.step_line import StepLine
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import RANKS, is_of_evaluation, is_of_training, step_of_object

USUAL = 2.0
"""A training whose first step is beyond this many of its usual strides began at a checkpoint."""
_WHOLE = "train/train_runtime"
_OF_WHOLE = re.compile(r"^train/train_")
"""Hugging Face's Trainer tells at its end of the training as a whole: no step (integrations, rewrite_logs)."""
_KERAS = "epoch_"
EPOCH, _FEW = "epoch", 3
_EPOCHS_FROM_1, _EPOCHS_FROM_0 = "lr/pg0", "x/lr0"
"""Ultralytics and YOLOv5 write these, and one value an epoch of all others."""
RUNTIME = re.compile(r"(?:^|[_/])runtime$")
TOGETHER_S = 1.0
"""What is written of an evaluation so soon behind a step was found before that: both are written at once."""


@dataclass
class ScalarGroup:
    """What was written of one step of the training, or of an evaluation; ``is_timed``: that states how long it took."""

    time_s: float
    step: int
    evaluates: bool
    values: dict[str, float] = field(default_factory=dict)
    is_timed: bool = False


def take(scalars: Sequence[Scalar], log: StepLog, kind: str = EVENTS) -> None:
    """Give the steps and the evaluations that scalars tell of to a log, in their order, as lines of a kind."""
    groups = _in_order(list(groups_of(scalars)))
    first = counts_epochs({scalar.tag for scalar in scalars}, groups)
    steps = [group.step for group in groups if not group.evaluates]
    ahead = np.diff(steps)
    if first is None and (ahead > 0).any() and steps[0] > USUAL * float(np.median(ahead[ahead > 0])):
        log.tell(f"resumed at step {steps[0]}", "")
    before: ScalarGroup | None = None
    for number, group in enumerate(groups, 1):
        stamp = datetime.fromtimestamp(group.time_s, UTC).isoformat() if is_epoch(group.time_s) else ""
        if group.evaluates:
            log.tell(_told(group, before), stamp)
        elif said := _step(group, first, kind):
            log.add(number, said, stamp)
            before = group


def _told(group: ScalarGroup, before: ScalarGroup | None) -> str:
    """The line that tells of an evaluation. All that passed since the same step was logged is of it, unless it states
    how long it took.
    """
    ((tag, value),) = group.values.items()
    if RUNTIME.search(tag):
        return runtime_line(value)
    known = before is not None and before.step == group.step and not group.is_timed
    return evaluation_line(group.time_s - before.time_s if known and before else 0.0)


def runtime_line(seconds: float) -> str:
    """The line that tells what Hugging Face's Trainer states of an evaluation."""
    return f"eval_runtime: {round(seconds, 4)}"


def evaluation_line(seconds: float) -> str:
    """The line that tells of an evaluation of so many seconds; of fewer than one, or NaN, of one of unknown length."""
    return f"evaluation took {round(seconds, 3)} s" if seconds >= TOGETHER_S else "evaluation done"


def _in_order(groups: list[ScalarGroup]) -> list[ScalarGroup]:
    """With evaluations before the step that was written at once with them."""
    out: list[ScalarGroup] = []
    place = 0
    for group in groups:
        last = out[place] if place < len(out) else None
        if not group.evaluates:
            place = len(out)
            out.append(group)
        elif last and group.step == last.step and 0 <= group.time_s - last.time_s < TOGETHER_S:
            out.insert(place, group)
            place += 1
        else:
            out.append(group)
    return out


def _step(group: ScalarGroup, first: int | None, kind: str) -> StepLine | None:
    """``first``: what the first epoch is counted as, where epochs are counted. Metrics that are called rank name no
    process: they rank something else.
    """
    values = {name: value for name, value in group.values.items() if name not in RANKS}
    said = step_of_object({**values, "step": group.step}, kind)
    if said is None or first is None:
        return said
    return said._replace(series=of_epochs(kind), step=said.step + 1 - first, unit="epoch", epoch=None)


def counts_epochs(tags: set[str], groups: Sequence[ScalarGroup]) -> int | None:
    """What the first epoch is counted as, where the steps of the training are epochs; None where they are steps.

    Keras writes ``epoch_loss``, at the number of the epoch from 0. A metric ``epoch`` may be what all are written at.
    """
    if _EPOCHS_FROM_1 in tags or _EPOCHS_FROM_0 in tags:
        return int(_EPOCHS_FROM_1 in tags)
    counted = [(group.values[EPOCH], group.step) for group in groups if not group.evaluates and EPOCH in group.values]
    if len(counted) >= _FEW and all(epoch == step for epoch, step in counted):
        return int(min(step for _, step in counted) > 0)
    trained = {tag for group in groups if not group.evaluates for tag in group.values if is_of_training(tag)}
    return 0 if trained and all(tag.startswith(_KERAS) for tag in trained) else None


def groups_of(scalars: Sequence[Scalar]) -> Iterator[ScalarGroup]:
    """Scalars of one step of the training together, at the moment of the first; those of an evaluation one by one.

    The step is that of the losses and learning rates which go on together: where others are written at the number of
    the epoch, or of an evaluation, these tell of no step. A loss among them is told with the step before it.
    """
    by_tag: dict[str, list[int]] = defaultdict(list)
    for at, scalar in enumerate(scalars):
        by_tag[scalar.tag].append(at)
    whole = _WHOLE in by_tag
    trained = {tag for tag in by_tag if is_of_training(tag) and not (whole and _OF_WHOLE.match(tag))}
    clock = _clock(scalars, {tag: by_tag[tag] for tag in trained})
    evaluated = {tag for tag in by_tag if is_of_evaluation(tag)}
    timed = any(map(RUNTIME.search, evaluated))
    found: ScalarGroup | None = None
    told: set[str] = set()
    beside: list[Scalar] = []
    for tag, value, scalar in ((scalar.tag, scalar.value, scalar) for scalar in scalars):
        if tag in evaluated:
            if tag not in told:  # once between two steps
                told.add(tag)
                yield ScalarGroup(scalar.time_s, scalar.step, True, {tag: value}, timed)
        elif tag in clock:
            if found is not None and scalar.step == found.step:
                found.values.setdefault(tag, value)
                continue
            found = ScalarGroup(scalar.time_s, scalar.step, False, {tag: value})
            found.values |= {one.tag: one.value for one in beside if one.step == scalar.step}
            beside, told = [], set()
            yield found
        elif found is not None and (tag in trained or scalar.step == found.step):
            found.values.setdefault(tag, value)
        else:
            beside = [one for one in beside if one.step == scalar.step and one.tag != tag] + [scalar]


def _clock(scalars: Sequence[Scalar], by_tag: dict[str, list[int]]) -> set[str]:
    """The tags whose steps are those of the training: of the one with most values, and of all that go on with it."""
    joined: set[str] = set()
    places = np.zeros(0, np.int64)
    every = np.array([scalar.step for scalar in scalars], np.int64)
    for tag in sorted(by_tag, key=lambda tag: (-len(by_tag[tag]), by_tag[tag][0])):
        own = np.array(by_tag[tag], np.int64)
        both = np.sort(np.concatenate([places, own]))
        apart = bool(len(places)) and (own[0] > places[-1] or own[-1] < places[0])  # as a fold behind another
        if not len(places) or _n_back(every[both]) <= max(_n_back(every[places]), _n_back(every[own])) + apart:
            joined.add(tag)
            places = both
    return joined


def _n_back(steps: np.ndarray) -> int:
    return int((np.diff(steps) < 0).sum())
