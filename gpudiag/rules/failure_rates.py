"""Do failures have to do with how many trials ran at once, or with a parameter?"""

from __future__ import annotations

from typing import Any

from gpudiag.errors import NotMeasurable, in_words
from gpudiag.measures._trials.in_common import LEAST
from gpudiag.measures._trials.proportions import wilson_pct
from gpudiag.measures.failure_rates import FailureRatesProfile, measure_failure_rates
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given

WITH = "With {most}, {n_of_kind} of {n_counted}, {share_pct:estimate}"
FEWER = "With fewer, {n_of_kind} of {n_counted}, {share_pct:estimate}"
MOST_NUMBERS = 4
"""Numbers that a sentence names; of more it says what lies from the border on, and what below."""


def _in_numbers(rates: FailureRatesProfile, found: dict[str, Any]) -> dict[str, Any]:
    """The failures of each number, the greatest first: of the first by name, of the others in words."""
    counts = rates.counts
    own = counts[(counts["kind"] == found["kind"]) & (counts["by"] == found["by"])]
    several = [_share(*row) for row in own[["number", "n_of_kind", "n_counted"]].itertuples(index=False)]
    if len(several) <= MOST_NUMBERS:
        first, *others = several
        return {**first, "several": False, "others": ". ".join(in_words(WITH, one) for one in others)}
    more = _share(found["least"], found["fail_more"], found["n_more"])
    less = _share(0, found["fail_less"], found["n_less"])
    return {**more, "several": True, "others": in_words(FEWER, less)}


def _share(number: float, hits: int, n: int) -> dict[str, Any]:
    low, high = wilson_pct(int(hits), int(n))
    return {
        "most": int(number), "n_of_kind": int(hits), "n_counted": int(n), "share_pct": 100 * hits / n,
        "share_low_pct": low, "share_high_pct": high,
    }  # fmt: skip


@rule(
    measure=measure_failure_rates,
    severity="warning",
    title="More trials failed when more ran at once",
    checks="Failures by trials at once",
    says=(
        Given("workers", "With {most:worker}", "With {most:trial} at once"),
        Given("several", " or more"),
        ", {n_of_kind} of {n_counted:trial} ",
        Given("oom", "ran out of GPU memory", "failed"),
        ", {share_pct:estimate}. {others}.",
    ),
    remedy="Stay below that number, or remove what trials take from each other: GPU memory first, then ports, files "
    "and host memory.",
    refuted_by="Not a problem if something else changed at the same time, such as the code or the search space.",
    needs_all=("sharing", "workers"),
)
def failures_by_number_at_once(
    rates: FailureRatesProfile, *, max_p_pct: float = 1.0, max_aligned_pct: float = 5.0
) -> Evidence | None:
    """A failure rate over a run whose number of workers changed is that of no part of it, and hides the number that
    works.

    The border in the number of workers (where it changed), or of trials at once, from on which most more trials failed:
    one-sided Fisher test below 1 %, times all borders and tests tried. Failures that come in one bad hour, or get rarer
    with time, pass that wherever a border lies; so the same course of the number, moved in time, must tell them as well
    at no more than 5 % of the other places. Failures out of GPU memory are judged apart from the others. Both are
    defaults without a published source; benchmarks/accuracy.md says how often they call what is none.
    """
    if not rates.n_fail:
        raise NotApplicable("No trial failed.")
    if rates.splits.empty:
        raise NotMeasurable(
            "All trials ended while the same number ran, so nothing can be compared.",
            "Run some trials with another number of workers.",
        )
    for found in rates.splits.to_dict("records"):
        if not (found["p_split"] < max_p_pct / 100 and found["aligned_pct"] <= max_aligned_pct):
            continue
        names = ("least", "n_more", "fail_more", "n_less", "fail_less", "n_left_out", "p_split", "aligned_pct")
        return Evidence(
            values={name: found[name] for name in names},
            margin=max_aligned_pct - found["aligned_pct"],
            extra={
                **_in_numbers(rates, found),
                "workers": found["by"] == "workers",
                "oom": found["kind"] == "oom",
            },
        )
    return None


@rule(
    measure=measure_failure_rates,
    severity="note",
    title="Trials out of memory have a parameter in common",
    checks="Parameters of trials out of memory",
    says="{n_oom_with} of {n_oom_compared:trial} that ran out of GPU memory had {condition}; of those that ended well "
    "meanwhile, {n_well_with} of {n_well_compared}.",
    remedy="Limit that parameter, or reject such trials before they start where too little memory is free.",
    refuted_by="Not a problem if these trials ran out of memory that others beside them held.",
    explained_by=("failures-out-of-memory",),
)
def failures_share_parameter(rates: FailureRatesProfile, *, max_p_pct: float = 1.0) -> Evidence | None:
    """What trials out of memory have in common says which of them to reject.

    One-sided exact test below 1 % (a default without a published source), times all values tried, of the trials out of
    GPU memory against those that ended well, within each ten trials of a study in the order of starts: each value of a
    parameter of at most 10, each border of a number, at its deciles where it has more.
    """
    if not rates.n_oom:
        raise NotApplicable("No trial ran out of GPU memory.")
    if rates.n_oom < LEAST or not rates.p_condition >= 0:
        raise NotMeasurable("Too few trials with parameters ran out of memory, or ended well meanwhile.")
    if not rates.p_condition < max_p_pct / 100:
        return None
    names = ("n_oom_with", "n_oom_compared", "n_well_with", "n_well_compared", "p_condition")
    return Evidence(
        values={name: getattr(rates, name) for name in names},
        margin=max_p_pct - 100 * rates.p_condition,
        extra={"condition": rates.condition},
    )
