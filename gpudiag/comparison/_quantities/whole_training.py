"""What all of a training took, beside the time of its steps: in wall time and GPU time, and of what that is."""

from __future__ import annotations

import math

from gpudiag.comparison._quantities.levels import ONE_EACH
from gpudiag.comparison.logged_steps import Logged, logged
from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import TOTAL, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.comparison.step_work import n_gpus
from gpudiag.comparison.training_span import training_spans
from gpudiag.statement import NOTHING, Statement, joined

WHOLE = WALL, GPU = "training_wall_time", "training_gpu_time"
STARTUP, RESTART = "training_startup_time", "training_restart_time"
PAUSE, UNTIMED = "training_pause_time", "training_untimed_time"
SAME_NUMBER = 0.01
"""Part of all steps by which the first and the last of two trainings may differ, and both did as many (a default
without a published source)."""
BY_TELEMETRY = Statement("From where its GPUs first worked, or held memory for it, to where they last did.")
BY_LOG = Statement("From the first line on steps to the last: start-up before that is not in it.")
EVALUATIONS = "The log names {a} and {b} evaluations in it."


def whole_training(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Wall time and GPU time of two trainings that did as many of the same steps, and the parts that logs tell of, as
    far as both are known.
    """
    found = logged(baseline, experiment)
    if not found.comparable or not _same_steps(found) or not _as_many(found):
        return []
    spans = training_spans(baseline, experiment)
    wall_s = [one.wall_s for one in spans] or [_logged_s(side) for side in found.sides]
    title = "Wall time of the whole training"
    out = [_total(WALL, title, "s", wall_s, BY_TELEMETRY if spans else BY_LOG)]
    if spans:
        gpu_h = [one.gpu_h for one in spans]
        out.append(_total(GPU, "GPU time of the whole training", "GPU-h", gpu_h, BY_TELEMETRY))
        out.append(_total(STARTUP, "Time before the first steps", "s", [one.startup_s for one in spans]))
    return [one for one in (*out, *_parts(found, wall_s)) if one.baseline + one.experiment > 0]


def _parts(found: Logged, wall_s: list[float]) -> list[Quantity]:
    """What of the time the logs say, or leave to be, for something else than steps."""
    steps = [one for side in found.sides if (one := side.get("steps")) is not None]
    if len(steps) < len(found.sides):
        return []
    out = []
    if not any(one.n_down_unknown > 0 for one in steps):
        lost_s = [one.resumption_s for one in steps]
        out.append(_total(RESTART, "Restarts: time down, and steps done twice", "s", lost_s))
    if not any(one.n_unseen > 0 for one in steps):
        paused_s = [one.pauses_s for one in steps]
        return [*out, _total(PAUSE, "Evaluations, checkpoints and other pauses", "s", paused_s)]
    in_steps = [float((part["each_s"] * part["n"]).sum()) for part in found.lines]
    outside_s = [max(all_s - own_s, 0.0) for all_s, own_s in zip(wall_s, in_steps, strict=True)]
    named = [int(part["since"].str.contains("evaluation", regex=False).sum()) for part in found.lines]
    note = Statement(EVALUATIONS, a=named[0], b=named[1]) if any(named) else NOTHING
    return [*out, _total(UNTIMED, "Time outside of the steps that the logs time", "s", outside_s, note)]


def _total(name: str, title: str, unit: str, values: list[float], note: Statement = NOTHING) -> Quantity:
    whole = joined(note, ONE_EACH) if name in WHOLE else note
    return make(name, title, unit, TOTAL, values, note=whole, tested=False)


def _same_steps(found: Logged) -> bool:
    """Whether a step is the same work in both: as far as is stated, else on as many GPUs."""
    a, b = (n_gpus(side) for side in found.sides)
    return not found.other_work and (found.work is not None or a == b)


def _as_many(found: Logged) -> bool:
    """Whether both did the same steps, from the same one to the same one, each in one training."""
    if any(part["training"].nunique() != 1 for part in found.lines):
        return False
    last = [float(part["done"].max()) for part in found.lines]
    first = [max(float((part["done"] - part["n"]).min() - part["n"].median()), 0.0) for part in found.lines]
    apart = max(abs(last[1] - last[0]), abs(first[1] - first[0]))
    return apart <= SAME_NUMBER * max(last)


def _logged_s(side: Side) -> float:
    """What the log spans, NaN where it does not tell of all that passed."""
    steps = side.get("steps")
    if steps is None or steps.n_unseen > 0 or steps.n_down_unknown > 0:
        return math.nan
    return float(steps.logged_s)
