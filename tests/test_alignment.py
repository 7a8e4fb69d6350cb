"""The clock between trials and telemetry: found, applied, or said to be unknown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poolrun import Pool, make, shift_trials, timestamps
from scipy.signal import lfilter
from scipy.stats import t as t_distribution

from gpudiag.alignment import apply_clock, establish_clock
from gpudiag.alignment.chance import Noise, noise_of
from gpudiag.alignment.judge import Judgement, ObservedTime, judge
from gpudiag.alignment.scan import Scan, running, scan_offsets
from gpudiag.alignment.signals import Grid, SampleTimes, Signal, edges
from gpudiag.alignment.skew import find_skew
from gpudiag.run import ClockRecord, InputRecord, Run, RunInfo
from gpudiag.schema import EVENTS, GPU, GPUS, REPORTS, STUDIES, TRIALS, conform

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from accuracy_clock_noise import noise_result
from accuracy_clock_short import our_short_result
from accuracy_clock_skew import our_skew_result

HOUR = 3600


def settled(run: Run) -> Run:
    return apply_clock(run, establish_clock(run))


def test_an_offset_of_the_zone_is_found_and_applied() -> None:
    run, _ = make(1, Pool(hours=3, workers=3))
    late = shift_trials(run, -8 * HOUR)
    done = settled(late)
    clock = done.info.clock
    assert (clock.offset_s, clock.applied_s, clock.confidence) == (8 * HOUR, 8 * HOUR, "strong")
    assert clock.method == "correlation" and clock.joined
    assert "+8 h (correlation 0." in str(clock.evidence) and "covers 100 % of the study" in str(clock.evidence)
    pd.testing.assert_frame_equal(done.trials, run.trials)
    pd.testing.assert_frame_equal(done.gpu, run.gpu)
    best = max(clock.candidates, key=lambda pair: pair[1])
    assert best[0] == 8 * HOUR and len(clock.candidates) == 115


def test_equal_clocks_are_shown_too() -> None:
    clock = establish_clock(make(2)[0])
    assert (clock.offset_s, clock.applied_s, clock.confidence, clock.joined) == (0, 0, "strong", True)


@pytest.mark.parametrize("pool", [Pool(hours=3, period_s=30), Pool(hours=3, gap_s=0.1), Pool(hours=3, memory=False)])
@pytest.mark.parametrize("quarter", [-15, 56])
def test_odd_offsets_are_found_with_few_samples_without_gaps_and_without_memory(pool: Pool, quarter: int) -> None:
    run, _ = make(3, pool)
    clock = establish_clock(shift_trials(run, -900 * quarter))
    assert (clock.offset_s, clock.confidence) == (900 * quarter, "strong")


def test_what_is_given_stands_and_moves_all_that_came_from_the_trials() -> None:
    run, _ = make(1)
    told = pd.DataFrame(
        {"study": "pool", "trial": [0], "step": [1], "value": [1.0], "time": run.trials["start"].head(1)}
    )
    lines = pd.DataFrame(
        {"time": run.gpu["time"].head(2), "kind": "oom", "detail": "x", "path": ["optuna.db", "train.log"]}
    )
    run = replace(
        run,
        reports=conform(told, REPORTS),
        events=conform(lines, EVENTS),
        studies=conform(pd.DataFrame({"study": ["pool"], "directions": [""], "source": ["optuna.db"]}), STUDIES),
        info=replace(run.info, given_offset_s=90.5),
    )
    done = settled(run)
    by = pd.Timedelta(seconds=90.5)
    assert (done.info.clock.method, done.info.clock.confidence, done.info.clock.applied_s) == ("given", "strong", 90.5)
    for table, column in (("trials", "start"), ("trials", "end"), ("reports", "time")):
        moved = getattr(done, table)[column] - getattr(run, table)[column]
        assert (moved == by).all(), (table, column)
    assert (done.events["time"] - run.events["time"]).tolist() == [by, pd.Timedelta(0)]
    pd.testing.assert_frame_equal(done.gpu, run.gpu)


def test_zones_in_both_sources_need_no_evidence() -> None:
    run, _ = make(1)
    inputs = (InputRecord("gpu.csv", "telemetry", clock="utc"), InputRecord("optuna.db", "trials"))
    studies = run.studies.assign(clock="utc")
    clock = establish_clock(replace(run, studies=studies, info=replace(run.info, inputs=inputs)))
    assert (clock.method, clock.confidence, clock.offset_s) == ("utc", "strong", 0)
    naive = (InputRecord("gpu.csv", "telemetry", clock="local"),)
    assert establish_clock(replace(run, studies=studies, info=replace(run.info, inputs=naive))).method == "correlation"


def test_without_one_side_there_is_nothing_to_compare() -> None:
    run, _ = make(1)
    clock = establish_clock(Run(gpu=run.gpu))
    assert not clock.joined and clock.confidence == "assumed" and "no trial with a start" in str(clock.evidence)
    clock = establish_clock(Run(trials=run.trials))
    assert not clock.joined and "no GPU telemetry" in str(clock.evidence)


@pytest.mark.parametrize("n", [1, 50])
def test_samples_of_which_no_time_is_known_tell_nothing(n: int) -> None:
    run, _ = make(1)
    lost = run.gpu.head(n).assign(time=pd.Series(pd.NaT, index=range(n), dtype=run.gpu["time"].dtype))
    clock = establish_clock(replace(run, gpu=lost))
    assert clock.confidence in ("assumed", "undetermined") and clock.offset_s == 0


def test_a_gpu_that_is_always_busy_tells_nothing() -> None:
    run, _ = make(1, Pool(memory=False, seen=(0.1, 0.9)))
    busy = replace(run, gpu=run.gpu.assign(util_pct=100.0))
    clock = establish_clock(busy)
    assert (clock.confidence, clock.offset_s, clock.joined) == ("undetermined", 0, True)
    assert str(clock.evidence) == "Neither activity nor memory of any GPU ever changed."
    kept = busy.gpu.assign(mem_used_mib=np.linspace(1000, 9000, len(busy.gpu)))
    assert "memory was taken but hardly ever freed" in str(establish_clock(replace(busy, gpu=kept)).evidence)


def test_too_little_telemetry_is_not_called_unchanged() -> None:
    run, _ = make(1)
    few = run.gpu.iloc[200:206]
    assert few["util_pct"].nunique() > 1
    evidence = str(establish_clock(replace(run, gpu=few)).evidence)
    assert "The telemetry near the trials, 25 s with a sample every 5 s, is too little" in evidence


@pytest.mark.slow
def test_noise_is_never_strong() -> None:
    run, _ = make(1, Pool(hours=3))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        walk = np.abs(np.cumsum(rng.normal(0, 200, len(run.gpu))))
        noise = run.gpu.assign(util_pct=rng.integers(0, 101, len(run.gpu)).astype(float), mem_used_mib=walk)
        clock = establish_clock(replace(run, gpu=noise))
        assert clock.confidence != "strong" and clock.applied_s == 0


def test_little_telemetry_supports_likely_offsets_only() -> None:
    run, _ = make(5, Pool(hours=8, workers=2, seen=(0.4, 0.6)))
    odd = establish_clock(shift_trials(run, -5 * HOUR))
    assert (odd.confidence, odd.offset_s, odd.applied_s) == ("undetermined", 0, 0)
    assert "less than a third" in str(odd.evidence) and "lasts 20 % as long as" in str(odd.evidence)
    likely = establish_clock(shift_trials(run, -8 * HOUR))
    assert (likely.confidence, likely.offset_s) == ("strong", 8 * HOUR)


def test_trials_before_and_after_the_telemetry_are_told_by_both_gaps() -> None:
    """One trial ended 2 h before the first sample, one without an end began 3 h after the last, one never began."""
    run, _ = make(1)
    first, last = run.gpu["time"].min(), run.gpu["time"].max()
    start = [first - pd.Timedelta(hours=5), last + pd.Timedelta(hours=3), pd.NaT]
    end = [first - pd.Timedelta(hours=2), pd.NaT, pd.NaT]
    rows = run.trials.head(3).assign(start=start, end=end, state=["COMPLETE", "RUNNING", "WAITING"])
    clock = establish_clock(replace(run, trials=conform(rows, TRIALS)))
    assert not clock.joined
    told = "the telemetry begins 2 h after the trials end and ends 3 h before others begin. They are not joined."
    assert told in str(clock.evidence)


def test_a_waiting_trial_leaves_the_gap_as_it_is() -> None:
    run, _ = make(1)
    first = run.gpu["time"].min()
    hours_before = [(5, 4), (4, 2)]
    start = [*(first - pd.Timedelta(hours=a) for a, _ in hours_before), pd.NaT]
    end = [*(first - pd.Timedelta(hours=b) for _, b in hours_before), pd.NaT]
    rows = run.trials.head(3).assign(start=start, end=end, state=["COMPLETE", "COMPLETE", "WAITING"])
    clock = establish_clock(replace(run, trials=conform(rows, TRIALS)))
    assert not clock.joined and "share no time: the telemetry begins 2 h after the trials end." in str(clock.evidence)


def test_telemetry_of_another_day_is_not_joined() -> None:
    run, _ = make(1)
    clock = establish_clock(shift_trials(run, 3 * 86400))
    assert not clock.joined and clock.applied_s == 0 and clock.confidence == "undetermined"
    assert str(clock.evidence).startswith("Trials and telemetry share no time: the trials begin 2 d 22 h")
    assert "state clock_offset_s in run.toml" in str(clock.evidence)
    assert "the telemetry begins" in str(establish_clock(shift_trials(run, -3 * 86400)).evidence)


@pytest.mark.parametrize(
    ("days", "said"), [(450, "The trials begin 450 days after the telemetry ends"), (-450, "trials end")]
)
def test_months_apart_is_not_the_same_run(days: int, said: str) -> None:
    run, _ = make(1)
    clock = establish_clock(shift_trials(run, days * 86400))
    assert said in str(clock.evidence) and str(clock.evidence).endswith(
        "this is not the same run. They are not joined."
    )
    assert not clock.joined and "clock_offset_s" not in str(clock.evidence)


def test_an_open_trial_may_still_run() -> None:
    run, _ = make(1)
    open_ended = run.trials.head(1).copy()
    open_ended["end"] = pd.Series([pd.NaT], dtype="datetime64[us, UTC]")
    assert establish_clock(replace(run, trials=open_ended)).joined


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(days=st.integers(-3000, 3000), quarter=st.integers(-40, 40))
def test_shifting_both_clocks_changes_nothing(days: int, quarter: int) -> None:
    run, _ = make(4, Pool(hours=1.5))
    # Without summer time, so that the likely offsets stay the same too.
    both = shift_trials(run, days * 86400 + quarter * 900)
    both = replace(both, gpu=both.gpu.assign(time=both.gpu["time"] + pd.Timedelta(days=days)))
    one = shift_trials(run, quarter * 900)
    a, b = establish_clock(both), establish_clock(one)
    assert (a.offset_s, a.confidence, str(a.evidence)) == (b.offset_s, b.confidence, str(b.evidence))


@pytest.mark.parametrize(("zone", "ahead_h"), [("Asia/Taipei", 8), ("America/Bogota", -5)])
def test_a_study_that_optuna_5_goes_on_with_has_two_clocks(zone: str, ahead_h: int) -> None:
    """Read as local time throughout: what Optuna 5 wrote in UTC lies ``ahead_h`` too early."""
    run, _ = make(6, Pool(hours=6, workers=2))
    run = replace(run, info=replace(run.info, timezone=zone))
    half = len(run.trials) // 2
    # Workers stop for the upgrade: no trial runs across it.
    pause = run.trials.loc[run.trials["trial"] < half, "end"].max()
    kept = run.trials[(run.trials["trial"] < half) | (run.trials["start"] > pause)].reset_index(drop=True)
    run = replace(run, trials=kept)
    first = int(kept.loc[kept["trial"] >= half, "trial"].min())
    done = settled(shift_trials(run, -ahead_h * HOUR, first))
    clock = done.info.clock
    assert (clock.offset_s, clock.confidence) == (0, "strong")
    assert clock.parts == (("pool", first, ahead_h * HOUR),)
    pd.testing.assert_frame_equal(done.trials, run.trials)
    assert any("the starts run back by" in str(note) for note in clock.notes) == (ahead_h > 0)


def test_studies_of_two_clocks_are_aligned_one_by_one() -> None:
    run, _ = make(6, Pool(hours=6, workers=2))
    half = len(run.trials) // 2
    name = np.where(run.trials["trial"] < half, "local", "utc")
    studies = conform(pd.DataFrame({"study": ["local", "utc"], "directions": "", "clock": ["local", "utc"]}), STUDIES)
    two = replace(run, trials=run.trials.assign(study=name), studies=studies)
    wrong = two.trials["study"] == "local"
    moved = two.trials.copy()
    moved.loc[wrong, ["start", "end"]] -= pd.Timedelta(hours=8)
    done = settled(replace(two, trials=moved))
    assert (done.info.clock.applied_s, done.info.clock.parts) == (8 * HOUR, (("utc", half, 0.0),))
    pd.testing.assert_frame_equal(done.trials, two.trials)


def test_a_clock_change_within_the_study_is_said() -> None:
    run, _ = make(1, Pool(hours=2))
    to_autumn = (pd.Timestamp("2025-10-26 00:00", tz="UTC") - run.trials["start"].min()).total_seconds()
    moved = shift_trials(run, to_autumn)
    berlin = replace(moved, info=RunInfo(timezone="Europe/Berlin"))
    (note,) = establish_clock(berlin).notes
    assert "changed by -1 h at 2025-10-26 01:00 UTC" in str(note) and "may be wrong by 1 h" in str(note)
    assert establish_clock(replace(berlin, studies=berlin.studies.assign(clock="utc"))).notes == ()


def test_numbers_that_do_not_follow_time_are_no_clock_fault() -> None:
    run, _ = make(1, Pool(hours=4))
    mixed = run.trials.assign(trial=np.random.default_rng(0).permutation(len(run.trials)))
    clock = establish_clock(replace(run, trials=mixed.sort_values("trial", ignore_index=True)))
    assert (clock.confidence, clock.offset_s, clock.parts, clock.notes) == ("strong", 0, (), ())


def test_ends_before_starts_are_said() -> None:
    run, _ = make(1)
    trials = run.trials.copy()
    trials.loc[3, "end"] = trials.loc[3, "start"] - pd.Timedelta(hours=1)
    assert any("1 trials end before they start" in str(n) for n in establish_clock(replace(run, trials=trials)).notes)


def test_the_scan_is_the_correlation_written_out() -> None:
    """Against Pearson's r by numpy at a few lags, for one signal and all responses."""
    rng = np.random.default_rng(0)
    grid = Grid(1000.0, 10.0, 300, 4, 4)
    start = np.sort(rng.uniform(1000, 3600, 30))
    end = start + rng.uniform(20, 200, 30)
    level = rng.normal(size=grid.n)
    seen = rng.random(grid.n) > 0.2
    signal = Signal("x", np.where(seen, edges(level, grid), 0.0), seen)
    scan = scan_offsets([signal], grid, start, end)
    for offset in (-600.0, 0.0, 250.0):
        found = []
        for response in (0, 4, 8, 16, 32, 64, 128):
            borders = grid.start_s - offset + grid.step_s * np.arange(-50, grid.n + 51)
            x = edges(running(start + response, end, borders), replace(grid, n=grid.n + 100))[50 : 50 + grid.n]
            found.append(np.corrcoef(x[seen], signal.edge[seen])[0, 1])
        at = np.flatnonzero(scan.offset_s == offset)[0]
        assert scan.fit[at] == pytest.approx(max(found), abs=1e-9)


