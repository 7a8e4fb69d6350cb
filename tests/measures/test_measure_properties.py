"""What must hold for every measure of the registry, whatever the run."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawn import few_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from smallruns import T0, gpu, gpus, reports, run, study, trials

from gpudiag.errors import NotMeasurable
from gpudiag.measures import MEASURES, TOPICS
from gpudiag.measures.base import Measure, facts
from gpudiag.memo import MemoRun
from gpudiag.run import Run
from gpudiag.schema import GPU, STATES, TABLES, conform

NAN = math.nan
Change = Callable[[pd.DataFrame], pd.DataFrame]
SOME = settings(max_examples=few_of(10), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of 1-3 GPUs with irregular timestamps and unknown cells, and up to 12 trials in any state."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    logs = []
    for name in range(draw(st.integers(1, 3))):
        n = int(rng.integers(3, 40))
        util = rng.integers(0, 101, n).astype(float)
        util[1:][rng.random(n - 1) < 0.1] = NAN
        logs.append(
            gpu(
                np.cumsum(rng.choice([1.0, 1.0, 1.0, 1.25, 4.0, 60.0], n)), str(name), util_pct=util,
                mem_used_mib=rng.uniform(0, 25000, n), mem_total_mib=24564.0, power_w=rng.uniform(0, 900, n),
                temp_c=rng.uniform(20, 90, n), energy_j=np.cumsum(rng.uniform(0, 100, n)),
            )
        )  # fmt: skip
    m = int(rng.integers(1, 13))
    starts, lengths = rng.integers(0, 200, m).astype(float), rng.integers(0, 90, m)
    states = rng.choice(STATES, m)
    begun = states != "WAITING"
    rows = [
        (state, start if b else NAN, start + length if state in STATES[:3] else NAN)
        for state, start, length, b in zip(states, starts, lengths, begun, strict=True)
    ]
    told = {i: list(range(1, int(rng.integers(2, 9)))) for i in range(m) if rng.random() < 0.7} or {0: [1]}
    return run(
        gpu=conform(pd.concat(logs), GPU),
        gpus=gpus(gpu=["0", "1"], name=["NVIDIA GeForce RTX 4090", "NVIDIA A100-SXM4-40GB"]),
        trials=trials(rows, worker=rng.choice(["a", "b", "c"], m), value=rng.normal(size=m)),
        reports=reports(told),
        studies=study("MINIMIZE"),
        settings={"parallel": int(rng.integers(1, 5)), "pruner": "median(n_warmup_steps=2)"},
    )


def take(measure: Measure, what: Run) -> Any:
    try:
        return measure(what)
    except NotMeasurable as missing:
        return missing


def profiles(what: Run) -> dict[str, Any]:
    """Of every measure its profile, or why there is none; what several need is made once, as a diagnosis does."""
    what = MemoRun.of(what)
    return {measure.__name__: take(measure, what) for measure in MEASURES}


def frames(profile: Any) -> dict[str, pd.DataFrame]:
    fields = [field.name for field in dataclasses.fields(profile)]
    return {name: value for name in fields if isinstance(value := getattr(profile, name), pd.DataFrame)}


def all_same(a: dict[str, Any], b: dict[str, Any], change: Change) -> None:
    for name in a:
        try:
            same(a[name], b[name], change)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def same(a: Any, b: Any, change: Change) -> None:
    """Equal scalars; equal frames, after ``change`` of the first's, up to the order of rows."""
    if isinstance(a, NotMeasurable) or isinstance(b, NotMeasurable):
        assert str(a) == str(b)
        return
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, float):
            assert x == pytest.approx(y, rel=1e-9, abs=1e-9, nan_ok=True), field.name
        elif field.name == "dead_idle_gpus":  # names of GPUs
            names = change(pd.DataFrame({"gpu": list(filter(None, x.split(", ")))}))["gpu"]
            assert sorted(names) == sorted(filter(None, y.split(", "))), field.name
        elif not isinstance(x, pd.DataFrame):
            assert x == y, field.name
    for name, frame in frames(a).items():
        left, right = (ordered(f) for f in (change(frame), frames(b)[name]))
        pd.testing.assert_frame_equal(left, right, rtol=1e-9, atol=1e-9, obj=name)


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    flat = frame.reset_index() if frame.index.name else frame
    return flat.sort_values(list(flat.columns[:4]), kind="stable", ignore_index=True)


def test_the_registry_names_every_topic() -> None:
    assert [m.__name__ for m in MEASURES] == [f"measure_{topic}" for topic in TOPICS]


