"""The GPU-time ledger: it adds up, it moves as it should, and it is near the truth where that is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st
from poolrun import CELLS as TRUE_CELLS
from poolrun import Pool, make
from smallruns import at, gpu, gpus, run, trials

from gpudiag.errors import NotMeasurable
from gpudiag.measures._time.ledger_frames import MAX_SPANS, spans
from gpudiag.measures._time.timeline import CELLS, Timeline
from gpudiag.measures.bottleneck import measure_bottleneck
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import LedgerProfile, measure_ledger
from gpudiag.measures.stalls import measure_stalls
from gpudiag.measures.utilization import measure_utilization
from gpudiag.run import Run
from gpudiag.simulation import Foreign, Gpu, simulate

NAN = float("nan")
SOME = settings(max_examples=few_of(9), deadline=None)


IN_TRIALS = ["startup_only", "tail_only", "waiting", "stalled"]


def seconds(profile: LedgerProfile) -> pd.DataFrame:
    """gpu by cell."""
    return profile.cells.pivot(index="gpu", columns="cell", values="gpu_s").rename_axis(None, axis=1)[list(CELLS)]


@st.composite
def pools(draw: st.DrawFn) -> tuple[int, Pool]:
    pool = Pool(
        hours=0.35, gpus=draw(st.integers(1, 3)), workers=draw(st.integers(1, 5)),
        period_s=draw(st.sampled_from([1.0, 5.0, 30.0])), seen=draw(st.sampled_from([(0, 1), (0.2, 0.7)])),
    )  # fmt: skip
    return draw(st.integers(0, 10_000)), pool


@pytest.mark.slow
@SOME
@given(made=pools())
def test_the_cells_add_up_in_every_table(made: tuple[int, Pool]) -> None:
    p = measure_ledger(make(*made)[0])
    window = (p.windows["end"] - p.windows["start"]).dt.total_seconds().sum()
    for total in (seconds(p).sum(axis=1), p.per_gpu["window_s"], p.bins.groupby("gpu")["gpu_s"].sum()):
        assert total.to_numpy() == pytest.approx(window, abs=1e-6)
    lengths = (p.spans["end"] - p.spans["start"]).dt.total_seconds()
    by_cell = lengths.groupby([p.spans["gpu"], p.spans["cell"]], observed=True).sum()
    for (name, cell), value in by_cell.items():
        assert value == pytest.approx(seconds(p).at[name, cell], abs=1e-6)
    assert p.total_gpu_s == pytest.approx(window * len(p.per_gpu), abs=1e-6)
    assert p.pct(*CELLS) == pytest.approx(100)


@pytest.mark.slow
@SOME
@given(made=pools(), seed=st.integers(0, 99))
def test_a_gap_moves_seconds_to_unobserved_only(made: tuple[int, Pool], seed: int) -> None:
    """Samples are taken away in one stretch: no other cell gains more than the borders of that stretch."""
    whole, _ = make(*made)
    rng = np.random.default_rng(seed)
    timestamps = whole.gpu["time"]
    span = timestamps.max() - timestamps.min()
    low = timestamps.min() + span * rng.uniform(0, 0.6)
    gone = (timestamps > low) & (timestamps < low + span * 0.3)
    before, after = (measure_ledger(replace(whole, gpu=whole.gpu[keep])) for keep in (timestamps.notna(), ~gone))
    change = seconds(after).reindex(seconds(before).index) - seconds(before)
    assert (change["unobserved"] >= -1e-6).all()
    assert change.sum(axis=1).to_numpy() == pytest.approx(0, abs=1e-6)
    border = 3 * made[1].period_s + 3
    lasting = change.drop(columns=["unobserved", *IN_TRIALS])
    assert (lasting <= border).all(axis=None)
    # What a stall is may hang on activity that is no longer seen; all idle time in trials together may not grow.
    assert (change[IN_TRIALS].sum(axis=1) <= border).all()


def _waits_together(by_cell: pd.DataFrame) -> pd.DataFrame:
    """Idle time in trials as one: what it is, is learned from all trials of a run."""
    return by_cell.drop(columns=IN_TRIALS).assign(waits=by_cell[IN_TRIALS].sum(axis=1))


@pytest.mark.slow
@SOME
@given(made=pools())
def test_runs_of_disjoint_time_add_up(made: tuple[int, Pool]) -> None:
    one, _ = make(*made)
    two, _ = make(made[0] + 1, made[1])
    later = two.map_tables(
        lambda _, table: table.assign(
            **{c: table[c] + pd.Timedelta(days=3) for c in table if isinstance(table[c].dtype, pd.DatetimeTZDtype)}
        ).assign(**({"study": "later"} if "study" in table else {}))
    )
    both = Run(
        gpu=pd.concat([one.gpu, later.gpu], ignore_index=True),
        gpus=one.gpus,
        trials=pd.concat([one.trials, later.trials], ignore_index=True),
    )
    apart = _waits_together(seconds(measure_ledger(one)) + seconds(measure_ledger(later)))
    # Where both are joined, the edge samples of each have a neighbour three days away instead of none.
    found = measure_ledger(both)
    joined = _waits_together(seconds(found))
    pd.testing.assert_frame_equal(joined, apart, atol=2 * made[1].period_s + 3, rtol=0)
    assert len(found.windows) == 2


def test_a_small_ledger_by_hand() -> None:
    """Two GPUs, a sample every 10 s; the second GPU is never used."""
    timestamps = range(0, 101, 10)
    busy = gpu(timestamps, "0", util_pct=[0, 0, 0, 80, 80, 40, 40, 0, 0, 0, 0])
    idle = gpu(timestamps, "1", util_pct=[0.0] * 11)
    table = trials([("COMPLETE", 10, 80)], gpu="0")
    p = measure_ledger(run(gpu=pd.concat([busy, idle]), gpus=gpus(gpu=["0", "1"]), trials=table))
    ours = seconds(p).T
    assert ours["0"].to_dict() == {
        "unobserved": 0, "idle_no_trial": 0, "foreign": 0, "startup_only": 15, "tail_only": 15,
        "waiting": 0, "stalled": 0,
        "busy_low": 20, "busy": 20,
    }  # fmt: skip
    assert ours["1"]["idle_no_trial"] == 70 and ours["1"].sum() == 70
    assert p.mean_util_pct == pytest.approx((20 * 80 + 20 * 40) / 140)
    assert p.outside_gpu_s == 80 and p.outside_busy_gpu_s == 0 and p.coverage_pct == 100
    assert p.compute.set_index(["gpu", "cell"])["compute_gpu_s"].loc[("0", "busy")] == pytest.approx(16)
    assert p.spans[p.spans["gpu"] == "0"]["cell"].tolist() == ["startup_only", "busy", "busy_low", "tail_only"]


@pytest.mark.parametrize("beside", [False, True])
def test_a_trial_that_never_works_has_no_start_up(*, beside: bool) -> None:
    """Trials of 100 s that work after 20 s, and models on the CPU of 100 s that do not; alone, and two at once."""
    kinds = np.array(["nn", "svm"] * 12)
    starts = 110.0 * np.arange(24)
    t = np.arange(0, 24 * 110)
    works = np.any([(t >= s + 20) & (t < s + 98) for s in starts[kinds == "nn"]], axis=0)
    lives = [("COMPLETE", s, s + 100) for s in starts]
    if beside:
        lives += [("COMPLETE", s + 1, s + 99) for s in starts[kinds == "svm"]]
    made = run(gpu=gpu(t, "0", util_pct=np.where(works, 80.0, 0.0)), trials=trials(lives))
    found, costs = seconds(measure_ledger(made)).loc["0"], measure_costs(made)
    assert found["startup_only"] == pytest.approx(12 * 20, abs=12)
    assert found["waiting"] == pytest.approx(12 * 100, abs=12) and found["stalled"] + found["tail_only"] <= 12 * 3
    assert found.sum() == pytest.approx(23 * 110 + 100)
    assert costs.startup_median_s == pytest.approx(20, abs=1) and costs.n_startups == 12
    worker_s = 24 * 100 + beside * 12 * 98
    assert costs.startup_share_pct == pytest.approx(100 * 12 * 20 / worker_s, rel=0.05)
    stalls, bottleneck = measure_stalls(made).per_gpu, measure_bottleneck(made)
    assert stalls["n_stalls"].tolist() == [0] and bottleneck.startup_pct <= 12


def test_trials_that_work_between_samples_have_a_start_up() -> None:
    """Trials of 96 s that work for their last 4 to 30 s, seen every ten seconds: of some no sample shows work."""
    starts, work_s = 103.7 * np.arange(60), np.random.default_rng(3).uniform(4, 30, 60)
    t = np.arange(0, 60 * 104, 10)
    works = np.any([(t >= s + 96 - w) & (t < s + 96) for s, w in zip(starts, work_s, strict=True)], axis=0)
    lives = [("COMPLETE", s, s + 96) for s in starts]
    made = run(gpu=gpu(t, "0", util_pct=np.where(works, 80.0, 0.0)), trials=trials(lives))
    unseen = [not works[(t >= s) & (t < s + 96)].any() for s in starts]
    costs = measure_costs(made)
    assert sum(unseen) >= 3
    assert costs.startup_share_pct == pytest.approx(100 - 100 * work_s.mean() / 96, abs=2)


def test_each_study_has_a_window_of_its_own() -> None:
    first = trials([("COMPLETE", 0, 50)], study="a")
    second = trials([("COMPLETE", 40, 60), ("COMPLETE", 200, 220)], study="b")
    third = trials([("COMPLETE", 1000, 1100)], study="c")
    table = pd.concat([first, second, third], ignore_index=True)
    p = measure_ledger(run(gpu=gpu(range(0, 1200), util_pct=60.0), trials=table))
    assert p.windows["start"].tolist() == list(at([0, 1000])) and p.windows["end"].tolist() == list(at([220, 1100]))
    assert seconds(p).loc["0"].to_dict() == {**dict.fromkeys(CELLS, 0.0), "busy": 180.0, "foreign": 140.0}
    assert p.foreign_of_no_trial_pct == 100


def test_open_trials_end_at_their_horizon_and_do_not_widen_the_window() -> None:
    log = gpu(range(0, 400), util_pct=60.0)
    closed = run(gpu=log, trials=trials([("COMPLETE", 0, 100), ("RUNNING", 50, NAN)]))
    p = measure_ledger(closed)
    assert p.windows["end"].tolist() == list(at([100])) and p.total_gpu_s == 100
    alive = measure_ledger(run(gpu=log, trials=trials([("RUNNING", 50, NAN)])))
    assert alive.windows["end"].tolist() == list(at([399])) and seconds(alive).at["0", "busy"] == 349


def test_without_trials_the_window_is_the_telemetry() -> None:
    log = gpu([0, 1, 2, 3, 4], util_pct=[0, 30, 30, 90, 0])
    p = measure_ledger(run(gpu=log))
    assert not p.has_trials and p.total_gpu_s == 5
    assert seconds(p).loc["0"].to_dict() == {**dict.fromkeys(CELLS, 0.0), "idle_no_trial": 2, "busy_low": 2, "busy": 1}
    apart = run(joined=False, gpu=log, trials=trials([("COMPLETE", 0, 3)]))
    pd.testing.assert_frame_equal(measure_ledger(apart).cells, p.cells)
    assert not measure_ledger(apart).has_trials


def test_one_gpu_of_two_missing_in_the_log() -> None:
    log = gpu(range(0, 100), "0", util_pct=60.0)
    table = trials([("COMPLETE", 0, 90), ("COMPLETE", 10, 60)], gpu=["0", "1"])
    p = measure_ledger(run(gpu=log, trials=table))
    assert seconds(p).loc["1", "unobserved"] == 90 and seconds(p).loc["0", "busy"] == 90
    assert p.coverage_pct == 50 and p.n_gpus == 2


def test_idle_where_a_trial_of_unknown_gpu_may_have_run_is_neither_its_nor_nobodys() -> None:
    timestamps = range(0, 100)
    half = [60.0 if 20 <= t < 60 else 0.0 for t in timestamps]
    logs = [gpu(timestamps, name, util_pct=half) for name in "01"]
    p = measure_ledger(run(gpu=pd.concat(logs), trials=trials([("COMPLETE", 0, 90)])))
    # Declared, GPU 0 would have 20 s of start-up and 30 s of tail and GPU 1 nothing but foreign load, or the reverse.
    for name in "01":
        assert (seconds(p).loc[name, "busy"], seconds(p).loc[name, "waiting"]) == (40, 50)
    assert p.pct("busy", "waiting") == pytest.approx(100) and p.n_unknown_gpu == 1


def test_a_trial_of_unknown_gpu_may_explain_the_load_of_every_active_gpu() -> None:
    timestamps = range(0, 100)
    logs = [gpu(timestamps, name, util_pct=util) for name, util in (("0", 60.0), ("1", 0.0), ("2", 70.0))]
    p = measure_ledger(run(gpu=pd.concat(logs), trials=trials([("COMPLETE", 0, 90)])))
    assert seconds(p)["busy"].to_dict() == {"0": 90, "1": 0, "2": 90}
    assert seconds(p).loc["1", "idle_no_trial"] == 90 and p.n_unknown_gpu == 1
    one = measure_ledger(run(gpu=pd.concat(logs[:2]), trials=trials([("COMPLETE", 0, 90)])))
    assert (one.n_unknown_gpu, one.n_inferred_gpu) == (0, 1)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (Run(), "There is no GPU telemetry."),
        (run(gpu=gpu([0, 1], mem_used_mib=5.0)), "No GPU reports utilization"),
        (run(gpu=gpu([0], util_pct=5.0)), "only one sample of each GPU"),
    ],
)
def test_what_is_missing_is_said(what: Run, reason: str) -> None:
    with pytest.raises(NotMeasurable, match=reason):
        measure_ledger(what)


def test_many_spans_are_rastered() -> None:
    """A stripe of two cells a second, in 2:1, over far more spans than a figure can show."""
    n = 3 * MAX_SPANS
    edges = np.arange(n + 1, dtype=np.int64)[: n + 1] * 1_000_000
    cell = np.where(np.arange(n) % 3 == 0, 7, 1).astype(np.int8)
    stripe = Timeline(edges[:-1], edges[1:], cell, np.zeros(n), np.ones(n, np.int64), np.zeros(n))
    out = spans({"0": stripe})
    assert len(out) <= MAX_SPANS and out["cell"].astype(str).eq("idle_no_trial").all()
    assert (out["end"].iloc[-1] - out["start"].iloc[0]).total_seconds() == n


def error_pct(what: Run, truth: pd.DataFrame) -> pd.Series:
    """Difference of each cell's share from the truth, in points of all GPU time."""
    found = seconds(measure_ledger(what)).sum()
    true = truth[list(TRUE_CELLS)].sum().reindex(CELLS, fill_value=0.0)
    return 100 * (found / found.sum() - true / true.sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pool", [Pool(), Pool(workers=1, period_s=1), Pool(gpus=2, workers=6, seen=(0.1, 0.8))])
def test_cells_are_near_the_truth_of_a_pool(pool: Pool, seed: int) -> None:
    assert error_pct(*make(seed, pool)).abs().max() < 4


@pytest.mark.slow
def test_cells_are_near_the_truth_of_simulated_runs() -> None:
    """The target: within 1.5 points in the median, 4 in 95 %, at periods of up to 5 s."""
    errors = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([1, 2, 4]))
        made = simulate(
            seed=seed, gpus=(Gpu(),) * n, workers=int(rng.integers(n, 9)), n_trials=60,
            period_s=float(rng.choice([1, 5])), outages_s=((300.0, 420.0),) * int(rng.integers(2)),
            abandoned_rate=0.03 * int(rng.integers(2)), gpu_share_pct=(20.0, 90.0),
            foreign=(Foreign(0, 100.0, 700.0),) * int(rng.integers(2)),
        )  # fmt: skip
        truth = made.truth.ledger.pivot(index="gpu", columns="cell", values="gpu_s")
        errors.append(error_pct(made.run, truth).abs())
    table = pd.DataFrame(errors)
    assert (table.median() < 1.5).all() and (table.quantile(0.95) < 4).all()