def test_signals_seen_in_other_bins_are_correlated_over_their_own() -> None:
    """Two are seen in the same bins, one in others: each against numpy over its own bins, and their mean."""
    rng = np.random.default_rng(1)
    grid = Grid(1000.0, 10.0, 300, 4, 4)
    start = np.sort(rng.uniform(1000, 3600, 30))
    end = start + rng.uniform(20, 200, 30)
    often, seldom = rng.random(grid.n) > 0.2, rng.random(grid.n) > 0.6
    signals = [
        Signal(name, np.where(seen, edges(rng.normal(size=grid.n), grid), 0.0), seen)
        for name, seen in (("a", often), ("b", seldom), ("c", often.copy()))
    ]
    scan = scan_offsets(signals, grid, start, end, (8.0,))
    for offset in (-600.0, 0.0, 250.0):
        borders = grid.start_s - offset + grid.step_s * np.arange(-50, grid.n + 51)
        x = edges(running(start + 8, end, borders), replace(grid, n=grid.n + 100))[50 : 50 + grid.n]
        each = [np.corrcoef(x[one.seen], one.edge[one.seen])[0, 1] for one in signals]
        at = np.flatnonzero(scan.offset_s == offset)[0]
        assert scan.fit[at] == pytest.approx(np.mean(each), abs=1e-9)


