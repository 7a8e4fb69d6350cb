"""Ratios with intervals: paired and unpaired durations, means of time series, shares; and many tests at once.

Coverage of these intervals at small n is measured in METHODS 7 (Welch on logs 0.93-0.96 of a nominal 0.95, percentile
bootstrap of a ratio of means 0.83-0.91) and, for whole comparisons, in benchmarks/accuracy.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from gpudiag.comparison.autocorrelation import Dependence, dependence, neighbor_correlation, surely_alike
from gpudiag.measures._trials.proportions import CONFIDENCE
from gpudiag.statement import NOTHING, Statement

MIN_UNITS = 6
"""Independent units per side below which a number is described and gets no interval (METHODS 7, check 7)."""
MIN_ESS = 10.0
"""Effective samples below which a mean of a time series gets no interval (METHODS 7)."""
MIN_BOOTSTRAP = 30
"""Units per side from which a bootstrap of a ratio of means holds its coverage (METHODS 7)."""
OUTLIER_MADS = 5.0
MAX_PAIRS = 2_000_000
RESAMPLES = 2000
SEED = 7
MOST_EXACT = 25
"""Pairs up to which ranks are counted out; beyond, the normal approximation is as good."""
Z = float(stats.norm.ppf(0.5 + CONFIDENCE / 2))
PAIRED_MEDIAN = "Hodges-Lehmann (median of pairwise means of log ratios), paired"
UNPAIRED_MEDIAN = "Hodges-Lehmann (median of pairwise ratios), unpaired"
OUTLIERS = "There are outliers: the ratio is the median {way} (Hodges-Lehmann), not that of the two means."
ALIKE = "ratio of geometric means; neighbors too alike to test"
"""Of values of which fewer than six are independent."""
SHARES = "Fisher's exact test, score interval (Koopman)"


@dataclass(frozen=True)
class Ratio:
    """Experiment over baseline: estimate, 95 % interval, two-sided p of a ratio of 1; NaN where not estimated.

    ``log_se``: standard error of the logarithm, with ``freedom`` degrees of freedom.
    """

    ratio: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    method: str = ""
    log_se: float = math.nan
    freedom: float = math.nan

    @property
    def note(self) -> Statement:
        """What must be said beside two means: that this is not their ratio."""
        if self.method not in (PAIRED_MEDIAN, UNPAIRED_MEDIAN):
            return NOTHING
        way = "of the items' ratios, averaged in pairs" if self.method == PAIRED_MEDIAN else "of pairwise ratios"
        return Statement(OUTLIERS, way=way)

    @property
    def inverse(self) -> Ratio:
        """Baseline over experiment."""
        return Ratio(1 / self.ratio, 1 / self.high, 1 / self.low, self.p, self.method, self.log_se, self.freedom)


@dataclass(frozen=True)
class Mean:
    """A mean with the standard error of its logarithm (NaN unknown) and the effective number of units behind it."""

    mean: float
    log_se: float = math.nan
    n: float = 0.0


def paired_ratio(baseline: np.ndarray, experiment: np.ndarray) -> Ratio:
    """Ratio of the same items: the geometric mean of their ratios with t on logs; where outliers are, Hodges-Lehmann,
    the median of pairwise means of log ratios, with the signed ranks inverted.

    Items in the order in which they ran: ratios that surely drift are worth fewer items, as in :func:`unpaired_ratio`.
    """
    logs = np.log(experiment) - np.log(baseline)
    n = len(logs)
    if n < MIN_UNITS:
        return Ratio(math.exp(float(logs.mean())), method="geometric mean of ratios") if n else Ratio(math.nan)
    (series,) = _tame(logs)
    alike = neighbor_correlation(series)
    worth = dependence(series, alike) if surely_alike(alike, n) else Dependence(n, 1.0)
    if worth.size < MIN_UNITS:
        return Ratio(math.exp(float(logs.mean())), method=ALIKE)
    if has_outliers(logs) and n * (n + 1) // 2 <= MAX_PAIRS:
        return _by_signed_ranks(logs, worth.inflation)
    error = float(logs.std(ddof=1)) * math.sqrt(worth.inflation / n)
    return _t_ratio(float(logs.mean()), error, worth.size - 1, "t on log ratios, paired")


def _by_signed_ranks(logs: np.ndarray, inflation: float) -> Ratio:
    """Hodges and Lehmann's ratio; ranks are counted, and with alike neighbors their variance is ``inflation`` times."""
    n = len(logs)
    i, j = np.triu_indices(n)
    walsh = np.sort((logs[i] + logs[j]) / 2)
    if inflation > 1:
        spread = math.sqrt(inflation * n * (n + 1) * (2 * n + 1) / 24)
        away = abs(float(stats.rankdata(np.abs(logs))[logs > 0].sum()) - n * (n + 1) / 4)
        p = min(float(2 * stats.norm.sf(max(away - 0.5, 0.0) / spread)), 1.0)
        return _from_sorted(walsh, math.floor(n * (n + 1) / 4 - 0.5 - Z * spread), p, PAIRED_MEDIAN)
    no_ties = n <= MOST_EXACT and bool(np.all(logs != 0)) and len(np.unique(np.abs(logs))) == n
    p = float(stats.wilcoxon(logs, method="exact" if no_ties else "approx").pvalue) if np.any(logs) else 1.0
    return _from_sorted(walsh, signed_rank(n), p, PAIRED_MEDIAN)


