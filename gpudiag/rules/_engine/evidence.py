"""What a rule gives back: evidence of a fault, or that its question does not arise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, TypeAlias

from gpudiag.errors import NotMeasurable, in_words
from gpudiag.rules._engine.templates import Given, Sentence, template
from gpudiag.rules._engine.verdict import Severity
from gpudiag.values import Value, Values

if TYPE_CHECKING:
    import pandas as pd


MOST_PLACES = 1000
"""Trials that a finding names: all of them, but for studies in which nobody could look at each."""


MOST, LEAST = "the most", "the least"


@dataclass(frozen=True)
class Evidence:
    """What a firing rule returns.

    ``summary``: one sentence with its numbers, of a rule that has no sentence of its own (``says``). ``values``:
    numbers by name, unit in the name. ``where``: gpu, trial or time span by name. ``extra``: what only the sentence
    uses, in no other output; it goes before a value of the same name. ``lost_gpu_h``: GPU-hours this cost, None where
    it cannot be told. ``margin``: how far past the threshold, in the threshold's unit.
    ``severity`` overrides the rule's own where the case is milder or worse. ``held_gpu_h``: GPU-hours that the fault
    may have held, which bound what it can explain where the loss is unknown, or known in part. ``lost_time_pct``: share
    of the workers' time that it took, by which findings of the same GPU-hours and severity are ordered where it is
    large. ``absence``: something did not happen, which needs as long a record as saying that nothing is wrong does.
    ``remedy``: what to do instead of what the rule advises, in a case where that would do harm. ``title``: in place of
    the rule's, where that would say too much of the case. ``not_caused_by``: rules that it names as causes and that are
    none here; ``not_cause_of``: rules that name it as a cause, and it is none here.
    """

    summary: str = ""
    values: Values = field(default_factory=dict)
    where: Values = field(default_factory=dict)
    lost_gpu_h: float | None = None
    margin: float | None = None
    severity: Severity | None = None
    held_gpu_h: float | None = None
    lost_time_pct: float | None = None
    extra: Values = field(default_factory=dict)
    absence: bool = False
    remedy: str = ""
    title: str = ""
    not_caused_by: tuple[str, ...] = ()
    not_cause_of: tuple[str, ...] = ()

    def sentence_values(self) -> dict[str, Value]:
        """What a sentence may name: values, places, ``gpus`` (each GPU of ``where``) and extras."""
        return {"gpus": gpu_names(self.where.get("gpu", "")), **self.where, **self.values, **self.extra}


class Passed:
    """What a rule that found nothing measured: a template over these values, and over its thresholds by their names.

        Passed("{n_fail} of {n:trial} failed (limit {max_pct}).", n_fail=1, n=90)

    Where a value is unknown nothing is said, and the limits stand alone.
    """

    def __init__(self, says: Sentence, /, **values: Value) -> None:
        self.says, self.values = says, values

    @classmethod
    def most(cls, table: pd.DataFrame, column: str, says: str, limit: str, /, **values: Value) -> Passed:
        """By the GPU with the most in that column of a row a GPU, which the sentence names; it may use each column."""
        return cls._of(table, table[column], (says, _place(MOST), "; ", limit, ")."), values)

    @classmethod
    def least(cls, table: pd.DataFrame, column: str, says: str, limit: str, /, **values: Value) -> Passed:
        """By the GPU with the least in that column."""
        return cls._of(table, -table[column], (says, _place(LEAST), "; ", limit, ")."), values)

    @classmethod
    def _of(cls, table: pd.DataFrame, by: pd.Series, says: Sentence, values: Values) -> Passed:
        if table.empty:
            return cls("")
        unknown = by.isna()  # one that is unknown may be the most
        worst = unknown.idxmax() if unknown.any() else by.idxmax()
        several = {"several": len(by) > 1, "alike": by.nunique() == 1, "n_gpus": len(by)}
        return cls(says, **{**table.loc[worst], **several, "gpu": str(worst), **values})

    def summary(self, thresholds: Mapping[str, float], show_in: str = "UTC") -> str:
        """The sentence, in words; empty where it would name what is unknown."""
        values = {**self.values, **thresholds}
        says = template(self.says, values)
        named = (values[name] for _, name, _, _ in Formatter().parse(says) if name)
        return "" if any(value is None or value != value for value in named) else in_words(says, values, show_in)


def _place(worst: str) -> Sentence:
    return (" (", Given("several", Given("alike", "each of {n_gpus:GPU}", ("{gpu}, ", worst, " of {n_gpus}")), "{gpu}"))


Outcome: TypeAlias = "Evidence | Passed | None"
"""What a rule returns: a finding, or none, with what it measured or without."""


def lengths(seconds: pd.Series) -> dict[str, Value]:
    """What a sentence says of how long something lasted on each of some GPUs."""
    least_s, most_s = float(seconds.min()), float(seconds.max())
    return {"several": len(seconds) > 1, "spread": least_s < 0.99 * most_s, "least_s": least_s, "most_s": most_s}


def worst_gpu(
    worst: object,
    found: pd.DataFrame,
    names: Iterable[str],
    *,
    margin: float | None,
    lost_gpu_h: float | None = None,
    severity: Severity | None = None,
    held_gpu_h: float | None = None,
    extra: Values | None = None,
    remedy: str = "",
) -> Evidence:
    """Evidence by the worst of the GPUs that were found, the rows of a table: its figures, the place of all.

    The sentence may name each column of that row, the worst as ``gpu`` and all as ``gpus``.
    """
    row = found.loc[worst]
    gpus = [str(name) for name in found.index]
    return Evidence(
        values={name: float(row[name]) for name in names},
        where={"gpu": ", ".join(gpus)},
        lost_gpu_h=lost_gpu_h,
        margin=margin,
        severity=severity,
        held_gpu_h=held_gpu_h,
        extra={**row, "gpu": str(worst), "several": len(gpus) > 1, **(extra or {})},
        remedy=remedy,
    )


def need_fast_samples(period_s: float, most_s: float) -> None:
    """Raise NotMeasurable where samples lie too far apart to see the waits of a GPU; an unknown period is no reason."""
    if period_s >= most_s + 0.5:  # as written, it is above
        raise NotMeasurable(
            "Samples are {period_s} apart, too far to show waits of seconds or minutes; {most_s} is the most.",
            "Sample every 1 to 5 s (nvidia-smi -l 1).",
            period_s=period_s,
            most_s=most_s,
        )


class NotApplicable(Exception):
    """Raised by a rule whose question does not arise for this run (one GPU cannot be imbalanced).

    With values by name the reason is a template over them.
    """

    def __init__(self, reason: str, /, **values: Value) -> None:
        super().__init__(reason)
        self.values = values

    def shown(self, show_in: str) -> str:
        """The reason with times in that zone."""
        return in_words(self.args[0], self.values, show_in)

    def __str__(self) -> str:
        return self.shown("UTC")


def gpu_names(gpus: object) -> list[str]:
    """The GPUs that a place names."""
    return [gpu for gpu in str(gpus).split(", ") if gpu]