def flat_scan(n_edges: int = 100, **peaks: float) -> Scan:
    """A scan that is 0.1 everywhere but at some offsets in hours (h8 is +8, m5 is -5); every edge is seen."""
    offset = np.arange(-51300.0, 51301.0, 10.0)
    fit = np.full(len(offset), 0.1)
    for name, value in peaks.items():
        hour = int(name[1:]) * (1 if name[0] == "h" else -1)
        fit[offset == hour * HOUR] = value
    return Scan(offset, fit, ("memory",), 10.0, np.ones(12_000, bool), -60_000.0, np.linspace(0, 900, n_edges))


WELL = ObservedTime(3000, 3600, 5, 300)


def plain(n_free: float) -> Callable[[float, int], Noise]:
    return lambda offset_s, n_events: Noise(min(n_free, n_events), 10.0)


def judged(scan: Scan, likely: set[float], observed: ObservedTime = WELL, n_free: float = 100) -> Judgement:
    return judge(scan, likely, observed, plain(n_free))


def test_confidence_follows_the_margin() -> None:
    assert judged(flat_scan(h8=0.7, h3=0.55), {0}).confidence == "strong"
    weak = judged(flat_scan(h8=0.7, h3=0.63), {0})
    assert (weak.confidence, weak.offset_s) == ("weak", 8 * HOUR)
    assert "+3 h, which no time zone explains, fits with 0.63." in str(weak.evidence)
    alike = judged(flat_scan(h8=0.7, h3=0.68), {0})
    assert (alike.confidence, alike.offset_s) == ("undetermined", 0)
    assert str(alike.evidence) == "Several offsets fit alike.", "what telemetry covers depends on the offset"


