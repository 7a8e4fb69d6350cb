"""What a training does between its steps, and for how long, as the lines between those on steps tell of it."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from gpudiag.patterns import late
from gpudiag.readers._steps.bars import evaluation_s
from gpudiag.readers._steps.counted_evaluation import CountedEvaluation, count_of
from gpudiag.readers._steps.dialects import NUMBER
from gpudiag.readers._steps.step_line import rank_of
from gpudiag.readers._steps.written_numbers import LENGTH, length_s, number
from gpudiag.schema import LASTING

_WORDS = {
    "evaluation": late(
        r"(?i)\b(?:eval|evaluat|valid|val\b|val_|test(?:ing|_|[\s/.-]?(?:loss|acc)))"
        r"|\btest[ \w()]{0,20}:\s{1,4}(?:\[|total time|acc)|^(?!.*\btrain).*\bacc@[15]\b"
        r"|\baverage (?:precision|recall)\b.{0,20}@"
    ),
    "checkpoint": late(r"(?i)\bcheckpoint|\bsav(?:e|ed|ing)\b.{0,40}\b(?:model|weights|state|to)\b"),
    "resumption": late(
        r"(?i)\b(?:auto.?)?resum(?:e|ed|ing)\b|\bcontinuing training from\b|\brestor(?:ed|ing)\b.{0,60}\bcheckpoint"
        r"|\bload(?:ed|ing) (?:the )?checkpoint\b.{0,200}\b(?:iteration|epoch|step)\b"
        r"|\brestart(?:ed|ing)?\b.{0,30}\b(?:workers?|worker group|training|job)\b"
    ),
    "failure": late(
        r"Traceback \(most recent call last\)|\bWatchdog caught\b|\bOutOfMemoryError\b"
        r"|\bCUDA (?:out of memory|error)\b|\bNCCL error\b"
        r"|\bChildFailedError\b|\bSegmentation fault\b|\bDUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)\b"
    ),
    "end": late(
        r"(?i)\btrain_runtime\b(?=.{0,300}\btrain_loss\b)"
        r"|\bfinal (?:model|weights|checkpoint)\b|\bstopp(?:ed|ing)(?: the)?(?: training)? early\b"
        r"|\bsignaling trainer to stop\b"
        r"|\bearly[ _-]?stop(?:ping|ped)?\b(?:\W{0,9}(?:$|(?:at|after|triggered|since|because)\b)"
        r"|.{0,60}(?:\bno improvement\b|\bnot improved?\b|n't improved?\b))"
        r"|(?:^|[\W_])(?:seed|fold|run|training|config|experiment)\s?[#:=]?\s?\d{1,6}(?:\s?(?:/|of)\s?\d{1,6})?\W{0,10}$"
    ),
}
"""What a training does between steps, as its log tells of it; a resumption in the words of Hugging Face, Lightning,
mmengine, timm, Megatron and torchrun. What was caught is a failure too: it counts only before a start from the first
step. An end is that of the training, by the time that Hugging Face's Trainer states of all of it, by its last file, by
stopping early (Keras, Lightning, Ultralytics, fairseq), or by a heading of the next (seed 2, fold 2/5). An evaluation
also in those of timm, torchvision, the ImageNet example and COCO."""
_STEMS = {
    "evaluation": ("val", "test", "acc@", "average ", "images", "top1"),
    "checkpoint": ("checkpoint", "sav"),
    "resumption": ("resum", "continuing", "restor", "load", "restart"),
    "failure": ("traceback", "watchdog", "outofmemory", "cuda", "nccl", "childfailed", "segmentation", "due to"),
    "end": ("train_runtime", "final", "early", "signaling", "seed", "fold", "run", "training", "config", "experiment"),
}
"""A line that tells of it holds one of these in lower case, which are found far faster than the words."""
_BEGINS = late(
    r"(?i)\b(?:start(?:s|ed|ing)?|begin(?:s|ning)?|running|about to|prepar(?:e|ing)|saving|evaluating|validating"
    r"|testing)\b"
)
_ENDS = late(
    r"(?i)\b(?:done|finished|completed?|ended|ready|(?<!\bbe )(?:saved|written)|wrote|successfully)\b"
    r"|\b\w{0,20}(?:loss|acc|accuracy|ppl|perplexity|score|auc|iou|f1|results?|metrics?)\b\W{1,4}[\d{]"
)
"""That it is over, or what came out of an evaluation."""
_LASTED = late(
    r"(?i)(?:\btook|\b(?:done|finished|completed?|ended|saved|written|wrote|evaluated|validated)\b.{0,80}?\bin"
    r"|\btotal\b.{0,40}?\btime|\b(?:eval(?:uation)?|val(?:idation)?|test|checkpoint|save)[ _-]?(?:time|duration))"
    rf"\W{{0,4}}(?:{LENGTH})(?!\s?(?:/|per\b))"
)
_RUNTIME = late(rf"\b(?:eval|test)\w{{0,40}}_runtime\W{{1,30}}(?:{LENGTH}|(?P<seconds>{NUMBER}))")
"""Hugging Face, trainer_utils.py, speed_metrics: seconds, or a clock where they are listed."""
_TIMER_MS = late(rf"\b(?:save-checkpoint|evaluate)\s?\.{{2,80}}: \(?(?:{NUMBER}, )?(?P<most>{NUMBER})")
"""Megatron, core/timers.py: least and most of the ranks, or the most."""
_PATH = late(r"\S*[/\\]\S*")
_LOOKED_AT = 400
"""Characters of a line in which it says what is done."""


def may_tell(line: str) -> bool:
    """False for a line without any stem that all lines on other work have one of."""
    lower = line[:_LOOKED_AT].lower()
    return any(stem in lower for stems in _STEMS.values() for stem in stems)


def tells_of_break(line: str) -> bool:
    """Whether a line tells of a failure or of a resumption."""
    line = line[:_LOOKED_AT]
    lower = line.lower()
    return any(
        any(stem in lower for stem in _STEMS[work]) and _WORDS[work].search(line) for work in ("failure", "resumption")
    )


class OtherWork:
    """Takes the lines of one training in a file that tell of no step, in their order.

    An evaluation or a checkpoint lasts as long as a line states, or from a line that it begins to one that it is over;
    an evaluation also as the lines that say how far it is tell, up to one that tells of a checkpoint.
    What several ranks state of one moment counts once; without timestamps, what one rank states.
    """

    def __init__(self) -> None:
        self._begun: tuple[str, float] = "", math.nan  # what a line said that it begins, and when
        self._counted = CountedEvaluation()
        self._until = dict.fromkeys(LASTING, -math.inf)  # up to which moment it was counted
        self._stated_by: dict[str, int | None] = {}
        self._by_bars_s, self._bar_s = 0.0, 0.0  # evaluations since a line stated one, and the bar that stands

    def step(self) -> None:
        """A step was done: what had begun is over, or goes on beside the steps."""
        self._begun = "", math.nan
        self._counted = CountedEvaluation()

    def told_by(self, line: str, moment_s: float) -> dict[str, float]:
        """What the line tells of, and the seconds of it that are stated and not yet counted. ``moment_s``: the moment
        of the line by its timestamp; NaN without.
        """
        line = line[:_LOOKED_AT]
        lower = line.lower()
        maybe = (work for work, stems in _STEMS.items() if any(stem in lower for stem in stems))
        told = dict.fromkeys((work for work in maybe if _WORDS[work].search(line)), 0.0)
        if "resumption" in told:  # it names the checkpoint that it begins from, and writes none
            return {"resumption": 0.0}
        if (seconds := evaluation_s(line)) >= 0:
            more_s = seconds - self._bar_s if seconds >= self._bar_s else seconds
            self._bar_s, self._by_bars_s = seconds, self._by_bars_s + more_s
            return told | {"evaluation": more_s}
        if "evaluation" in told and (n := count_of(line)) is not None and not _stated_s(line) > 0:
            return told | {"evaluation": self._so_far_s(n, moment_s)}
        if "checkpoint" in told:
            self._counted = CountedEvaluation()
        for work in LASTING:
            if work in told:
                told[work] = self._lasted_s(work, line, moment_s)
        return told

    def _so_far_s(self, n: int, moment_s: float) -> float:
        """What an evaluation took up to a line that says how far it is, beyond what was counted."""
        before_s = self._counted.s
        if self._begun[0] == "evaluation" and not self._counted.until_s > 0:
            self._counted.take(0, max(self._begun[1], self._until["evaluation"]))
        self._counted.take(n, moment_s)
        return self._counted.s - before_s

    def _lasted_s(self, work: str, line: str, moment_s: float) -> float:
        stated_s, words = _stated_s(line), _PATH.sub(" ", line)
        if not stated_s > 0 and not (_ENDS.search(words) and _WORDS[work].search(words)):
            if _BEGINS.search(words):
                self._begun = work, moment_s
            return 0.0
        begun, since_s = self._begun
        took_s = moment_s - since_s if begun == work else math.nan
        if work == "evaluation" and begun != work:
            took_s = self._counted.s + moment_s - self._counted.until_s
        seconds = max(stated_s, took_s) if stated_s > 0 and took_s >= 0 else stated_s if stated_s > 0 else took_s
        if not seconds > 0:
            return 0.0
        if moment_s == moment_s:
            seconds = min(seconds, max(moment_s - self._until[work], 0.0))
            self._until[work] = max(moment_s, self._until[work])
        elif self._stated_by.setdefault(work, rank_of(line)) != rank_of(line):
            return 0.0
        if work == "evaluation":
            seconds = max(seconds - self._by_bars_s - self._counted.s, 0.0)
            self._by_bars_s, self._bar_s, self._counted = 0.0, 0.0, CountedEvaluation()
        return seconds


def moment_of(stamp: str) -> float:
    """Seconds of a timestamp, of any zone but always the same; NaN for none."""
    try:
        return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp() if stamp else math.nan
    except ValueError:
        return math.nan


def _stated_s(line: str) -> float:
    """Seconds that it took, as the line says; NaN where it does not."""
    if found := _TIMER_MS.search(line):
        return number(found["most"]) / 1000
    if found := _RUNTIME.search(line):
        return number(found["seconds"]) if found["seconds"] else length_s(found)
    return length_s(found) if (found := _LASTED.search(line)) else math.nan
