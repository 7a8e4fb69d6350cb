"""Ratios with intervals: paired and unpaired durations, means of time series, shares; and many tests at once.

Coverage of these intervals at small n is measured in METHODS 7 (Welch on logs 0.93-0.96 of a nominal 0.95, percentile
bootstrap of a ratio of means 0.83-0.91) and, for whole comparisons, in benchmarks/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from gpudiag.comparison.autocorrelation import (
    BEARABLE,
    MIN_UNITS,
    Dependence,
    Neighbors,
    dependence,
    neighbor_correlation,
    neighbors,
)
from gpudiag.comparison.drift import CHANCE, drift, drifts, has_outliers, usual_drift
from gpudiag.comparison.power import Case
from gpudiag.measures._trials.proportions import CONFIDENCE
from gpudiag.statement import NOTHING, Statement, joined

MIN_ESS = 10.0
"""Effective samples below which a mean of a time series gets no interval (METHODS 7)."""
MIN_BOOTSTRAP = 30
"""Units per side from which a bootstrap of a ratio of means holds its coverage (METHODS 7)."""
MAX_PAIRS = 2_000_000
ROUNDING = 1e-12
"""Standard error of a logarithm up to which values are the same, but for the rounding of their logarithms."""
MOST_LOG = 100.0
"""An interval whose ends are factors beyond this logarithm is none."""
MOST_FACTOR = 10.0
"""An interval about 1 that goes on for this factor, because neighbors may be alike, says nothing and is left out."""
RESAMPLES = 2000
SEED = 7
MOST_EXACT = 25
"""Pairs up to which ranks are counted out; beyond, the normal approximation is as good."""
Z = float(scipy.special.ndtri(0.5 + CONFIDENCE / 2))
Z_ONE_SIDED = float(scipy.special.ndtri(CONFIDENCE))
PAIRED_MEDIAN = "Hodges-Lehmann (median of pairwise means of log ratios), paired"
UNPAIRED_MEDIAN = "Hodges-Lehmann (median of pairwise ratios), unpaired"
OUTLIERS = "There are outliers: the ratio is the median {way} (Hodges-Lehmann), not that of the two means."
ALIKE = "Items that ran one after the other are alike (correlation {found}), so the interval is {how}."
UNSURE = "So few items cannot rule out that those that ran one after the other are alike, so the interval is {how}."
DRIFTS = Statement(
    "Items seem to drift over a run (their slowest waves stand out as in 1 of 20 runs by chance), so the interval, and "
    "what such a pair can show, are wide."
)
ENOUGH = "About {n} items a side would settle it."
SHARES = "Fisher's exact test, score interval (Koopman)"


@dataclass(frozen=True)
class Ratio:
    """Experiment over baseline: estimate, 95 % interval, two-sided p of a ratio of 1; NaN where not estimated.

    ``log_se``: standard error of the logarithm, with ``freedom`` degrees of freedom. ``cases``: what pairs of this size
    may have as these, each with its share; '' its own alone. ``doubt``: why the interval is wide.
    """

    ratio: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    method: str = ""
    log_se: float = math.nan
    freedom: float = math.nan
    cases: tuple[Case, ...] = ()
    doubt: Statement = NOTHING

    @property
    def note(self) -> Statement:
        """What must be said beside it: that it is not the ratio of two means, or why its interval is wide."""
        if self.method not in (PAIRED_MEDIAN, UNPAIRED_MEDIAN):
            return self.doubt
        way = "of the items' ratios, averaged in pairs" if self.method == PAIRED_MEDIAN else "of pairwise ratios"
        return joined(Statement(OUTLIERS, way=way), self.doubt)

    @property
    def inverse(self) -> Ratio:
        """Baseline over experiment."""
        return replace(self, ratio=1 / self.ratio, low=1 / self.high, high=1 / self.low)


@dataclass(frozen=True)
class Mean:
    """A mean with the standard error of its logarithm (NaN unknown) and the effective number of units behind it."""

    mean: float
    log_se: float = math.nan
    n: float = 0.0


def paired_ratio(baseline: np.ndarray, experiment: np.ndarray) -> Ratio:
    """Ratio of the same items: the geometric mean of their ratios with t on logs; where outliers are, Hodges-Lehmann,
    the median of pairwise means of log ratios, with the signed ranks inverted.

    Items in the order in which they ran: ratios that drift are worth fewer items, as in :func:`unpaired_ratio`.
    """
    logs = np.log(experiment) - np.log(baseline)
    n = len(logs)
    if n < MIN_UNITS:
        return Ratio(math.exp(float(logs.mean())), method="geometric mean of ratios") if n else Ratio(math.nan)
    found = neighbors(logs)
    ratio = believed(found, [logs], lambda worth: _paired_t(logs, worth(logs)))
    if not found.bounded or not has_outliers(logs) or n * (n + 1) // 2 > MAX_PAIRS:
        return ratio
    slow = drift(logs)
    medians = [_by_signed_ranks(logs, found.likely(logs).inflation, math.inf)]
    medians += [_by_signed_ranks(logs, slow.inflation, slow.size - 1)] if drifts(logs) else []
    return _by_median(ratio, medians)


def _paired_t(logs: np.ndarray, worth: Dependence) -> Ratio:
    error = float(logs.std(ddof=1)) * math.sqrt(worth.inflation / len(logs))
    return _t_ratio(float(logs.mean()), error, worth.size - 1, "t on log ratios, paired")


def _by_signed_ranks(logs: np.ndarray, inflation: float, freedom: float) -> Ratio | None:
    """Hodges and Lehmann's ratio; ranks are counted, unless their variance is ``inflation`` times that of independent
    ones, known with so many degrees of freedom.
    """
    n = len(logs)
    i, j = np.triu_indices(n)
    walsh = np.sort((logs[i] + logs[j]) / 2)
    if inflation > 1 or freedom < math.inf:
        spread = math.sqrt(inflation * n * (n + 1) * (2 * n + 1) / 24)
        away = abs(float(scipy.stats.rankdata(np.abs(logs))[logs > 0].sum()) - n * (n + 1) / 4)
        return _from_sorted(walsh, away, n * (n + 1) / 4, spread, freedom, PAIRED_MEDIAN)
    no_ties = n <= MOST_EXACT and bool(np.all(logs != 0)) and len(np.unique(np.abs(logs))) == n
    p = float(scipy.stats.wilcoxon(logs, method="exact" if no_ties else "approx").pvalue) if np.any(logs) else 1.0
    return _between(walsh, signed_rank(n), p, math.inf, PAIRED_MEDIAN)


def unpaired_ratio(baseline: np.ndarray, experiment: np.ndarray) -> Ratio:
    """Ratio of two samples: that of geometric means with Welch on logs; where outliers are, Hodges-Lehmann, the median
    of pairwise ratios, with the Mann-Whitney inversion.

    Values in the order in which they ran: where neighbours are alike there are fewer independent ones, and where too
    few values cannot rule out that they are, the interval allows for it (:class:`~.autocorrelation.Neighbors`). Where
    the values drift more than neighbours show, the interval allows for that (:func:`~.drift.drift`).
    """
    a, b = np.log(baseline), np.log(experiment)
    if not len(a) or not len(b):
        return Ratio(math.nan)
    estimate = float(b.mean() - a.mean())
    if min(len(a), len(b)) < MIN_UNITS:
        return Ratio(math.exp(estimate), method="ratio of geometric means")
    found = neighbors(a, b)
    ratio = believed(found, [a, b], lambda worth: _welch(*(_log_mean(logs, worth(logs)) for logs in (a, b))))
    if not found.bounded or not (has_outliers(a) or has_outliers(b)) or len(a) * len(b) > MAX_PAIRS:
        return ratio
    medians = [_by_ranks(a, b, max(found.likely(x).inflation for x in (a, b)), math.inf)]
    medians += [_by_ranks(a, b, *_drift_of_both(a, b))] if drifts(a, b) else []
    return _by_median(ratio, medians)


def _welch(baseline: Mean, experiment: Mean) -> Ratio:
    return log_ratio(baseline, experiment, "Welch on logs, unpaired")


def _by_ranks(a: np.ndarray, b: np.ndarray, inflation: float, freedom: float) -> Ratio | None:
    """Hodges and Lehmann's ratio, the variance of ranks ``inflation`` times that of independent values."""
    steps = np.sort((b[:, None] - a[None, :]).ravel())
    spread = math.sqrt(inflation * len(a) * len(b) * (len(a) + len(b) + 1) / 12)
    half = len(a) * len(b) / 2
    ranks = scipy.stats.rankdata(np.concatenate([b, a]))[: len(b)]
    away = abs(float(ranks.sum()) - len(b) * (len(b) + 1) / 2 - half)  # Mann and Whitney's U
    return _from_sorted(steps, away, half, spread, freedom, UNPAIRED_MEDIAN)