def test_minutes_are_enough_where_they_are_the_study() -> None:
    assert judged(flat_scan(h8=0.7), {0}, ObservedTime(90, 100, 1, 10)).confidence == "strong"
    short = judged(flat_scan(h8=0.7), {0, 8 * HOUR}, ObservedTime(90, 3600, 1, 10))
    assert short.confidence == "weak" and "1 min 30 s of telemetry from a longer study" in str(short.evidence)


def test_what_chance_gives_is_no_offset() -> None:
    found = [judged(flat_scan(h8=0.6), {0}, n_free=n).confidence for n in (10, 20, 40, 80)]
    assert found == ["undetermined"] * 3 + ["strong"]
    likely = [judged(flat_scan(h8=0.6), {0, 8 * HOUR}, n_free=n).confidence for n in (10, 20, 40)]
    assert likely == ["undetermined"] * 2 + ["strong"]
    assert "better than chance" in str(judged(flat_scan(10, h8=0.6), {0}).evidence)


def test_chance_is_that_of_a_correlation_times_the_places() -> None:
    """0.6 over 20 pairs has a t of 3.18 and, one-sided, a probability of 0.26 %."""
    noise = Noise(20, 10.0)
    assert noise.chance_of(0.6, 1, 0, 1) == pytest.approx(float(t_distribution.sf(3.1820, 18)), rel=1e-3)
    assert noise.chance_of(0.6, 2, 30, 3) == pytest.approx(18 * noise.chance_of(0.6, 1, 0, 1))
    assert noise.chance_of(0.1, 100, 60, 7) == 1 and Noise(2, 10).chance_of(0.9, 1, 0, 1) == 1


