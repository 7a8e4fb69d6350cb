"""``history``: many diagnoses of the same training over time, and whether the newest is worse than the noise.

The band is a prediction interval of one further value: mean and standard deviation of the logarithms of the earlier
values (of a share: of its odds), Student's t with n - 1 degrees of freedom, times sqrt(1 + 1/n) (Hahn and Meeker,
Statistical Intervals, 1991, section 4.7). Its 5 % are divided by the number of quantities (Bonferroni).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudiag.errors import InputError
from gpudiag.report._notebook.runner import DOCUMENT
from gpudiag.report.fleet.history import History, HistoryQuantity, HistoryRun, HistoryVerdict
from gpudiag.report.format import safe

FEWEST = 5
"""Earlier runs from which on a band is drawn: with fewer, t is so wide that only a doubling would show."""
MOST = 20
"""Earlier runs that count, the newest of them: noise of long ago says little of today's."""
LEVEL = 0.05
LEAST = 0.01
"""Half a band is at least so wide, about 1 %: what differs by less is the same for anybody."""


@dataclass(frozen=True)
class Tracked:
    """A quantity that is followed, out of a diagnosis.json; ``higher_is_better`` says which side is worse."""

    name: str
    title: str
    unit: str
    higher_is_better: bool
    of: Callable[[Mapping[str, Any]], float | None]


def _fact(topic: str, name: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda document: _number(document, topic, name)


def _number(document: Mapping[str, Any], topic: str, name: str) -> float | None:
    value = document["measures"].get(topic, {}).get(name, {}).get("value")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _per_completed(topic: str, name: str) -> Callable[[Mapping[str, Any]], float | None]:
    """Over the completed trials, or over the run where it has none at all."""

    def of(document: Mapping[str, Any]) -> float | None:
        total, n = _number(document, topic, name), _number(document, "trials", "n")
        done = _number(document, "trials", "state.COMPLETE.n") if n else 1.0
        if total is None or done is None:
            return None
        return total / done if done else math.inf  # spent, and nothing came of it

    return of


def _utilization(document: Mapping[str, Any]) -> float | None:
    within = _number(document, "ledger", "mean_util_pct")
    return _number(document, "utilization", "mean_pct") if within is None else within


TRACKED = (
    Tracked("util_pct", "mean utilization", "%", True, _utilization),
    Tracked("gpu_s", "GPU time per result", "GPU-s", False, _per_completed("ledger", "total_gpu_s")),
    Tracked("median_s", "median completed trial", "s", False, _fact("trials", "state.COMPLETE.median_s")),
    Tracked("energy_kwh", "energy per result", "kWh", False, _per_completed("power", "energy_kwh")),
)
"""A result is a completed trial, or the run where there are no trials."""


def history(folder: str | Path) -> History:
    """The history in the diagnosis.json files below a folder, in the order in which the runs began.

    Raises InputError where there are fewer than two.
    """
    runs, unread = _read(sorted(Path(folder).rglob(DOCUMENT)))
    runs = list({(run.name, run.start, *run.values.items()): run for run in runs}.values())  # a copy is no second run
    if len(runs) < 2:
        held = f"{len(runs)} {DOCUMENT}" if runs else f"no {DOCUMENT}"
        remedy = f"make them with gpudiag report RUN... -o {folder}"
        raise InputError(f"{folder}: holds {held}, and a history needs two; {remedy}.")
    runs.sort(key=lambda run: (run.start or "", run.name))
    return History("gpudiag.history/1", tuple(runs), tuple(_judged(runs)), tuple(unread))


def _read(paths: Iterable[Path]) -> tuple[list[HistoryRun], list[str]]:
    runs, unread = [], []
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if not str(document["schema"]).startswith("gpudiag.diagnosis/"):
                continue
            name, start = safe(document["run"]["name"]), document["run"]["start"]
            if start is None:
                unread.append(f"{path}: has no time, so that it has no place among the others.")
                continue
            known = {one.name: one.of(document) for one in TRACKED}
            values = {key: value for key, value in known.items() if value is not None and value >= 0}
            runs.append(HistoryRun(name, start, values))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            unread.append(f"{path}: is no diagnosis as gpudiag writes it ({type(error).__name__}).")
    return runs, unread


def _judged(runs: list[HistoryRun]) -> list[HistoryQuantity]:
    known = [one for one in TRACKED if one.name in runs[-1].values]
    return [_quantity(one, runs, LEVEL / len(known)) for one in known]


def _quantity(tracked: Tracked, runs: list[HistoryRun], level: float) -> HistoryQuantity:
    newest = runs[-1].values[tracked.name]
    held = [run.values[tracked.name] for run in runs[:-1] if tracked.name in run.values]
    earlier = [value for value in held if math.isfinite(value) and (value > 0 or tracked.unit == "%")][-MOST:]
    typical = _typical(earlier, tracked.unit == "%") if earlier else None
    if len(earlier) < FEWEST:
        return _of(tracked, newest, typical, None, None, len(earlier), "not assessed")
    low, high = prediction_interval(earlier, level, share=tracked.unit == "%")
    verdict: HistoryVerdict = "within the noise"
    seen = _inside(newest) if tracked.unit == "%" else newest
    if not low <= seen <= high:
        verdict = "better" if (newest > high) == tracked.higher_is_better else "worse"
    return _of(tracked, newest, typical, low, high, len(earlier), verdict)


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
    from scipy.stats import t

    scaled = [_log_odds(value) if share else math.log(value) for value in earlier]
    n, mean = len(scaled), math.fsum(scaled) / len(scaled)
    deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in scaled) / (n - 1))
    reach = max(float(t.ppf(1 - level / 2, n - 1)) * deviation * math.sqrt(1 + 1 / n), LEAST)
    ends = mean - reach, mean + reach
    low, high = (100 / (1 + math.exp(-x)) if share else math.exp(x) for x in ends)
    return low, high


def _log_odds(pct: float) -> float:
    return math.log(_inside(pct) / (100 - _inside(pct)))


def _inside(pct: float) -> float:
    """What stands on an edge is no further off than a twentieth of a percent."""
    return min(max(pct, 0.05), 99.95)