def _drift_of_both(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Inflation of the difference of two means by the drifts of both, and its degrees of freedom (Satterthwaite)."""
    both = [drift(x) for x in (a, b)]
    plain = [float(x.var()) / len(x) for x in (a, b)]
    parts = [one.inflation * variance for one, variance in zip(both, plain, strict=True)]
    if not sum(parts) > 0:
        return 1.0, math.inf
    weight = sum(part**2 / (one.size - 1) for one, part in zip(both, parts, strict=True))
    return sum(parts) / sum(plain), sum(parts) ** 2 / weight


Worth = Callable[[np.ndarray], Dependence]


def believed(found: Neighbors, series: Sequence[np.ndarray], ratio: Callable[[Worth], Ratio]) -> Ratio:
    """Which ``ratio`` of ``series`` stands: that by the neighbors found, or by the drift where that is less sure, or
    where too few values bound how alike neighbors are that by the worst.
    """
    likely, slow, worst = ratio(found.likely), ratio(drift), ratio(found.worst)
    share = found.share_bounded
    cases = [Case(share * (1 - CHANCE), likely.log_se, likely.freedom)]
    cases += [Case(share * CHANCE, likely.log_se * usual_drift(*series), slow.freedom)]
    cases += [Case(1 - share, worst.log_se, worst.freedom)]
    shown = likely
    if drifts(*series) and width(slow) > width(likely):
        shown, cases[:2] = replace(slow, doubt=DRIFTS), [Case(share, slow.log_se, slow.freedom)]
    if found.bounded:
        return replace(shown, cases=tuple(cases))
    if worst.log_se <= ROUNDING:  # all values are the same: no interval, and none to doubt
        return replace(worst, cases=tuple(cases))
    nothing = not (worst.high < MOST_FACTOR * worst.ratio or worst.p < 1 - CONFIDENCE)
    how = "left out" if nothing else "wide"
    beyond_chance = found.correlation > max(BEARABLE, Z_ONE_SIDED * found.error)
    doubt = Statement(ALIKE, found=found.correlation, how=how) if beyond_chance else Statement(UNSURE, how=how)
    if found.enough is not None:
        doubt = joined(doubt, Statement(ENOUGH, n=found.enough))
    shown = Ratio(worst.ratio, method=worst.method) if nothing else worst
    return replace(shown, cases=tuple(cases), doubt=doubt)


def width(ratio: Ratio) -> float:
    """Of the interval as a factor; infinite without one."""
    return ratio.high / ratio.low if ratio.low > 0 else math.inf


def _by_median(ratio: Ratio, medians: Sequence[Ratio | None]) -> Ratio:
    """The less sure of medians, where all are there, with what pairs of its size may have beside it."""
    known = [median for median in medians if median is not None]
    if len(known) < len(medians):
        return ratio
    shown = max(known, key=width)
    first = Case(ratio.cases[0].share, shown.log_se, shown.freedom)
    return replace(shown, cases=(first, *ratio.cases[1:]), doubt=DRIFTS if shown is not known[0] else NOTHING)


def _log_mean(logs: np.ndarray, worth: Dependence) -> Mean:
    """Geometric mean of values by their logarithms, as sure as the independent values that they are worth."""
    error = float(logs.std(ddof=1)) * math.sqrt(worth.inflation / len(logs))
    return Mean(math.exp(float(logs.mean())), error, worth.size)


def log_ratio(baseline: Mean, experiment: Mean, method: str) -> Ratio:
    """Ratio of two means whose logarithms have these standard errors; Welch-Satterthwaite degrees of freedom."""
    if not (baseline.mean > 0 and experiment.mean > 0):
        return Ratio(math.nan)
    estimate = math.log(experiment.mean) - math.log(baseline.mean)  # their ratio may be too small for a float
    if abs(estimate) > MOST_LOG:
        return Ratio(math.nan)
    parts = [(side.log_se**2, side.n - 1) for side in (baseline, experiment)]
    total = sum(variance for variance, _ in parts)
    if not total >= 0 or min(freedom for _, freedom in parts) <= 0:
        return Ratio(math.exp(estimate), method=method)
    weight = sum(variance**2 / freedom for variance, freedom in parts)
    return _t_ratio(estimate, math.sqrt(total), total**2 / weight if weight else math.inf, method)


def mean_ratio(baseline: np.ndarray, experiment: np.ndarray, *, paired: bool) -> Ratio:
    """Ratio of arithmetic means: what total time needs. A bootstrap interval from 30 units a side on, else none."""
    if not len(baseline) or not len(experiment) or not baseline.mean() > 0:
        return Ratio(math.nan)
    ratio = float(experiment.mean() / baseline.mean())
    if min(len(baseline), len(experiment)) < MIN_BOOTSTRAP or not 0 < ratio < math.inf:
        return Ratio(ratio, method="ratio of arithmetic means")
    rng = np.random.default_rng(SEED)
    first = rng.integers(0, len(baseline), (RESAMPLES, len(baseline)))
    second = first if paired else rng.integers(0, len(experiment), (RESAMPLES, len(experiment)))
    drawn = np.log(experiment[second].mean(axis=1) / baseline[first].mean(axis=1))
    a, b = np.log(baseline), np.log(experiment)
    series = (b - a,) if paired else (a, b)
    found = neighbors(*series)
    spread, method = float(drawn.std(ddof=1)), "bootstrap of the ratio of arithmetic means"

    def by(worth: Worth) -> Ratio:
        left = [worth(x) for x in series]
        freedom = min(min(len(baseline), len(experiment)) - 1, sum(one.size - 1 for one in left))
        return _t_ratio(math.log(ratio), spread * math.sqrt(max(one.inflation for one in left)), freedom, method)

    return believed(found, series, by)


def series_mean(values: np.ndarray, mean: float) -> Mean:
    """``mean`` of a time series with the error that its effective sample size leaves; none below 10."""
    found = dependence(values, neighbor_correlation(values))
    if found.size < MIN_ESS or not mean > 0:
        return Mean(mean, n=found.size)
    return Mean(mean, float(values.std(ddof=1)) * math.sqrt(found.inflation / len(values)) / mean, found.size)


def share_ratio(hits_a: int, n_a: int, hits_b: int, n_b: int) -> Ratio:
    """Ratio of two shares: Fisher's exact p, and Koopman's interval, which is honest where a share is 0 or 1.

    P. A. R. Koopman, Biometrics 40 (1984) 513: all ratios that a score test at 5 % does not reject. Without a hit in
    the baseline there is no upper end (NaN), without one in the experiment the lower end is 0.
    """
    if not n_a or not n_b:
        return Ratio(math.nan)
    p = float(scipy.stats.fisher_exact([[hits_a, n_a - hits_a], [hits_b, n_b - hits_b]]).pvalue)
    if not hits_a and not hits_b:
        return Ratio(math.nan, p=1.0, method=SHARES)
    ratio = hits_b / n_b / (hits_a / n_a) if hits_a else math.nan
    low = _score_end(hits_a, n_a, hits_b, n_b) if hits_b else 0.0
    high = 1 / _score_end(hits_b, n_b, hits_a, n_a) if hits_a else math.nan
    return Ratio(ratio, low, high, p, SHARES)


def _score_end(hits_a: int, n_a: int, hits_b: int, n_b: int) -> float:
    """The ratio b over a below the observed one at which the score statistic is just 95 % of its distribution."""

    def beyond(log: float) -> float:
        ratio = math.exp(log)
        both = (n_a + n_b) * ratio
        half = (ratio * (n_b + hits_a) + hits_b + n_a) / 2
        a = (half - math.sqrt(max(half * half - both * (hits_a + hits_b), 0.0))) / both  # most likely under the ratio
        a = min(max(a, 1e-300), 1.0, 1 / ratio)
        b = min(ratio * a, 1.0)
        away, variance = hits_b / n_b - ratio * hits_a / n_a, b * (1 - b) / n_b + ratio**2 * a * (1 - a) / n_a
        return (away / math.sqrt(variance) if variance > 0 else 0.0 if away <= 0 else math.inf) - Z

    top = math.log(hits_b / n_b / (hits_a / n_a)) if hits_a else math.log(1e6)
    bottom = top
    while beyond(bottom) < 0:
        bottom -= 1.0
    return math.exp(float(scipy.optimize.brentq(beyond, bottom, top, xtol=1e-10))) if bottom < top else math.exp(top)


def rate_ratio(counts: Sequence[int], exposure: Sequence[float]) -> Ratio:
    """Ratio of two Poisson rates: exact conditional binomial test and Clopper-Pearson interval of the second's share.

    J. Przyborowski and H. Wilenski, Biometrika 31 (1940) 313.
    """
    (a, b), (t_a, t_b) = counts, exposure
    if not a + b or not (t_a > 0 and t_b > 0):
        return Ratio(math.nan)
    test = scipy.stats.binomtest(b, a + b, t_b / (t_a + t_b))
    low, high = (end / (1 - end) * t_a / t_b if end < 1 else math.inf for end in test.proportion_ci(CONFIDENCE))
    ratio = b / t_b / (a / t_a) if a else math.nan
    return Ratio(ratio, low, high if math.isfinite(high) else math.nan, float(test.pvalue), "conditional binomial test")


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's p-values (JRSS B 57 (1995) 289); NaN stays NaN and does not count."""
    p = np.array(p_values, float)
    known = ~np.isnan(p)
    if known.any():
        p[known] = scipy.stats.false_discovery_control(p[known])
    return [float(value) for value in p]


def _t_ratio(estimate: float, se: float, freedom: float, method: str) -> Ratio:
    if se == 0:
        exact = math.exp(estimate)
        return Ratio(exact, exact, exact, 1.0 if estimate == 0 else 0.0, method, 0.0, freedom)
    half = float(scipy.special.stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * se
    if not half + abs(estimate) < MOST_LOG:
        return Ratio(math.exp(estimate), method=method)
    p = float(2 * scipy.special.stdtr(freedom, -abs(estimate) / se))
    return Ratio(math.exp(estimate), math.exp(estimate - half), math.exp(estimate + half), p, method, se, freedom)


def signed_rank(n: int) -> int:
    """How many of the Walsh averages of ``n`` pairs lie below their 95 % interval; -1 where even all do not suffice.

    The greatest c with P(W <= c) <= 2.5 % under Wilcoxon's signed ranks, which up to 25 pairs are counted: each rank
    is in the sum or is not.
    """
    if n > MOST_EXACT:
        return math.floor(n * (n + 1) / 4 - 0.5 - Z * math.sqrt(n * (n + 1) * (2 * n + 1) / 24))
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):
        ways[rank:] = ways[rank:] + ways[:-rank]
    return int(np.searchsorted(np.cumsum(ways) / 2.0**n, (1 - CONFIDENCE) / 2, "right")) - 1


def _from_sorted(
    steps: np.ndarray, away: float, half: float, spread: float, freedom: float, method: str
) -> Ratio | None:
    """Median of sorted differences, by the sum of ranks: so far ``away`` from its middle, with this spread."""
    t = float(scipy.special.stdtrit(freedom, 0.5 + CONFIDENCE / 2))
    p = min(float(2 * scipy.special.stdtr(freedom, -max(away - 0.5, 0.0) / spread)), 1.0) if spread > 0 else math.nan
    return _between(steps, math.floor(half - 0.5 - t * spread), p, freedom, method)


def _between(steps: np.ndarray, place: int, p: float, freedom: float, method: str) -> Ratio | None:
    """Median of sorted differences, and those at ``place`` from either end: what the test cannot tell from it; None
    where even the outermost are told from it.
    """
    if place < 0:
        return None
    low, high = float(steps[place]), float(steps[len(steps) - 1 - place])
    se = (high - low) / (2 * float(scipy.special.stdtrit(freedom, 0.5 + CONFIDENCE / 2)))
    return Ratio(math.exp(float(np.median(steps))), math.exp(low), math.exp(high), p, method, se, freedom)