def ar(rng: np.random.Generator, n: int, keep: float) -> np.ndarray:
    return lfilter([1.0], [1.0, -keep], rng.normal(size=n + 200))[200:]


@pytest.mark.slow
def test_noise_is_how_correlations_of_unrelated_series_vary() -> None:
    """Against the spread of the correlation over many pairs, drawn anew: slow series, two signals that move alike."""
    rng = np.random.default_rng(0)
    seen = np.ones(600, bool)
    for keep, both in ((0.0, False), (0.9, False), (0.9, True)):
        fits, free = [], []
        for _ in range(300):
            x, y, z = (ar(rng, 600, keep) for _ in range(3))
            others = [y, 0.8 * y + 0.6 * z] if both else [y]
            fits.append(np.mean([np.corrcoef(x, other)[0, 1] for other in others]))
            free.append(noise_of([(x, other, seen) for other in others], 1.0, 1.0, 10_000).n_free)
        assert np.std(fits) == pytest.approx(np.median(free) ** -0.5, rel=0.12)
    assert noise_of([(x, y, seen)], 1.0, 1.0, 12).n_free == 12
    assert noise_of([(np.ones(600), y, seen)], 1.0, 1.0, 12).n_free == 0


def test_edges_count_where_telemetry_is() -> None:
    scan = replace(flat_scan(), seen=np.arange(10) >= 5, begin_s=0.0, edge_s=np.array([5.0, 45.0, 55.0, 95.0, 105.0]))
    assert [scan.n_edges(offset) for offset in (0.0, 10.0, -50.0, 1000.0)] == [2, 2, 1, 0]
    sparse = replace(scan, seen=np.arange(30) % 6 == 0, edge_s=np.array([5.0, 45.0, 100.0, 239.0, 251.0, 280.0]))
    assert sparse.n_edges(0.0) == 4  # of samples a minute apart the last is at 240 s
    assert replace(sparse, edge_s=np.linspace(0, 200, 50)).n_edges(0.0) == 5  # as many as there are samples
    gap = replace(sparse, seen=np.isin(np.arange(60), [0, 6, 12, 50, 56]), edge_s=np.array([65.0, 300.0, 550.0]))
    assert gap.n_edges(0.0) == 2


