"""What Hugging Face's Trainer prints and keeps: dictionaries on a step, on an evaluation and on a whole training."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpudiag.readers._steps.written_numbers import number

Kind = Literal["step", "evaluation", "whole"]
WHOLE_TIME = "trainer"
"""Kind of lines of which only one, the last, states a time: that of the whole training, with its evaluations."""
HISTORY = "trainer_state"
"""Kind of those in a history whose lines on steps state a time each."""
_DICTIONARY = re.compile(r"\{'[^{}]{10,4000}\}")
"""trainer_callback.py, ProgressCallback and PrinterCallback, ``on_log``."""
_ITEM = re.compile(r"'([\w/.-]{1,100})': '?([-+]?(?:[\d.]{1,30}(?:[eE][-+]?\d{1,3})?|nan|inf))'?(?=[,}])")
"""Since 5.0 numbers are text of four digits."""
_EVALUATION = re.compile(r"^eval(?:_.{1,80})?_runtime$")
_OF_SPEED = re.compile(r"_(?:runtime|(?:samples|steps|tokens)_per_second|model_preparation_time)$")
ROUNDED = 6e-4
"""What a number of four digits differs by at most, as a part of it; an epoch of two decimals by EPOCH_ROUNDED."""
EPOCH_ROUNDED = 0.006
MOST_S = 1e8


@dataclass(frozen=True)
class TrainerLine:
    """``said``: its numbers by name; ``seconds``: what it states of time, NaN unknown: of a step since the training was
    begun or resumed, else how long it took. ``step`` is None where only the epoch is known.
    """

    kind: Kind
    epoch: float
    seconds: float
    said: Mapping[str, float]
    number: int = 0
    stamp: str = ""
    step: int | None = None

    @property
    def results(self) -> tuple[tuple[str, str], ...]:
        """All that does not tell of speed: the same for each process that prints it."""
        return tuple((name, str(value)) for name, value in self.said.items() if not _OF_SPEED.search(name))

    def is_rounded(self, other: TrainerLine) -> bool:
        """Whether both say the same, but for what one of them may round away."""
        return (
            self.kind == other.kind
            and self.said.keys() - {"total_flos"} == other.said.keys() - {"total_flos"}
            and all(
                math.isclose(self.said[name], value, rel_tol=ROUNDED, abs_tol=EPOCH_ROUNDED if name == "epoch" else 0.0)
                for name, value in other.said.items()
                if value == value and name != "total_flos"
            )
        )


def trainer_line(line: str) -> TrainerLine | None:
    """What a line of stdout says; None for any other line."""
    if "'epoch': " not in line or not (found := _DICTIONARY.search(line)):
        return None
    return trainer_said({name: number(value) for name, value in _ITEM.findall(found[0])})


def trainer_said(said: Mapping[str, float]) -> TrainerLine | None:
    """What a dictionary says; None for that of another tool, and for one that sums up several."""
    epoch = said.get("epoch", math.nan)
    if not 0 <= epoch < 1e9:
        return None
    evaluated = [name for name in said if _EVALUATION.match(name)]
    if "train_loss" in said and "train_runtime" in said and "loss" not in said:
        return None if evaluated else TrainerLine("whole", epoch, _seconds(said["train_runtime"]), said)
    if "loss" in said and "learning_rate" in said:
        return TrainerLine("step", epoch, _seconds(said.get("train_runtime", math.nan)), said)
    if len(evaluated) == 1 and evaluated[0].replace("_runtime", "_samples_per_second") in said:
        return TrainerLine("evaluation", epoch, _seconds(said[evaluated[0]]), said)
    return None


def _seconds(value: float) -> float:
    return value if 0 < value < MOST_S else math.nan
