"""Whatever is asked of one run, and by whoever: each measure, forecast, capacity and replay is made once."""

from __future__ import annotations

import inspect
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from sampleruns import diagnosed

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.errors import NotMeasurable
from gpudiag.faults import strict
from gpudiag.forecast.memory.capacity import memory_capacity
from gpudiag.forecast.memory.constraint import combinations
from gpudiag.forecast.memory.crashes import find_crashes
from gpudiag.forecast.memory.overflow import overflow_table
from gpudiag.forecast.memory.peaks import trial_peaks
from gpudiag.forecast.parallelism.backtest import backtest
from gpudiag.forecast.parallelism.model import whole
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.forecast.parallelism.what_if import what_if
from gpudiag.forecast.pruning.play import backtest as replayed_log
from gpudiag.forecast.pruning.recorded import recorded_studies
from gpudiag.forecast.pruning.replay import replay_pruner
from gpudiag.measures import MEASURES
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._time.window import timed_trials
from gpudiag.measures._time.work import work_by_gpu
from gpudiag.measures._trials.pruner_spec import PrunerSpec
from gpudiag.measures.utilization import measure_utilization
from gpudiag.memo import memoized
from gpudiag.plain_data import plain
from gpudiag.plots import PLOTS

SAMPLE = Path(__file__).resolve().parent.parent / "data" / "samples" / "hpo-aggressive-pruning"
FORECASTS = (what_if, observe, whole, backtest, memory_capacity, trial_peaks, overflow_table, find_crashes)
FORECASTS += (combinations, replay_pruner, replayed_log, recorded_studies)
SHARED = (gpu_time, timed_trials, work_by_gpu)
WATCHED = [inspect.unwrap(made) for made in (*MEASURES, *FORECASTS, *SHARED)]


def _plain(value: Any) -> Any:
    """An argument as what it says: tables by the columns that they share, others that cannot be compared by kind."""
    if isinstance(value, gd.Run):
        return id(value.gpu), id(value.trials)
    if isinstance(value, range | list | tuple):
        return tuple(map(_plain, value))
    return str(value) if isinstance(value, int | float | str | PrunerSpec | None) else type(value).__name__


@contextmanager
def counted() -> Iterator[Counter[tuple[str, Any]]]:
    """Calls of what is watched, by name and arguments; functions among these only report progress.

    Each watched function gets other code, so that it is seen whoever imported it by whatever name, and nothing else is
    slower.
    """
    calls: Counter[tuple[str, Any]] = Counter()

    def seen(original: FunctionType) -> Callable[..., Any]:
        names, code = inspect.getargs(original.__code__).args, original.__code__
        signature = inspect.signature(original)

        def look(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = {name: bound.arguments[name] for name in names}
            told = tuple(
                (n, _plain(v)) for n, v in given.items() if not callable(v) and not isinstance(v, np.random.Generator)
            )
            calls[f"{code.co_filename.rsplit('/', 2)[-1]}:{code.co_name}", told] += 1
            return original(*args, **kwargs)

        return look

    with pytest.MonkeyPatch.context() as patch:
        for number, made in enumerate(WATCHED):
            same = FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__)
            same.__kwdefaults__ = made.__kwdefaults__
            patch.setitem(made.__globals__, f"_look_{number}", seen(same))
            here: dict[str, Any] = {}
            exec(f"def look(*args, **kwargs): return _look_{number}(*args, **kwargs)", here)
            patch.setattr(made, "__code__", here["look"].__code__)
        yield calls


@pytest.mark.slow
def test_nothing_is_made_twice_of_one_run_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = gd.load_run(SAMPLE)
    # What a picture looks like measures nothing, and drawing takes longest of all: figures are made, and stay blank.
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: None)
    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda self, figure: None)
    with counted() as calls:
        d = gd.diagnose(run)
        after_diagnosis = Counter(name for name, _ in calls.elements())
        assert d.headline and d.to_dict() and d.recommendations and d.advice and d.forecast and repr(d)
        assert d._repr_html_() and d._repr_markdown_()
        for suffix in ("html", "json"):
            d.save(tmp_path / f"x.{suffix}")
        for name in PLOTS:
            try:
                d.picture(name)
            except NotMeasurable:
                continue
        assert repr(d.showing(minimal=True)) and d.showing("forecast").show.forecast
        assert gd.compare(d, d).to_dict()
    assert {key: n for key, n in calls.items() if n > 1} == {}
    made = Counter(name for name, _ in calls.elements())
    assert {name for name in made if name.endswith(":measure_utilization")}, "what is watched is seen"
    assert made["replay.py:replay_pruner"] == 2 and made["capacity.py:memory_capacity"] >= 1
    assert made["peaks.py:trial_peaks"] == made["overflow.py:overflow_table"] == made["model.py:whole"] == 1
    assert not [name for name in after_diagnosis if name.startswith(("what_if", "capacity", "replay", "model"))]