NEAR = (60_008, 60_016, 60_019, 60_026)
"""Seeds whose noise laxer bounds of fit and chance take for an offset; of the others none."""


@pytest.mark.many
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed in NEAR else pytest.mark.slow) for seed in range(60_000, 60_030)]
)
def test_a_load_of_its_own_moves_no_clock(seed: int) -> None:
    """Noise that has nothing to do with the trials; benchmarks/accuracy.md has the figures of many more."""
    found = noise_result(seed)
    assert not found["strong"] and not found["moved"] and not found["leans"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60_000, 60_008))
def test_logs_of_minutes_and_clocks_minutes_apart(seed: int) -> None:
    """A small part of the tables in benchmarks/accuracy.md."""
    short, skew = our_short_result(seed), our_skew_result(seed)
    assert not short["wrong"] and not skew["wrong"] and skew["inside"] == skew["told"]


def test_likely_offsets_are_all_that_little_telemetry_allows() -> None:
    little = ObservedTime(900, 3600, 5, 300)
    assert judged(flat_scan(h8=0.7), {0, 8 * HOUR}, little).confidence == "strong"
    assert judged(flat_scan(h7=0.7), {0, 8 * HOUR}, little).confidence == "undetermined"


def test_seconds_beside_a_quarter_are_never_applied_and_must_be_clearer() -> None:
    """A long start-up looks like a clock that is behind."""
    scan = flat_scan()
    scan.fit[scan.offset_s == 8 * HOUR + 40] = 0.7
    found = judged(scan, {0})
    assert (found.offset_s, found.confidence) == (8 * HOUR, "strong")
    scan.fit[scan.offset_s == 3 * HOUR] = 0.4
    assert judged(scan, {0}).confidence == "weak"