def test_a_gpu_that_no_sample_shows_idle_has_no_idle_time() -> None:
    """Pauses of 4 s, samples every 10 s, all at 90 %: what the telemetry tells of idle time, the ledger tells too."""
    rows = [("COMPLETE", float(begin), begin + 30.0) for begin in range(0, 3400, 34)]
    made = run(gpu=gpu(range(0, 3400, 10), util_pct=90.0), trials=trials(rows))
    found, shown = measure_ledger(made), measure_utilization(made)
    assert found.per_gpu["idle_pct"].tolist() == shown.per_gpu["idle_pct"].tolist() == [0.0]
    assert seconds(found).loc["0", "busy"] > 3300 and found.foreign_of_no_trial_pct == 100


@pytest.mark.parametrize("foreign", [(), (Foreign(0, -100.0, 1e5, 80.0),)])
def test_pauses_shorter_than_the_sampling_step_are_near_the_truth(foreign: tuple[Foreign, ...]) -> None:
    """Whether the GPU is idle in them or works for somebody else: its idle time, and that without a trial."""
    made = simulate(
        seed=5, workers=1, n_trials=150, epochs=1, epoch_s=(40.0, 70.0), startup_s=(5.0, 15.0), gap_s=(3.0, 7.0),
        tail_s=(0.1, 1.0), gpu_share_pct=(60.0, 95.0), period_s=10.0, foreign=foreign, oom=False,
    )  # fmt: skip
    truth = made.truth.ledger.set_index("cell")["gpu_s"].drop("unobserved")
    found = measure_ledger(made.run).totals.set_index("cell")["gpu_s"].drop("unobserved")
    error = 100 * (found / found.sum() - (truth / truth.sum()).reindex(found.index, fill_value=0.0))
    assert abs(error["idle_no_trial"]) < 1.5 and abs(error[["idle_no_trial", *IN_TRIALS]].sum()) < 1.5
