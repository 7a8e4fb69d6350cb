"""Part of a run is a run again, and its parts add up to the whole."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sampleruns import diagnosed, sample
from smallruns import gpu as samples_of
from smallruns import run as small_run
from smallruns import trials as trials_of
from toyrun import START, toy_run

import gpudiag as gd
from gpudiag._run.left_out import left_in_part
from gpudiag.errors import ConfigError, NotMeasurable, StudyNotFound
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.sampling import measure_sampling
from gpudiag.run import ClockRecord, Run, RunInfo

SAMPLES = Path(__file__).resolve().parent.parent / "data" / "samples"
MINUTE = pd.Timedelta(minutes=1)


def test_a_span_keeps_its_samples_and_the_trials_that_overlap_it() -> None:
    part = toy_run().between(START + 15 * MINUTE, START + 25 * MINUTE)
    assert (part.gpu["time"].min(), part.gpu["time"].max()) == (START + 15 * MINUTE, START + 25 * MINUTE - MINUTE / 6)
    assert list(part.trials["trial"]) == [2, 3, 4, 5]  # those that began at minute 10 and at minute 20
    assert part.trials["start"].iloc[0] == START + 10 * MINUTE
    assert len(part.gpu) == 2 * 60


def test_a_moment_without_a_zone_is_in_the_zone_of_the_run() -> None:
    run = toy_run()  # Asia/Taipei, UTC+8
    for moment in ("2026-03-01 18:15", datetime(2026, 3, 1, 18, 15), START + 15 * MINUTE, "2026-03-01T10:15Z"):
        assert run.between(moment, None).gpu["time"].min() == START + 15 * MINUTE


@pytest.mark.slow
def test_ledgers_of_two_halves_add_up_to_the_ledger_of_the_whole() -> None:
    run = sample("hpo-aggressive-pruning")
    middle = "2025-10-24 18:31:07"
    whole, first, second = map(measure_ledger, (run, run.between(None, middle), run.between(middle, None)))
    both = first.totals.set_index("cell")["gpu_s"] + second.totals.set_index("cell")["gpu_s"]
    assert both.sum() == pytest.approx(whole.total_gpu_s, abs=1e-6)
    # The halves of the one sample at the cut fall to other cells at most.
    assert (both - whole.totals.set_index("cell")["gpu_s"]).abs().max() <= 2 * 5.0 + 1e-6


@pytest.mark.slow
def test_time_measures_count_only_what_lies_within() -> None:
    part = sample("hpo-aggressive-pruning").between("2025-10-24 18:00", "2025-10-24 19:00")
    assert measure_ledger(part).total_gpu_s == pytest.approx(3600, abs=1e-6)
    assert measure_parallelism(part).window_s == pytest.approx(3600, abs=1e-6)
    assert measure_sampling(part).coverage_pct > 99.5


def test_a_span_within_a_span_is_the_smaller_one() -> None:
    run = toy_run()
    inner = run.between(START + 10 * MINUTE, START + 40 * MINUTE).between(START, START + 30 * MINUTE)
    assert inner.info.between == (START + 10 * MINUTE, START + 30 * MINUTE)


@pytest.mark.parametrize(
    ("start", "end", "error"),
    [("noon-ish", None, ConfigError), (pd.NaT, None, ConfigError), ("2026-03-02", "2026-03-01", ConfigError),
     ("2027-01-01", None, NotMeasurable)],
)  # fmt: skip
def test_a_span_that_makes_no_sense_is_one_clear_sentence(start: str, end: str | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        toy_run().between(start, end)


@pytest.mark.slow
def test_one_gpu_has_the_rows_of_the_ledger_that_it_has_in_the_whole() -> None:
    run = toy_run()
    declared = replace(run, trials=run.trials.assign(gpu=["0", "1"] * 6))
    whole = measure_ledger(declared).cells
    for gpu in ("0", "1"):
        part = declared.gpus_only(gpu)
        assert list(part.trials["trial"]) == [n for n in range(12) if n % 2 == int(gpu)]
        mine = measure_ledger(part).cells
        assert set(mine["gpu"]) == {gpu}
        expected = whole[whole["gpu"] == gpu].set_index("cell")["gpu_s"]
        assert mine.set_index("cell")["gpu_s"].to_dict() == pytest.approx(expected.to_dict(), abs=600)


@pytest.mark.slow
def test_leaving_out_a_gpu_does_not_make_the_other_the_only_one_there_is() -> None:
    """Trials that name no GPU may have run on the one left out."""
    part = toy_run().gpus_only("1")
    where = gd.diagnose(part).profiles["attribution"].trials
    assert "only GPU" not in set(where["method"])


def test_a_gpu_is_named_by_index_number_or_uuid() -> None:
    run = toy_run()
    run = replace(run, gpus=run.gpus.assign(uuid=["GPU-a", "GPU-b"]))
    for name in ("1", 1, "GPU-b"):
        assert set(run.gpus_only(name).gpu["gpu"]) == {"1"}
    for both in (["0", "1"], ("0", 1), "0,1", "0, GPU-b", [0, "GPU-b"]):
        assert set(run.gpus_only(both).gpu["gpu"]) == {"0", "1"}
    named = replace(run, gpu=run.gpu.assign(gpu=run.gpu["gpu"].replace("1", "a,b")))
    assert set(named.gpus_only("a,b").gpu["gpu"]) == {"a,b"}
    with pytest.raises(ConfigError, match="no GPU '7'"):
        run.gpus_only("7")
    with pytest.raises(ConfigError, match="name one GPU"):
        run.gpus_only()


TURNS = [(100.0 * n, 100.0 * n + 90.0) for n in range(8)]
TOUCHING = [(100.0 * n, 100.0 * n + 101.0) for n in range(8)]
TWO = [(100.0 * (n // 2) + 20.0 * (n % 2), 100.0 * (n // 2) + 90.0) for n in range(8)]
ONE_AND_OTHER = ["0", "1", "0", "1", "0", "1", "0", "1"]


@pytest.mark.parametrize(
    ("times", "gpus", "workers", "missing"),
    [
        (TWO, ONE_AND_OTHER, None, {"study"}),  # one worker on each GPU
        (
            TWO,
            ["0", "1", "1", "0", "0", "1", "1", "0"],
            None,
            {"study"},
        ),  # one at once on each
        (TWO, ["0", "0", "0", "1", "1", "1", "1", "0"], None, {"study", "workers"}),  # two workers that take any GPU
        (TURNS, ONE_AND_OTHER, None, {"study", "workers"}),  # one worker that takes them in turn
        (TOUCHING, ONE_AND_OTHER, None, {"study", "workers"}),
        (TURNS, ONE_AND_OTHER, list("abababab"), {"study"}),
        (TWO, ONE_AND_OTHER, list("abbaabba"), {"study", "workers"}),
        (TURNS, ONE_AND_OTHER, list("abcdefgh"), {"study", "workers"}),  # a name a trial is a process
        (TURNS, ["0", "0", "0", "0", "1", "1", "1", "1"], None, {"study"}),  # the others came later
        (TURNS, ["0", "0,1", "0", "0,1", "0", "0,1", "0", "0,1"], None, set()),
    ],
)
def test_workers_are_whole_on_their_gpu(
    times: list[tuple[float, float]], gpus: list[str], workers: list[str] | None, missing: set[str]
) -> None:
    table = trials_of([("COMPLETE", *time) for time in times], gpu=gpus).assign(**{"user_attrs.worker": workers})
    run = toy_run()
    run = replace(run, trials=table if workers else table.drop(columns="user_attrs.worker"))
    part = run.gpus_only("0")
    assert set(part.info.incomplete) == missing
    assert part.info.settings.parallel == (2 if len(part.trials) == 8 else None)


@pytest.mark.slow
def test_trials_leave_with_their_gpu_however_they_name_it() -> None:
    run = toy_run()
    run = replace(run, gpus=run.gpus.assign(uuid=["GPU-aaaa", "GPU-bbbb"]))
    names = ["0", "GPU-aaaa", "1", "GPU-bbbb", "GPU-aaaa,GPU-bbbb", "cuda:1"] * 2
    plain = run.trials.drop(columns="gpu", errors="ignore")
    for trials in (plain.assign(gpu=names), plain.assign(**{"user_attrs.gpu": names})):
        part = replace(run, trials=trials).gpus_only("1")
        assert list(part.trials["trial"]) == [2, 3, 4, 5, 8, 9, 10, 11]
        where = gd.diagnose(part).profiles["attribution"].trials
        assert set(where["method"]) == {"declared"}


def test_a_run_without_trials_has_none_to_choose() -> None:
    with pytest.raises(NotMeasurable, match="no trials to choose from"):
        small_run(gpu=samples_of(range(9), util_pct=5.0)).trials_where(state="FAIL")
    none = toy_run().trials_where(lambda t: t["trial"] < 0)
    assert none.trials.empty and none.trials_where(state="FAIL").trials.empty


def test_one_study() -> None:
    run = toy_run()
    two = replace(run, trials=run.trials.assign(study=["s"] * 8 + ["t"] * 4))
    assert list(two.study("t").trials["trial"]) == [8, 9, 10, 11]
    assert "study t" in two.study("t").info.notes[-1]
    with pytest.raises(StudyNotFound, match="no study 'u'"):
        two.study("u")


def _two_studies(a: list[tuple[float, float]], b: list[tuple[float, float]], **of_trials: list[str]) -> Run:
    """Studies a and b on one GPU, which works at 90 % from 10 s behind each start of a trial to its end."""
    parts = [trials_of([("COMPLETE", *one) for one in own], study=name) for name, own in (("a", a), ("b", b))]
    at = np.arange(-50.0, 650.0, 1.0)
    busy = [any(low + 10 <= one < high for low, high in a + b) for one in at]
    names = pd.DataFrame({"study": ["a", "b"], "directions": "MINIMIZE"})
    return small_run(
        trials=pd.concat(parts, ignore_index=True).assign(**of_trials),
        studies=names,
        gpu=samples_of(at, util_pct=np.where(busy, 90.0, 0.0), power_w=np.where(busy, 300.0, 60.0)),
    )


TURNS_OF_A = [(0.0, 100.0), (200.0, 300.0), (400.0, 500.0)]
TURNS_OF_B = [(100.0, 200.0), (300.0, 400.0), (500.0, 600.0)]


def test_gpu_time_of_another_study_is_neither_idle_nor_of_the_one_chosen() -> None:
    part = _two_studies(TURNS_OF_A, TURNS_OF_B).study("a")
    ledger, costs = measure_ledger(part), measure_costs(part)
    seconds = ledger.totals.set_index("cell")["gpu_s"]
    assert seconds.sum() == pytest.approx(300, abs=3)  # three trials of 100 s
    assert seconds["busy"] == pytest.approx(270, abs=3) and seconds["idle_no_trial"] == seconds["foreign"] == 0
    assert costs.trial_gpu_h == pytest.approx(300 / 3600) and costs.startup_median_s == pytest.approx(10, abs=1)
    assert costs.energy_kwh == pytest.approx((270 * 300 + 30 * 60) / 3.6e6, rel=0.02)
    assert part.gpu["util_pct"].isna().sum() == 300 and "Other studies had trials meanwhile" in part.info.notes[-1]
    assert measure_sampling(part).n_gaps == 0


@pytest.mark.slow
def test_gpu_time_with_trials_of_two_studies_is_unknown_for_one() -> None:
    part = _two_studies(TURNS_OF_A, [(90.0, 190.0)]).study("a")
    costs = measure_costs(part)
    assert {"gpus", "sharing"} <= set(part.info.incomplete) and math.isnan(costs.trial_gpu_h)
    assert list(costs.trials["gpu_s"].isna()) == [True, False, False]
    apart = _two_studies(TURNS_OF_A, [(700.0, 800.0)]).study("a")  # never seen by the telemetry
    assert apart.info.incomplete == () and measure_costs(apart).trial_gpu_h == pytest.approx(300 / 3600)


def test_results_that_were_added_to_another_study_took_no_gpu() -> None:
    run = _two_studies(TURNS_OF_A, TURNS_OF_A, added=[None, None, None, "copy", "copy", "copy"])
    assert run.study("a").info.incomplete == () and run.study("a").gpu["util_pct"].notna().all()


def test_an_abandoned_trial_of_another_study_lasts_no_longer_than_its_trials() -> None:
    run = _two_studies([(300.0, 400.0)], [(0.0, 100.0), (50.0, 0.0)])
    trials = run.trials.assign(end=run.trials["end"].where(run.trials.index < 2))
    part = replace(run, trials=trials).study("a")
    assert part.gpu["util_pct"].isna().sum() == 150  # to 150 s: as long as the other one


def test_a_trial_of_a_study_in_which_none_ended_may_last_until_the_last_sample() -> None:
    run = _two_studies([(300.0, 400.0)], [(100.0, 200.0)])
    part = replace(run, trials=run.trials.assign(end=run.trials["end"].where(run.trials.index < 1))).study("a")
    assert part.gpu["util_pct"].isna().sum() in (549, 550)  # from 100 s to the last sample, at 649 s


@pytest.mark.parametrize("sign", ["", "last_seen", "report"])
def test_time_in_which_an_abandoned_trial_of_another_study_may_have_run_is_unknown_and_not_taken_away(
    sign: str,
) -> None:
    """The study goes on, in another process: the trial that began at 150 s may have been dead since then, or since its
    last sign of life at 180 s.
    """
    run = _two_studies(TURNS_OF_A, [(100.0, 150.0), (150.0, 0.0), (500.0, 600.0)])
    trials = run.trials.assign(end=run.trials["end"].where(run.trials.index != 4))
    alive_s = 180.0 if sign else 150.0
    moment = trials["start"].iloc[4] + pd.Timedelta(seconds=30)
    if sign == "last_seen":
        trials = trials.assign(last_seen=[*[pd.NaT] * 4, moment, pd.NaT])
    if sign == "report":
        reports = pd.DataFrame({"study": ["b"], "trial": [1], "step": [0], "value": [0.5], "time": [moment]})
        run = replace(run, reports=reports)
    part = replace(run, trials=trials).study("a")
    assert part.gpu["util_pct"].isna().sum() == 500  # from 100 s to 600 s: what it shows may be of either
    assert part.info.others_at_least_us != part.info.others_us and "may have run is unknown" in part.info.notes[-1]
    seconds = measure_ledger(part).totals.set_index("cell")["gpu_s"]
    assert seconds.sum() == pytest.approx(500 - (alive_s - 100), abs=3)
    assert seconds["unobserved"] == pytest.approx(500 - alive_s, abs=3) and seconds["busy"] == pytest.approx(90, abs=3)


def test_a_study_on_gpus_of_its_own_is_looked_at_on_these() -> None:
    run = _two_studies(TURNS_OF_A, [(0.0, 600.0)], gpu=["0", "0", "0", "1"])
    run = replace(run, gpu=pd.concat([run.gpu, run.gpu.assign(gpu="1", util_pct=50.0)], ignore_index=True))
    part = run.study("a")
    assert set(part.gpu["gpu"]) == {"0"} and part.gpu["util_pct"].notna().all() and part.info.incomplete == ()
    assert len(part.trials) == 3


def _side_by_side(n: int = 30) -> Run:
    """Study a on GPU 0 and b on GPU 1, whose trials do not say so: each holds memory from 5 s behind its start to its
    end, and works from 10 s behind it on, at 80 % for a and 60 % for b. A second lies between two.
    """
    rng = np.random.default_rng(3)
    at = np.arange(0.0, 100.0 * n, 2.0)
    parts, logs = [], []
    for name, gpu, util_pct in (("a", "0", 80.0), ("b", "1", 60.0)):
        ends = np.cumsum(rng.uniform(60, 120, n))
        lives = [(low + 1, high) for low, high in zip([0.0, *ends[:-1]], ends, strict=True)]
        age = np.array([max((one - low for low, high in lives if low <= one < high), default=-1.0) for one in at])
        memory = np.where(age >= 5, 9_000.0, 500.0)
        logs.append(samples_of(at, gpu, util_pct=np.where(age >= 10, util_pct, 0.0), mem_used_mib=memory))
        parts.append(trials_of([("COMPLETE", *one) for one in lives], study=name))
    names = pd.DataFrame({"study": ["a", "b"], "directions": "MINIMIZE"})
    log = pd.concat(logs, ignore_index=True)
    return small_run(trials=pd.concat(parts, ignore_index=True), studies=names, gpu=log)


@pytest.mark.parametrize(("study", "gpu", "util_pct"), [("a", "0", 80.0), ("b", "1", 60.0)])
def test_of_two_studies_side_by_side_the_telemetry_shows_which_gpu_was_whose(
    study: str, gpu: str, util_pct: float
) -> None:
    part = _side_by_side().study(study)
    assert set(part.gpu["gpu"]) == {gpu} and part.gpu["util_pct"].notna().all() and part.info.incomplete == ()
    placed = measure_attribution(part).trials
    assert (
        set(placed["gpu"]) == {gpu} and set(placed["method"]) == {"telemetry"} and set(placed["confidence"]) == {"weak"}
    )
    ledger = measure_ledger(part).totals.set_index("cell")["gpu_s"]
    lived_s = (part.trials["end"] - part.trials["start"]).dt.total_seconds()
    assert ledger["unobserved"] == 0 and ledger.sum() == pytest.approx(lived_s.sum() + 29, abs=1)  # 29 gaps of a second
    at_work_s = ledger[["busy", "busy_low"]].sum()
    assert at_work_s == pytest.approx(lived_s.sum() - 10 * len(lived_s), rel=0.03)
    assert "is read off the telemetry of all studies" in part.info.notes[-1]


def test_gaps_between_trials_of_a_study_on_an_unknown_gpu_are_not_those_of_another() -> None:
    run = _side_by_side()
    part = replace(run, gpu=run.gpu.drop(columns="mem_used_mib").assign(util_pct=70.0)).study("a")  # places none
    b = run.trials[run.trials["study"] == "b"]
    meanwhile = part.gpu["time"].between(b["start"].min(), b["end"].max(), inclusive="left")
    assert part.gpu["util_pct"].isna().equals(meanwhile)


@pytest.mark.slow
def test_a_study_is_loaded_beside_those_of_its_storage() -> None:
    run = _two_studies(TURNS_OF_A, TURNS_OF_B)
    loaded = gd.load_run(
        telemetry=run.gpu, trials=run.trials.assign(**{"params.of_b": [np.nan] * 3 + [1.0] * 3}), study="a"
    )
    assert loaded.info.others_us == run.study("a").info.others_us and len(loaded.trials) == 3
    assert "params.of_b" not in loaded.trials and [one.name for one in loaded.info.inputs[1].studies] == ["a"]
    pd.testing.assert_series_equal(loaded.gpu["util_pct"], run.study("a").gpu["util_pct"])


def test_trials_by_value_by_list_and_by_test() -> None:
    run = toy_run()
    run = replace(run, trials=run.trials.assign(**{"params.lr": [0.1 * n for n in range(12)]}))
    assert set(run.trials_where(state="FAIL").trials["trial"]) == {4, 10}
    assert len(run.trials_where(state=["FAIL", "COMPLETE"]).trials) == 4
    assert list(run.trials_where(lambda t: t["params.lr"] > 0.95).trials["trial"]) == [10, 11]
    assert list(run.trials_where(lambda t: t["params.lr"] > 0.95, state="FAIL").trials["trial"]) == [10]
    assert len(run.trials_where(lr=0.0).trials) == 1
    with pytest.raises(ConfigError, match="no column 'colour'"):
        run.trials_where(colour="red")
    with pytest.raises(ConfigError, match="True or False"):
        run.trials_where(lambda t: t["params.lr"])
    with pytest.raises(ConfigError, match=r"column 'params.lrr'.*params.lr"):
        run.trials_where(lambda t: t["params.lrr"] > 1)
    with pytest.raises(ConfigError, match=r"no state 'FAILED'.*FAIL"):
        run.trials_where(state="FAILED")


@pytest.mark.many
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(name, marks=() if name == "tiny-batch-laptop" else pytest.mark.slow)
        for name in sorted(str(path.parent.relative_to(SAMPLES)) for path in SAMPLES.rglob("run.toml"))
    ],
)
@pytest.mark.slow
def test_every_measure_works_on_every_selection(case: str) -> None:
    run = gd.load_run(SAMPLES / case)
    times = [s for s in (run.gpu["time"], run.trials["start"].dropna()) if len(s)]
    low, high = min(s.min() for s in times), max(s.max() for s in times)
    parts = [run.between(low + (high - low) / 3, low + (high - low) * 2 / 3)]
    parts += [run.gpus_only(run.gpu["gpu"].iloc[0])] if len(run.gpu) else []
    parts += [run.study(run.trials["study"].iloc[0]).trials_where(state="COMPLETE")] if len(run.trials) else []
    for part in parts:
        assert gd.diagnose(part).to_dict()["verdicts"]


@pytest.mark.parametrize(
    ("gone", "missing"),
    [
        ((0.0, 50.0), {"gpus"}),  # before the first that is kept
        ((900.0, 950.0), {"gpus"}),
        ((210.0, 290.0), {"gpus", "workers"}),  # between two that are kept
        ((150.0, 250.0), {"gpus", "workers", "sharing"}),
        ((250.0, 350.0), {"gpus", "workers", "sharing"}),
        ((50.0, 900.0), {"gpus", "workers", "sharing"}),
        ((200.0, 300.0), {"gpus", "workers"}),
        ((250.0, math.nan), {"gpus", "workers", "sharing"}),  # nobody knows its end
        ((math.nan, math.nan), set()),  # it never ran
    ],
)
def test_what_is_missing_depends_on_when_the_others_ran(gone: tuple[float, float], missing: set[str]) -> None:
    table = trials_of([("COMPLETE", 100.0, 200.0), ("COMPLETE", *gone), ("COMPLETE", 300.0, 400.0)])
    recorded = small_run(trials=table, gpu=samples_of(np.arange(0.0, 1000.0, 10.0)))
    assert set(left_in_part(recorded, pd.Series([True, False, True]))) == missing
    unrecorded = small_run(trials=table)
    assert set(left_in_part(unrecorded, pd.Series([True, False, True]))) == missing - {"gpus"}


@pytest.mark.parametrize(
    ("gone", "clock", "missing"),
    [
        ((-1000.0, -900.0), ClockRecord(), False),  # before the telemetry
        ((500.0, 600.0), ClockRecord(), False),
        ((-1000.0, 110.0), ClockRecord(), True),
        ((-1000.0, math.nan), ClockRecord(), True),
        ((500.0, 600.0), ClockRecord(apart_s=99.0), False),
        ((500.0, 600.0), ClockRecord(apart_s=101.0), True),
        ((9e6, 9.1e6), ClockRecord(confidence="undetermined"), True),
        ((9e6, 9.1e6), ClockRecord(joined=False), True),
    ],
)
def test_trials_that_no_telemetry_met_leave_the_gpus_whole(
    gone: tuple[float, float], clock: ClockRecord, missing: bool
) -> None:
    """Telemetry from 100 s to 400 s, with the trials that are kept within."""
    table = trials_of([("COMPLETE", 150.0, 200.0), ("COMPLETE", *gone), ("COMPLETE", 300.0, 350.0)])
    run = Run(trials=table, gpu=samples_of(np.arange(100.0, 401.0, 10.0)), info=RunInfo(clock=clock))
    assert ("gpus" in left_in_part(run, pd.Series([True, False, True]))) == missing


def test_selections_say_what_they_leave_in_part() -> None:
    run = toy_run()
    assert run.trials_where(lambda t: t["trial"] >= 0).info.incomplete == ()
    some = run.trials_where(lambda t: t["trial"] < 4)
    assert {"study", "outcomes", "gpus"} <= set(some.info.incomplete) and some.info.n_unselected == len(run.trials)
    fewer = some.trials_where(lambda t: t["trial"] < 2)
    assert fewer.info.n_unselected == len(run.trials)
    assert run.between(START, START + 15 * MINUTE).info.incomplete == ("study",)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["even", "complete", "failed", "span"])
def test_a_part_of_the_trials_makes_no_finding_that_needs_them_all(which: str) -> None:
    """The others did work on the GPU, on workers that had them between the trials that are left."""
    run, whole = sample("healthy"), diagnosed("healthy")
    begin, end = run.gpu["time"].min(), run.gpu["time"].max()
    part = {
        "even": lambda: run.trials_where(lambda t: t["trial"] % 2 == 0),
        "complete": lambda: run.trials_where(lambda t: t["trial"].isin([3, 11, 17])),
        "failed": lambda: run.trials_where(lambda t: t["trial"] == 9),
        "span": lambda: run.between(begin + (end - begin) / 4, end - (end - begin) / 4),
    }[which]()
    found = gd.diagnose(part)
    assert {v.rule for v in found.findings} <= {v.rule for v in whole.findings}, found.headline
    assert found.verdicts["study-tail"].status.value == "not_assessed"
    if which == "span":
        return
    n_all = f"{len(part.trials)} of {len(run.trials)} trials were selected, and this needs all of them."
    for rule in ("foreign-load", "trial-gaps", "parallelism-below-configured", "memory-residual", "failure-rate-high"):
        verdict = found.verdicts[rule]
        assert (verdict.status.value, verdict.reason) == ("not_assessed", n_all)
    assert not any("worker" in one.id for one in found.recommendations if one.id != "warm-worker")
    with pytest.raises(NotMeasurable, match="were selected"):
        gd.what_if(part)
    text = found.to_markdown()
    assert "Of the selected trials" in text and "were configured" not in text and "median gap" not in text


def test_without_the_others_neither_workers_nor_gaps_are_known() -> None:
    part = toy_run().trials_where(lambda t: t["trial"] % 2 == 0)
    known = measure_parallelism(part)
    assert known.selected and known.gaps.empty and known.workers.empty
    assert math.isnan(known.configured) and math.isnan(known.median_gap_s)
    assert not measure_parallelism(toy_run()).selected
