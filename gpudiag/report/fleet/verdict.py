"""The headline of a fleet: how well its GPUs were used, and whether that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpudiag.report._sections.headline import PARTLY_PCT, UNUSED_PCT, USE_WORDS, WELL_PCT
from gpudiag.report.document import Level, Use
from gpudiag.report.fleet.changes import ALIKE, Change, Changes, step_words
from gpudiag.report.fleet.document import ClusterDocument, RunRow, Total
from gpudiag.report.format import plural, share

WORTH_SAYING = 0.05
"""Runs, or GPUs, with a smaller share of all GPU time are no part of the headline."""
LEVELS: dict[Use, Level] = {
    "well": "ok",
    "partly": "note",
    "poorly": "warning",
    "unused": "critical",
    "unknown": "unknown",
}


def use_of(util_pct: float) -> Use:
    """How well GPUs of this mean utilization were used, as the report of one run calls it."""
    if math.isnan(util_pct):
        return "unknown"
    if util_pct <= UNUSED_PCT:
        return "unused"
    return "well" if util_pct >= WELL_PCT else "partly" if util_pct >= PARTLY_PCT else "poorly"


def level_of(total: Total, changes: Changes | None) -> Level:
    """The level of a fleet: that of its use, and a warning where the utilization fell."""
    level = LEVELS[use_of(total.util_pct)]
    change = trend(changes)
    return "warning" if level in ("ok", "note") and change and change.worse else level


def verdict_of(
    total: Total, changes: Changes | None, rows: Sequence[RunRow], cluster: ClusterDocument | None = None
) -> str:
    """One sentence: how well the GPUs were used, and what else is to be known first; '' where nobody knows
    how busy they were.
    """
    use = use_of(total.util_pct)
    if use == "unknown":
        return ""
    seen_pct = 100 * total.observed_gpu_s / total.gpu_s if total.gpu_s else 100.0
    half = f" in the {share(seen_pct)} of their time that was observed" if seen_pct < 50 else ""
    first = f"The GPUs were {USE_WORDS[use]}{half} ({share(total.util_pct)} on average)"
    change = trend(changes)
    if change:
        less = "less" if change.worse else "better"
        return f"{first}, {_word(use, bad=change.worse)} {less} from {change.first_week} on."
    more = _never(total, cluster) or (_poor(total, rows) if use in ("well", "partly") else "")
    return f"{first}, {_word(use, bad=True)} {more}." if more else f"{first}."


def _word(use: Use, *, bad: bool) -> str:
    return "but" if bad == (use == "well") else "and"


def _never(total: Total, cluster: ClusterDocument | None) -> str:
    """GPUs that never worked, where they are many."""
    if cluster is None or not cluster.never_used:
        return ""
    if math.fsum(gpu.observed_s for gpu in cluster.never_used) < WORTH_SAYING * total.gpu_s:
        return ""
    return f"{len(cluster.never_used):,} of {cluster.n_observed:,} never worked"


def _poor(total: Total, rows: Sequence[RunRow]) -> str:
    """Runs with poorly used GPUs, where they held much of the GPU time of GPUs that were used better."""
    rated = [row for row in rows if row.status == "diagnosed" and row.gpu_s is not None and row.use != "unknown"]
    poor = [row for row in rated if row.use in ("poorly", "unused")]
    held = math.fsum(row.gpu_s or 0.0 for row in poor)
    if not poor or held < WORTH_SAYING * total.gpu_s:
        return ""
    return f"{len(poor):,} of {plural(len(rated), 'run')} used them poorly"


def trend(changes: Changes | None) -> Change | None:
    """The last step of the whole fleet's utilization; None where none stands out of the noise, it may be a drift, or
    there is less of it at less cost.
    """
    if changes is None or changes.correlation >= ALIKE:
        return None
    held = [one for one in changes.found if not one.project and one.quantity == "util_pct"]
    last = max(held, key=lambda one: one.first_week, default=None)
    return None if last is None or _at_less_cost(last) else last


def _at_less_cost(one: Change) -> bool:
    return one.quantity == "util_pct" and one.after < one.before and not one.worse


def better_or_worse(changes: Changes) -> str:
    """Whether it is getting better, as far as that is known."""
    if not changes.n_series:
        return f"Not known yet: changes are looked for where {plural(changes.fewest_weeks, 'week')} or more have runs."
    whole = [one for one in changes.found if not one.project]
    if not whole:
        return "No change of the whole fleet stands out of the noise."
    one = trend(changes) or max(whole, key=lambda one: (one.worse, one.first_week, not _at_less_cost(one)))
    drift = " It may be a slow drift." if changes.correlation >= ALIKE else ""
    return f"{'Worse' if one.worse else 'Better'}: {step_words(one)}{drift}"
