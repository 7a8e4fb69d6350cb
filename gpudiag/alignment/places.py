"""How well parts of a study fit the telemetry at any place: trials + offset = telemetry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from gpudiag.alignment.chance import noise_of
from gpudiag.alignment.scan import REACH_S, responses_within, running
from gpudiag.alignment.signals import Grid, Signal, edges
from gpudiag.fourier import fast_length

NEAR_S, APART_S = 30.0, 60.0
BESIDE_S = 6.0
MAX_CHANCE = 1e-4
"""That telemetry which has nothing to do with the trials fits so well anywhere (alignment/chance.py)."""
MIN_SEEN = 0.5
"""A part must be seen half as well as all of the telemetry."""

Pair = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Edges of the trials, those of a signal, and where it is seen."""


@dataclass(frozen=True)
class Part:
    """The trials' clock from ``low_s`` to ``high_s``, and an offset at which it may lie."""

    low_s: float
    high_s: float
    offset_s: float


@dataclass(frozen=True)
class Places:
    """What telemetry shows of these trials (starts and ends, s) at any place."""

    signals: list[Signal]
    grid: Grid
    start_s: np.ndarray
    end_s: np.ndarray

    @cached_property
    def responses_s(self) -> tuple[float, ...]:
        return responses_within(float(np.median(self.end_s - self.start_s)))

    @cached_property
    def offset_s(self) -> np.ndarray:
        """The offsets of ``products``."""
        return self.grid.step_s * (self._lags - np.arange(2 * self._lags + 1))

    def products(self, borders_s: np.ndarray) -> list[np.ndarray]:
        """For each response the sum of products of edges over all signals, by stretch of the trials' clock and offset.

        All trials are one model, of which each stretch is cut out, so that no edge stands at its ends.
        """
        cuts = np.searchsorted(self._borders[:-1], borders_s)
        at = np.arange(len(self._borders) - 1)
        inside = [(at >= low) & (at < high) for low, high in pairwise(cuts)]
        return [np.array([self._against(model * own) for own in inside]) for model in self._models]

    @cached_property
    def best_s(self) -> float:
        """The offset at which all trials fit best."""
        best = max((self._against(model) for model in self._models), key=lambda products: float(products.max()))
        return float(self.offset_s[int(np.argmax(best))])

    def best_of(self, part: Part) -> float:
        """The offset at which a part fits best."""
        return float(self.offset_s[int(np.argmax(self._products_of(part)))])

    def stretches(self, most: int, min_trials: int) -> list[tuple[float, float]]:
        """The trials' clock in up to so many stretches of as many trials each; none where there are not two."""
        n = min(most, len(self.start_s) // min_trials)
        if n < 2:
            return []
        borders = np.quantile(self.start_s, np.linspace(0, 1, n + 1))
        borders[-1] = self.end_s.max() + 1
        return list(pairwise(borders.tolist()))

    def rival(self, part: Part, within_s: float) -> float:
        """How well a part fits a minute or more beside its place, no further than that, as a share of its own fit."""
        products = self._products_of(part)
        away = np.abs(self.offset_s - part.offset_s)
        beside = products[(away >= APART_S) & (away <= within_s)]
        return float(beside.max(initial=0.0) / max(products[away < APART_S].max(), 1e-9))

    def fit(self, part: Part) -> tuple[float, list[Pair]]:
        """Mean correlation over signals, each with its best response, and of what; 0 where too little is seen."""
        if not self.sees(part):
            return 0.0, []
        shown = list(self._shown(part))
        fits = np.array([[_correlation(*pair) for pair in pairs] for pairs in shown])
        pairs = [shown[row][k] for k, row in enumerate(fits.argmax(axis=0))]
        return max(0.0, float(fits.max(axis=0).mean())), pairs

    def sees(self, part: Part) -> bool:
        """Whether the telemetry has that time, half as well as its own."""
        first, last = self._bins(part)
        seen = np.mean([signal.seen[max(first, 0) : max(last, 0)].sum() for signal in self.signals])
        usual = np.mean([signal.seen.mean() for signal in self.signals])
        return bool(last - first >= 2 * self.grid.lag and seen >= MIN_SEEN * usual * (last - first))

    def near(self, part: Part) -> float:
        """The best fit within half a minute of the part's place."""
        beside = np.arange(-NEAR_S, NEAR_S + 1, max(self.grid.step_s, BESIDE_S))
        return max(self.fit(replace(part, offset_s=part.offset_s + by))[0] for by in beside)

    def is_sure(self, part: Part, within_s: float = REACH_S) -> bool:
        """Whether the fit of a part at its place is more than chance gives at any place within so far."""
        fit, pairs = self.fit(part)
        if not pairs:
            return False
        period_s = self.grid.step_s * (self.grid.lag if self.grid.reach == 1 else 1)
        noise = noise_of(pairs, self.grid.step_s, period_s, self.n_events(part))
        return noise.chance_of(fit, 1, within_s, len(self.responses_s)) <= MAX_CHANCE

    def n_events(self, part: Part) -> int:
        """Starts and ends of trials within a part."""
        return sum(int(((times >= part.low_s) & (times < part.high_s)).sum()) for times in (self.start_s, self.end_s))

    def gain(self, low_s: float, high_s: float, before_s: float, after_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Times of the trials' clock, and how much better all until then fits at one offset than at another."""
        grid = self.grid
        borders = np.arange(low_s, high_s + grid.step_s, grid.step_s)
        at = [np.round((borders[:-1] + by - grid.start_s) / grid.step_s).astype(int) for by in (before_s, after_s)]
        seen = [np.where((index >= 0) & (index < grid.n), self._total[index.clip(0, grid.n - 1)], 0.0) for index in at]
        sums = []
        for response in self.responses_s:
            edge = edges(running(self.start_s + response, self.end_s, borders), grid)
            sums.append(np.concatenate([[0.0], np.cumsum(edge * (seen[0] - seen[1]))]))
        return borders, max(sums, key=lambda gain: float(2 * gain.max() - gain[-1]))

    def _products_of(self, part: Part) -> np.ndarray:
        """``products`` of one part, by the response that fits it best."""
        options = self.products(np.array([part.low_s, part.high_s]))
        return max((one[0] for one in options), key=lambda products: float(products.max()))

    @cached_property
    def _lags(self) -> int:
        return int(REACH_S // self.grid.step_s)

    @cached_property
    def _borders(self) -> np.ndarray:
        return self.grid.start_s + self.grid.step_s * (np.arange(self.grid.n + 2 * self._lags + 1) - self._lags)

    @cached_property
    def _total(self) -> np.ndarray:
        """The edges of all signals, each less its mean, by its standard deviation; 0 where nothing is seen."""
        known = [(signal.edge, signal.seen, signal.edge[signal.seen]) for signal in self.signals]
        out: np.ndarray = np.sum([np.where(s, edge - own.mean(), 0.0) / own.std() for edge, s, own in known], axis=0)
        return out

    @cached_property
    def _models(self) -> list[np.ndarray]:
        """The edges of all trials, of one size, for each response."""
        return [self._model(response) for response in self.responses_s]

    @cached_property
    def _spectrum(self) -> np.ndarray:
        return np.fft.rfft(self._total, self._size).conj()

    @cached_property
    def _size(self) -> int:
        return fast_length(2 * self.grid.n + 2 * self._lags)

    def _model(self, response_s: float) -> np.ndarray:
        edge = edges(running(self.start_s + response_s, self.end_s, self._borders), self.grid)
        return edge / (float(np.sqrt((edge**2).sum())) or 1.0)

    def _against(self, model: np.ndarray) -> np.ndarray:
        spectrum = np.fft.rfft(model, self._size) * self._spectrum
        out: np.ndarray = np.fft.irfft(spectrum, self._size)[: 2 * self._lags + 1]
        return out

    def _shown(self, part: Part) -> Iterator[list[Pair]]:
        """For each response what the signals show in this part."""
        grid, margin = self.grid, 2 * self.grid.lag
        begin, stop = np.clip(self._bins(part), 0, grid.n)
        borders = grid.start_s - part.offset_s + grid.step_s * np.arange(begin - margin, stop + margin + 1)
        for response in self.responses_s:
            edge = edges(running(self.start_s + response, self.end_s, borders), grid)[margin:-margin]
            yield [(edge, signal.edge[begin:stop], signal.seen[begin:stop]) for signal in self.signals]

    def _bins(self, part: Part) -> tuple[int, int]:
        """First bin of the grid and the one after the last; they may lie beyond it."""
        begin_s = self.grid.start_s - part.offset_s
        return round((part.low_s - begin_s) / self.grid.step_s), round((part.high_s - begin_s) / self.grid.step_s)


def _correlation(x: np.ndarray, y: np.ndarray, seen: np.ndarray) -> float:
    """Pearson's r where the signal is seen; -1 where either never changes."""
    if not seen.any():
        return -1.0
    x, y = x[seen] - x[seen].mean(), y[seen] - y[seen].mean()
    square = float((x * x).sum() * (y * y).sum())
    return float((x * y).sum()) / square**0.5 if square > 1e-9 else -1.0