def test_trials_of_seconds_do_not_begin_to_show_after_40_s() -> None:
    scan = flat_scan(h8=0.5)
    scan.fit[scan.offset_s == 8 * HOUR + 40] = 0.7
    found = judged(scan, {0}, ObservedTime(90, 100, 1, 10))
    assert (found.offset_s, found.confidence) == (8 * HOUR, "weak")
    assert "A better fit lies 40 s beside it, further than a start-up can be in trials of 10 s." in str(found.evidence)


def test_a_record_without_a_shift_leaves_the_tables_alone() -> None:
    run, _ = make(1)
    assert apply_clock(run, ClockRecord(offset_s=900.0, confidence="weak")).trials is run.trials


def alone(
    ahead_s: float,
    *,
    before_s: float = 0.0,
    after_s: float = 0.0,
    idle_s: float = 0.5,
    up_s: tuple[float, float] = (3, 5),
    n: int = 24,
) -> Run:
    """One trial after another, 20 to 30 s apart, on a GPU that is sampled each second; the trials' clock is ahead.

    Trials start up first; the GPU works for ``before_s`` before they start, is idle for the last ``idle_s``
    of them, and works for ``after_s`` after they end.
    """
    rng = np.random.default_rng(3)
    start = np.cumsum(rng.uniform(40, 90, n)) + 200
    end = np.append(start[1:], start[-1] + 60) - rng.uniform(20, 30, n)
    work = [(low + up, high - idle_s) for low, high, up in zip(start, end, rng.uniform(*up_s, n), strict=True)]
    work += [(low - before_s, low) for low in start if before_s] + [(high, high + after_s) for high in end if after_s]
    time = np.arange(0.0, end[-1] + 200)
    busy = np.any([(low < time) & (time < high + 1) for low, high in work], axis=0)
    gpu = pd.DataFrame({"gpu": "0", "time": timestamps(time), "util_pct": np.where(busy, 80.0, 0.0)})
    trials = {"study": "s", "trial": np.arange(n), "state": "COMPLETE", "gpu": "0"}
    moved = {"start": timestamps(start + ahead_s), "end": timestamps(end + ahead_s)}
    base, _ = make(1, Pool(hours=0.1))
    return replace(base, gpu=conform(gpu, GPU), trials=conform(pd.DataFrame(trials | moved), TRIALS))


@pytest.mark.parametrize("ahead_s", [12.0, 37.5, 100.0])
def test_work_before_trials_shows_a_clock_that_is_ahead(ahead_s: float) -> None:
    run = alone(ahead_s)
    skew = find_skew(run, SampleTimes.of(run))
    assert skew is not None and skew.low_s <= ahead_s <= skew.high_s and skew.high_s - skew.low_s < 9
    assert skew.before >= 20 and skew.after <= 1