def unpaired_ratio(baseline: np.ndarray, experiment: np.ndarray) -> Ratio:
    """Ratio of two samples: that of geometric means with Welch on logs; where outliers are, Hodges-Lehmann, the median
    of pairwise ratios, with the Mann-Whitney inversion.

    Values in the order in which they ran: where neighbours are alike there are fewer independent ones, and no interval
    where that leaves fewer than six.
    """
    a, b = np.log(baseline), np.log(experiment)
    if not len(a) or not len(b):
        return Ratio(math.nan)
    estimate = float(b.mean() - a.mean())
    if min(len(a), len(b)) < MIN_UNITS:
        return Ratio(math.exp(estimate), method="ratio of geometric means")
    series = _tame(a, b)
    alike = neighbor_correlation(*series)
    worth = [dependence(values, alike) for values in series]
    if min(one.size for one in worth) < MIN_UNITS and surely_alike(alike, len(a), len(b)):
        return Ratio(math.exp(estimate), method=ALIKE)
    if (has_outliers(a) or has_outliers(b)) and len(a) * len(b) <= MAX_PAIRS:
        steps = np.sort((b[:, None] - a[None, :]).ravel())
        inflation = max(one.inflation for one in worth)
        spread = math.sqrt(inflation * len(a) * len(b) * (len(a) + len(b) + 1) / 12)
        half = len(a) * len(b) / 2
        away = abs(float(stats.mannwhitneyu(b, a).statistic) - half)
        p = float(2 * stats.norm.sf(max(away - 0.5, 0.0) / spread))
        place = math.floor(half - 0.5 - Z * spread)
        return _from_sorted(steps, place, min(p, 1.0), UNPAIRED_MEDIAN)
    return log_ratio(_log_mean(a, worth[0]), _log_mean(b, worth[1]), "Welch on logs, unpaired")


def _log_mean(logs: np.ndarray, worth: Dependence) -> Mean:
    """Geometric mean of values by their logarithms, as sure as the independent values that they are worth."""
    error = float(logs.std(ddof=1)) * math.sqrt(worth.inflation / len(logs))
    return Mean(math.exp(float(logs.mean())), error, worth.size)