@pytest.mark.slow
def test_a_headline_waits_for_no_advice_on_other_findings_and_says_the_same() -> None:
    run = gd.load_run(SAMPLE)
    with counted() as calls:
        short = gd.diagnose(run).headline
    assert not [name for name, _ in calls if name.startswith(("what_if", "capacity", "model"))]
    told = diagnosed(SAMPLE.name).to_dict()["headline"]["sentences"]
    assert short == " ".join(told)


def test_a_measure_without_data_is_asked_once() -> None:
    analysis = Analysis(gd.Run())
    with counted() as calls:
        gaps = []
        for _ in range(2):
            with pytest.raises(NotMeasurable) as gap:
                analysis[measure_utilization]
            gaps.append(gap.value)
    assert gaps[0] is gaps[1] and sum(calls.values()) == 1 and analysis.get(measure_utilization) is None


def test_an_error_that_is_raised_again_is_as_long_as_the_first_time() -> None:
    def lengths(ask: Callable[[], object], error: type[Exception]) -> list[int]:
        out = []
        for _ in range(4):
            with pytest.raises(error) as caught:
                ask()
            out.append(len(traceback.extract_tb(caught.value.__traceback__)))
        return out

    @memoized
    def broken(run: gd.Run) -> float:
        return 1 / 0

    analysis = Analysis(gd.Run())
    first, *again = lengths(lambda: analysis[measure_utilization], NotMeasurable)
    assert max(again) < first, "it says all in its words"
    first, *again = lengths(lambda: broken(analysis.run), ZeroDivisionError)
    assert again == [again[0]] * 3 and again[0] <= first + 4
    with pytest.raises(ZeroDivisionError) as caught:
        broken(analysis.run)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken", "where it was raised first"


def test_a_measure_that_failed_is_not_run_again_and_nor_is_what_it_shares() -> None:
    tried = []

    @memoized
    def shared(run: gd.Run) -> float:
        tried.append(run)
        return 1 / 0

    def measure_broken(run: gd.Run) -> float:
        return shared(run)

    def measure_other(run: gd.Run) -> float:
        return 2 * shared(run)

    with strict(False):
        analysis = Analysis(gd.Run())
        made, missing = analysis.profiles([measure_broken, measure_broken, measure_other])
        assert not made and list(missing) == ["broken", "other"] and analysis.get(measure_other) is None
    assert len(tried) == 1 and [fault.part for fault in analysis.failed] == ["measure broken", "measure other"]
    assert [fault.place for fault in analysis.failed] == [missing["broken"].fault.place] * 2  # type: ignore[attr-defined]


@pytest.mark.slow
def test_forecasts_of_an_analysis_are_those_of_its_run() -> None:
    run = gd.simulate(seed=3, n_trials=12, startup_s=(5.0, 9.0)).run
    analysis = Analysis(run)
    first = analysis.forecast(2, 6)
    assert analysis.forecast(2, 6) is first and analysis.given is run
    assert plain(analysis.forecast(6).at(6)) == plain(first.at(6))
    assert first.to_json() == gd.what_if(run, [2, 6]).to_json()
    assert analysis.capacity is analysis.capacity
    assert analysis.capacity.to_dict() == gd.memory_capacity(run).to_dict()
    assert analysis.forecast().to_json() == gd.what_if(run).to_json()


@pytest.mark.slow
def test_threads_diagnose_different_runs_as_one_after_the_other() -> None:
    runs = [gd.simulate(seed=seed, n_trials=6, pruner="median()").run for seed in range(2)]
    ask: Callable[[gd.Run], str] = lambda run: gd.diagnose(run).to_json()  # noqa: E731
    serial = [ask(run) for run in runs]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, runs)) == serial
        shared = gd.diagnose(runs[0])
        asked = list(pool.map(lambda _: (shared.to_json(), shared.forecast), range(3)))
    assert {text for text, _ in asked} == {serial[0]} and len({id(forecast) for _, forecast in asked}) == 1