@pytest.mark.slow
def test_seconds_are_applied_where_they_are_known_to_seconds() -> None:
    clock = establish_clock(alone(37.5, up_s=(0.5, 1.5)))
    said = str(clock.evidence)
    assert abs(clock.applied_s + 37.5) <= 2.5 and (clock.offset_s, clock.confidence) == (clock.applied_s, "strong")
    assert "A long start-up shows idle time in a trial, not work before it." in said
    assert f"The trials were moved back by {-clock.applied_s:.0f} s." in said
    hours = apart(alone(37.5, up_s=(0.5, 1.5)), 8 * HOUR)
    both = establish_clock(hours)
    assert both.applied_s == 8 * HOUR + clock.applied_s and "best at +8 h" in str(both.evidence)


@pytest.mark.slow
def test_seconds_that_start_ups_leave_open_are_told_and_not_applied() -> None:
    clock = establish_clock(alone(37.5, up_s=(10, 12)))
    said = str(clock.evidence)
    assert clock.applied_s == 0 and clock.confidence == "weak" and -38.5 <= clock.offset_s <= -27
    assert f"If the clocks differ, state clock_offset_s = {clock.offset_s:.0f} in run.toml." in said
    given = replace(alone(37.5), info=RunInfo(given_offset_s=-37.5))
    assert "gaps between trials" not in str(establish_clock(given).evidence)


def test_clocks_of_two_hosts_may_differ_though_both_know_their_zone() -> None:
    run = alone(37.5, up_s=(0.5, 1.5))
    inputs = (InputRecord("gpu.csv", "telemetry", clock="utc"),)
    stated = replace(run, studies=run.studies.assign(clock="utc"), info=replace(run.info, inputs=inputs))
    clock = establish_clock(stated)
    assert clock.method == "utc" and clock.applied_s == establish_clock(run).applied_s != 0
    assert str(clock.evidence).startswith("Trials and telemetry both carry their zone in their timestamps. As the")


def test_gaps_are_those_of_each_gpu() -> None:
    """Of two GPUs with trials that overlap, each has gaps where trials say where they ran; together fewer."""
    run = alone(37.5)
    later = pd.Timedelta(seconds=33)
    second = {"trials": run.trials.assign(trial=run.trials["trial"] + 100, gpu="1"), "gpu": run.gpu.assign(gpu="1")}
    second["trials"] = second["trials"].assign(**{c: second["trials"][c] + later for c in ("start", "end")})
    second["gpu"] = second["gpu"].assign(time=second["gpu"]["time"] + later)
    both = {name: pd.concat([getattr(run, name), table], ignore_index=True) for name, table in second.items()}
    two = replace(run, **both, gpus=conform(pd.DataFrame({"gpu": ["0", "1"]}), GPUS))
    skew, alike = find_skew(two, SampleTimes.of(two)), find_skew(run, SampleTimes.of(run))
    assert skew is not None and alike is not None
    assert (skew.n_gaps, skew.before) == (2 * alike.n_gaps, 2 * alike.before)
    silent = replace(two, trials=two.trials.drop(columns="gpu"))
    together = find_skew(silent, SampleTimes.of(silent))
    assert together is not None and together.n_gaps < alike.n_gaps and together.low_s <= 37.5 <= together.high_s


def apart(run: Run, offset_s: float) -> Run:
    return replace(run, gpu=run.gpu.assign(time=run.gpu["time"] + pd.Timedelta(seconds=offset_s)))


@pytest.mark.parametrize(
    "run",
    [
        alone(0),
        alone(2.5),
        alone(0, before_s=15),
        alone(0, after_s=15),
        alone(0, before_s=15, after_s=15),
        make(1, Pool(workers=1, startup_s=60))[0],
    ],
    ids=["equal", "within a start-up", "work before", "work after", "both", "long start-ups"],
)
def test_what_else_may_be_is_no_skew(run: Run) -> None:
    """Equal clocks; one that is ahead by less than start-ups take; scripts that work between trials."""
    assert find_skew(run, SampleTimes.of(run)) is None
    assert establish_clock(run).applied_s == 0