def nothing(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def shuffled(what: Run) -> tuple[Run, Change]:
    return what.map_tables(lambda _, table: table.sample(frac=1, random_state=7, ignore_index=True)), nothing


def doubled(what: Run) -> tuple[Run, Change]:
    """Each sample and each report twice."""

    def double(name: str, table: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([table, table], ignore_index=True) if name in ("gpu", "reports") else table

    return what.map_tables(double), nothing


def relabeled(what: Run) -> tuple[Run, Change]:
    """GPUs of other names change places."""
    names = {"0": "5", "1": "3", "2": "11"}

    def relabel(frame: pd.DataFrame) -> pd.DataFrame:
        if frame.index.name == "gpu":
            return frame.rename(index=names)
        return frame.assign(gpu=frame["gpu"].replace(names)) if "gpu" in frame and len(frame) else frame

    return what.map_tables(lambda _, table: relabel(table)), relabel


def shifted(what: Run) -> tuple[Run, Change]:
    """All clocks years earlier."""
    by = pd.Timedelta(days=-2345)

    def shift(frame: pd.DataFrame) -> pd.DataFrame:
        timestamps = [name for name in frame if isinstance(frame[name].dtype, pd.DatetimeTZDtype)]
        return frame.assign(**{name: (frame[name] + by).astype(frame[name].dtype) for name in timestamps})

    return what.map_tables(lambda _, table: shift(table)), shift


@pytest.mark.slow
@SOME
@given(what=runs(), changes=st.lists(st.sampled_from([shuffled, doubled, relabeled, shifted]), min_size=1, unique=True))
def test_changes_that_say_nothing_new_change_nothing(what: Run, changes: list[Callable[..., Any]]) -> None:
    """Of several changes at once, a counterexample is shrunk to the one that matters."""
    before = {name: getattr(what, name).copy(deep=True) for name in TABLES}
    plain, changed = profiles(what), what
    for name, table in before.items():
        pd.testing.assert_frame_equal(getattr(what, name), table, obj=f"{name}, which no measure may change")
    expected: list[Change] = []
    for change in changes:
        changed, follow = change(changed)
        expected.append(follow)
    all_same(plain, profiles(changed), lambda frame: reduce(lambda made, follow: follow(made), expected, frame))


@pytest.mark.slow
def test_a_gap_changes_only_what_was_observed() -> None:
    """Steady telemetry that stops for an hour: every figure of the samples stays, only the time between is unknown."""
    steady = {"util_pct": 60.0, "mem_used_mib": 9000.0, "mem_total_mib": 24564.0, "power_w": 200.0, "temp_c": 60.0}
    timestamps = np.arange(0.0, 400, 5)
    whole = profiles(run(gpu=gpu(timestamps, **steady)))
    parted = profiles(run(gpu=gpu(np.where(timestamps < 200, timestamps, timestamps + 3600), **steady)))
    allowed = ("span_s", "observed", "coverage_pct", "n_gaps", "longest_gap_s", "expected_s", "energy_kwh", "window_s")
    allowed += ("total_gpu_s", "trial_gpu_s", "active_s", "bin_s", "work_s", "busy_s", "gpu_s")
    for measure, profile in whole.items():
        if isinstance(profile, NotMeasurable):
            assert str(profile) == str(parted[measure])
            continue
        before, after = facts(profile), facts(parted[measure])
        moved = {name for name in before if before[name]["value"] != pytest.approx(after[name]["value"], nan_ok=True)
                 if not isinstance(before[name]["value"], str | None.__class__)}  # fmt: skip
        assert all(any(word in name for word in allowed) for name in moved), (measure, moved)


@pytest.mark.parametrize(
    "what",
    [
        Run(),
        run(gpu=gpu([0], util_pct=5.0, mem_used_mib=5.0, power_w=5.0)),
        run(gpu=gpu([0, 1])),
        run(gpu=gpu([NAN], util_pct=5.0)),
        run(trials=trials([("WAITING", NAN, NAN)])),
        run(trials=trials([("RUNNING", 0, NAN)])),
        run(trials=trials([("COMPLETE", NAN, NAN)])),
        run(trials=trials([("FAIL", 3, 3)])),
        run(trials=trials([("COMPLETE", 9, 3)])),
        run(gpu=gpu([0], util_pct=5.0), trials=trials([("COMPLETE", 0, 0)])),
        run(reports=reports({0: [1]})),
    ],
)
def test_tiny_runs_give_a_profile_or_a_reason_with_a_remedy(what: Run) -> None:
    for measure, made in profiles(what).items():
        if isinstance(made, NotMeasurable):
            assert made.reason.endswith(".") and made.remedy, measure
        else:
            facts(made)


def test_an_empty_run_is_not_measurable() -> None:
    assert all(isinstance(made, NotMeasurable) for made in profiles(Run()).values())


def test_timestamps_before_1970_and_far_ahead() -> None:
    table = gpu(range(100), util_pct=50.0)
    for moved in (T0 - pd.Timedelta(days=365 * 60), T0 + pd.Timedelta(days=365 * 60)):
        log = table.assign(time=table["time"] + (moved - T0))
        assert MEASURES[TOPICS.index("sampling")](run(gpu=log)).per_gpu.at["0", "observed_s"] == 100


@pytest.mark.slow
def test_a_million_samples_and_ten_thousand_trials_take_seconds() -> None:
    import time

    n, m = 125_000, 10_000
    rng = np.random.default_rng(0)
    logs = [gpu(np.arange(n), str(g), util_pct=rng.integers(0, 101, n).astype(float)) for g in range(8)]
    starts = np.sort(rng.uniform(0, n, m))
    rows = list(
        zip(rng.choice(["COMPLETE", "PRUNED", "FAIL"], m), starts, starts + rng.uniform(1, 600, m), strict=True)
    )
    big = MemoRun.fresh(run(gpu=pd.concat(logs, ignore_index=True), trials=trials(rows), settings={"parallel": 4}))
    begun = time.process_time()
    for measure in MEASURES:
        take(measure, big)
    assert time.process_time() - begun < 15