def log_ratio(baseline: Mean, experiment: Mean, method: str) -> Ratio:
    """Ratio of two means whose logarithms have these standard errors; Welch-Satterthwaite degrees of freedom."""
    if not (baseline.mean > 0 and experiment.mean > 0):
        return Ratio(math.nan)
    estimate = math.log(experiment.mean / baseline.mean)
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
    if min(len(baseline), len(experiment)) < MIN_BOOTSTRAP:
        return Ratio(ratio, method="ratio of arithmetic means")
    rng = np.random.default_rng(SEED)
    first = rng.integers(0, len(baseline), (RESAMPLES, len(baseline)))
    second = first if paired else rng.integers(0, len(experiment), (RESAMPLES, len(experiment)))
    drawn = np.log(experiment[second].mean(axis=1) / baseline[first].mean(axis=1))
    se = float(drawn.std(ddof=1))
    if not paired:
        a, b = np.log(baseline), np.log(experiment)
        se *= math.sqrt(max(dependence(x, neighbor_correlation(a, b)).inflation for x in (a, b)))
    freedom = min(len(baseline), len(experiment)) - 1
    return _t_ratio(math.log(ratio), se, freedom, "bootstrap of the ratio of arithmetic means")


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
    p = float(stats.fisher_exact([[hits_a, n_a - hits_a], [hits_b, n_b - hits_b]]).pvalue)
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
    return math.exp(float(optimize.brentq(beyond, bottom, top, xtol=1e-10))) if bottom < top else math.exp(top)


def rate_ratio(counts: Sequence[int], exposure: Sequence[float]) -> Ratio:
    """Ratio of two Poisson rates: exact conditional binomial test and Clopper-Pearson interval of the second's share.

    J. Przyborowski and H. Wilenski, Biometrika 31 (1940) 313.
    """
    (a, b), (t_a, t_b) = counts, exposure
    if not a + b or not (t_a > 0 and t_b > 0):
        return Ratio(math.nan)
    test = stats.binomtest(b, a + b, t_b / (t_a + t_b))
    low, high = (end / (1 - end) * t_a / t_b if end < 1 else math.inf for end in test.proportion_ci(CONFIDENCE))
    ratio = b / t_b / (a / t_a) if a else math.nan
    return Ratio(ratio, low, high if math.isfinite(high) else math.nan, float(test.pvalue), "conditional binomial test")


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's p-values (JRSS B 57 (1995) 289); NaN stays NaN and does not count."""
    p = np.array(p_values, float)
    known = ~np.isnan(p)
    if known.any():
        p[known] = stats.false_discovery_control(p[known])
    return [float(value) for value in p]


def has_outliers(logs: np.ndarray) -> bool:
    """A value more than 5 scaled median deviations from the median."""
    away = np.abs(logs - np.median(logs))
    mad = float(np.median(away)) * 1.4826
    return bool(mad > 0 and away.max() > OUTLIER_MADS * mad)


def _tame(*logs: np.ndarray) -> tuple[np.ndarray, ...]:
    """The series themselves, or their ranks where outliers would hide how alike neighbors are."""
    return tuple(stats.rankdata(one) for one in logs) if any(map(has_outliers, logs)) else logs


def _t_ratio(estimate: float, se: float, freedom: float, method: str) -> Ratio:
    if se == 0:
        exact = math.exp(estimate)
        return Ratio(exact, exact, exact, 1.0 if estimate == 0 else 0.0, method, 0.0, freedom)
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, freedom)) * se
    p = float(2 * stats.t.sf(abs(estimate) / se, freedom))
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


def _from_sorted(steps: np.ndarray, place: int, p: float, method: str) -> Ratio:
    """Median of sorted differences, and those at ``place`` from either end: what the test cannot tell from it."""
    low, high = float(steps[max(place, 0)]), float(steps[len(steps) - 1 - max(place, 0)])
    se = (high - low) / (2 * Z)
    return Ratio(math.exp(float(np.median(steps))), math.exp(low), math.exp(high), p, method, se, math.inf)
