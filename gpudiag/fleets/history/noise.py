"""Whether the newest run differs from the noise of the earlier ones.

The band is a prediction interval of one further value, from the earlier ones since their level last changed: mean and
standard deviation of their logarithms (of a share: of its odds), Student's t with n - 1 degrees of freedom, times
sqrt(1 + 1/n) (Hahn and Meeker, Statistical Intervals, 1991, section 4.7). Its 5 % are divided by the number of
quantities (Bonferroni). Failed trials must also be more, or fewer, than chance makes of the earlier runs' trials
(Fisher's exact test): of sixteen trials one may fail in any night.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

import scipy

from gpudiag.fleets.history.runs import changed
from gpudiag.fleets.history.tracked import FAILED, TRACKED, Tracked
from gpudiag.fleets.steps import steps
from gpudiag.report.fleet.history import FEWEST, HistoryQuantity, HistoryRun, HistoryStep, HistoryVerdict

MOST = 20
"""Earlier runs that count, the newest of them: noise of long ago says little of today's."""
LEVEL = 0.05
LEAST = 0.01
"""Half a band is at least so wide, about 1 %: what differs by less is the same for anybody."""


def judged(runs: list[HistoryRun]) -> list[HistoryQuantity]:
    """Each quantity that any run has; what the newest lacks is not assessed."""
    known = [one for one in TRACKED if one.name in runs[-1].values]
    held = [one for one in TRACKED if any(one.name in run.values for run in runs)]
    level = LEVEL / len(known) if known else LEVEL
    made = [_quantity(one, runs, level) if one in known else _lacking(one, runs) for one in held]
    cheaper = any(one.name == "gpu_s" and one.verdict == "better" for one in made)
    return [replace(one, verdict="lower") if cheaper and _is_less_use(one) else one for one in made]


def _is_less_use(one: HistoryQuantity) -> bool:
    return one.name == "util_pct" and one.verdict == "worse"


def _lacking(tracked: Tracked, runs: list[HistoryRun]) -> HistoryQuantity:
    """Of a quantity that earlier runs have and the newest has not."""
    held = [value for run in runs if math.isfinite(value := run.values.get(tracked.name, math.nan))]
    return _of(tracked, math.nan, None, None, None, len(held), "not assessed")


def _quantity(tracked: Tracked, runs: list[HistoryRun], level: float) -> HistoryQuantity:
    newest = runs[-1].values[tracked.name]
    since = max((step.at - 1 for step in _steps(tracked, runs[:-1], level)), default=0)
    held = [run.values[tracked.name] for run in runs[since:-1] if tracked.name in run.values]
    earlier = [value for value in held if math.isfinite(value) and (value > 0 or tracked.unit == "%")][-MOST:]
    typical = _typical(earlier, tracked.unit == "%") if earlier else None
    if len(earlier) < FEWEST:
        return _of(tracked, newest, typical, None, None, len(earlier), "not assessed")
    low, high = prediction_interval(earlier, level, share=tracked.unit == "%")
    if tracked is FAILED:
        least, most = _failures_by_chance(runs[since:-1][-MOST:], runs[-1], level)
        low, high = min(low, least), max(high, most)
    verdict: HistoryVerdict = "within the noise"
    seen = _inside(newest) if tracked.unit == "%" else newest
    if not low <= seen <= high:
        verdict = "better" if (newest > high) == tracked.higher_is_better else "worse"
    if tracked.per_result and math.isfinite(newest) and _is_other_work(runs[since:], level):
        verdict = "not assessed"
    made = _of(tracked, newest, typical, low, high, len(earlier), verdict)
    return replace(made, steps=_steps(tracked, runs, level))


def _is_other_work(runs: list[HistoryRun], level: float) -> bool:
    """Whether the training of the newest run is of another number of steps than the noise of the others explains."""
    *earlier, newest = [run.steps for run in runs]
    known = [steps for steps in earlier if steps][-MOST:]
    if not newest or len(known) < FEWEST:
        return False
    low, high = prediction_interval(known, level)
    return not low <= newest <= high


def _failures_by_chance(earlier: list[HistoryRun], newest: HistoryRun, level: float) -> tuple[float, float]:
    """Between which shares of failed trials, in percent, Fisher's exact test tells the newest run's trials from all of
    the earlier runs' with less than ``level``.
    """
    counts = [run.failures for run in earlier if run.failures]
    if not counts or not newest.failures:
        return math.inf, -math.inf
    failed, ended = (sum(column) for column in zip(*counts, strict=True))
    of = newest.failures[1]

    def differs(k: int) -> bool:
        return float(scipy.stats.fisher_exact([[k, of - k], [failed, ended - failed]]).pvalue) <= level

    middle = min(round(of * failed / ended), of)
    most = bisect_left(range(middle, of + 1), True, key=differs) + middle - 1
    least = middle - bisect_left(range(middle + 1), True, key=lambda back: differs(middle - back)) + 1
    return 100 * max(least, 0) / of, 100 * min(max(most, 0), of) / of


def _steps(tracked: Tracked, runs: list[HistoryRun], level: float) -> tuple[HistoryStep, ...]:
    """Where the level changed, in all runs together."""
    is_share = tracked.unit == "%"
    known = [(at, run.values[tracked.name]) for at, run in enumerate(runs) if tracked.name in run.values]
    known = [(at, value) for at, value in known if math.isfinite(value) and (value > 0 or is_share)]
    scaled = [_log_odds(value) if is_share else math.log(value) for _, value in known]
    held = steps(scaled, level, LEAST)
    edges = [0, *(one.at for one in held), len(known)]
    out = []
    for low, at, high in zip(edges, edges[1:], edges[2:], strict=False):
        before, after = (
            _typical([max(value, 1e-9) for _, value in known[a:b]], is_share) for a, b in ((low, at), (at, high))
        )
        first = known[at][0]
        out.append(HistoryStep(first + 1, runs[first].name, before, after, changed(runs[first - 1], runs[first])))
    return tuple(out)


def _typical(values: list[float], share: bool) -> float:
    if share:
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _of(
    tracked: Tracked,
    newest: float,
    typical: float | None,
    low: float | None,
    high: float | None,
    n: int,
    verdict: HistoryVerdict,
) -> HistoryQuantity:
    return HistoryQuantity(tracked.name, tracked.title, tracked.unit, newest, typical, low, high, n, verdict)


def prediction_interval(earlier: list[float], level: float, *, share: bool = False) -> tuple[float, float]:
    """Where one further value lies with probability 1 - ``level``, if the logarithms are normal and independent; of a
    ``share`` in percent, the logarithms of its odds.
    """
    scaled = [_log_odds(value) if share else math.log(value) for value in earlier]
    n, mean = len(scaled), math.fsum(scaled) / len(scaled)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in scaled) / (n - 1))
    reach = max(float(scipy.special.stdtrit(n - 1, 1 - level / 2)) * deviation * math.sqrt(1 + 1 / n), LEAST)
    ends = mean - reach, mean + reach
    low, high = (100 / (1 + math.exp(-x)) if share else math.exp(x) for x in ends)
    return low, high


def _log_odds(pct: float) -> float:
    return math.log(_inside(pct) / (100 - _inside(pct)))


def _inside(pct: float) -> float:
    """What stands on an edge is no further off than a twentieth of a percent."""
    return min(max(pct, 0.05), 99.95)
