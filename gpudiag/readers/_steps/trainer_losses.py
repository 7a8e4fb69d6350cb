"""Whether the time that Hugging Face's Trainer states of a training is that of the lines it printed before."""

from __future__ import annotations

import math
from itertools import pairwise

from gpudiag.readers._steps.trainer_line import EPOCH_ROUNDED
from gpudiag.readers._steps.trainer_session import Session

ALIKE = 0.02
"""Part by which the mean loss of the lines may differ from the stated one: losses are rounded, and so are epochs."""


def holds_more(session: Session) -> bool:
    """Whether there are lines of before a resumption, by the mean loss that is stated of the training: it is of the
    steps since then, over all or over these. False where no losses show it.
    """
    steps, whole = [line for line in session.lines if line.kind == "step"], session.whole
    if whole is None or len(steps) < 2 or not all(math.isfinite(line.said["loss"]) for line in steps):
        return False
    epochs, losses = [line.epoch for line in steps], [line.said["loss"] for line in steps]
    ahead = [after - before for before, after in pairwise(epochs)]
    begun = max(epochs[0] - max(ahead), 0.0)
    parts = [epochs[0] - begun, *ahead, max(whole.epoch - epochs[-1], 0.0)]
    losses.append(losses[-1])
    added = sum(loss * part for loss, part in zip(losses, parts, strict=True))
    weight = sum(abs(loss) * part for loss, part in zip(losses, parts, strict=True))
    slack = ALIKE * weight + 2 * EPOCH_ROUNDED * max(map(abs, losses)) + max(ahead) * (max(losses) - min(losses)) / 2
    stated = whole.said["train_loss"]
    return not any(abs(stated * over - added) <= slack for over in (whole.epoch, whole.epoch - begun))
