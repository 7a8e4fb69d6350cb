"""Numbers of a comparison against arithmetic done here, and what is said of them."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from batchruns import T0, batch, with_telemetry

from gpudiag.comparison.compare import Comparison, Comparisons, compare
from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import Quantity, judged, say
from gpudiag.run import Run
from gpudiag.schema import EVENTS, GPU, GPUS, REPORTS, STUDIES, conform

RNG = np.random.default_rng(21)
A = RNG.lognormal(3, 0.4, 40)


def pair(a: Run, b: Run) -> Comparison:
    found = compare(a, b)
    assert isinstance(found, Comparison)
    return found


def quantity(**changes: object) -> Quantity:
    plain = Quantity("x", "X", "s", "time", 10.0, 12.0, 1.2, 1.1, 1.3, 0.001, 0.01)
    return replace(plain, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "slower"),
        ({"kind": "speed"}, "faster"),
        ({"kind": "level"}, "higher"),
        ({"ratio": 0.8, "low": 0.7, "high": 0.9}, "faster"),
        ({"ratio": 0.8, "low": 0.7, "high": 0.9, "kind": "rate"}, "lower"),
        ({"p_adjusted": 0.06}, "no evidence"),
        ({"p_adjusted": math.nan}, "no evidence"),
        ({"ratio": 1.01, "low": 0.97, "high": 1.05}, "equivalent"),
        ({"ratio": 1.01, "low": 0.97, "high": 1.051, "p_adjusted": 0.6}, "no evidence"),
        ({"ratio": 1.02, "low": 1.01, "high": 1.03, "p_adjusted": 1e-9}, "equivalent"),
        ({"ratio": 1.0, "low": 1.0, "high": 1.0, "p_adjusted": 1.0, "n_baseline": 1, "n_experiment": 9}, "no evidence"),
        ({"ratio": 1.0, "low": 1.0, "high": 1.0, "p_adjusted": 1.0, "n_baseline": 9, "n_experiment": 5}, "no evidence"),
        ({"ratio": 1.0, "low": 1.0, "high": 1.0, "p_adjusted": 1.0, "n_baseline": 6, "n_experiment": 6}, "equivalent"),
        ({"kind": "peak"}, "no evidence"),
        ({"kind": "total"}, "no evidence"),
        ({"ratio": math.nan, "baseline": 0.0, "kind": "rate"}, "higher"),
    ],
)
def test_what_is_said(changes: dict[str, object], said: str) -> None:
    assert say(quantity(**changes)) == said


def test_many_tests_share_five_percent() -> None:
    unnamed = Match(pd.DataFrame(), False, 1, 1, math.nan, 0, math.nan, None)
    one = quantity(p=0.02, p_adjusted=math.nan)
    nulls = [quantity(name=f"n{i}", p=0.5, p_adjusted=math.nan) for i in range(9)]
    alone = judged([[one]], [False], [unnamed])[0][0]
    among = judged([[one, *nulls]], [False], [unnamed])[0][0]
    assert (alone.verdict, alone.p_adjusted) == ("slower", pytest.approx(0.02))
    assert (among.verdict, among.p_adjusted) == ("no evidence", pytest.approx(0.2))
    apart = judged([[one], nulls], [False, False], [unnamed, unnamed])[0][0]
    assert apart.p_adjusted == pytest.approx(0.2)


def test_an_invalid_pair_keeps_only_what_claims_nothing() -> None:
    unnamed = Match(pd.DataFrame(), False, 1, 1, math.nan, 0, math.nan, None)
    parts = [quantity(), quantity(name="f", kind="rate", p=0.4), quantity(name="u", kind="level", p=1e-9)]
    assert [q.verdict for q in judged([parts], [True], [unnamed])[0]] == ["invalid", "no evidence", "invalid"]


@pytest.mark.slow
def test_items_run_twice_as_fast() -> None:
    found = pair(batch("a", A, workers=4, params={"p": 1}), batch("b", A / 2, workers=4, params={"p": 1}))
    assert found.verdict == "faster" and found.leader is not None and found.leader.name == "duration"
    assert found.leader.ratio == pytest.approx(0.5) and found.quantity("throughput").ratio == pytest.approx(2)
    assert found.quantity("throughput").verdict == found.quantity("time_per_item").verdict == "faster"
    wall = found.quantity("wall_time")
    assert wall.baseline == pytest.approx(2 * wall.experiment)
    assert found.quantity("time_per_item").baseline == pytest.approx(wall.baseline / 40)


@pytest.mark.slow
def test_more_at_once_is_judged_by_wall_time_not_by_duration() -> None:
    one, four = batch("a", A, workers=1, params={"p": 1}), batch("b", 1.5 * A, workers=4, params={"p": 1})
    found = pair(one, four)
    assert found.quantity("duration").verdict == "slower" and "ran at once" in str(found.quantity("duration").note)
    assert found.leader is not None and found.leader.name == "time_per_item" and found.verdict == "faster"


@pytest.mark.slow
def test_retries_of_an_item_count_once() -> None:
    names = [f"item {i}" for i in range(40)]
    a = batch("a", A, items=names, params={"p": 1})
    states = ["FAIL", "FAIL", *["COMPLETE"] * 40]
    b = batch("b", [0.1, 0.1, *A], items=["item 0", "item 1", *names], states=states, params={"p": 1})
    found = pair(a, b)
    assert found.matched.n_experiment == 40 and len(found.matched.both_complete) == 40
    assert found.quantity("duration").ratio == pytest.approx(1, abs=1e-6)
    assert found.quantity("failures").experiment == pytest.approx(100 * 2 / 42)


@pytest.mark.slow
def test_the_ledger_changes_add_up_to_the_totals() -> None:
    a, b = (with_telemetry(batch(n, x), u) for n, x, u in (("a", A, [80, 90, 0]), ("b", 0.8 * A, [30, 95, 90])))
    found = pair(a, b)
    change = sum(cell.difference_gpu_h for cell in found.ledger)
    assert change == pytest.approx(-0.2 * A.sum() / 3600, rel=1e-3)
    assert sum(cell.baseline_share_pct for cell in found.ledger) == pytest.approx(100)
    assert sum(cell.experiment_item_gpu_s for cell in found.ledger) == pytest.approx(0.8 * A.sum() / 40, rel=1e-3)
    energy = found.quantity("energy")
    assert energy.baseline == pytest.approx((100 + 3 * np.mean([80, 90, 0])) * A.sum() / 3.6e6, rel=0.02)
    assert found.quantity("utilization").baseline == pytest.approx(np.mean([80, 90, 0]), rel=0.02)


def priced(name: str, seconds: np.ndarray, price: float, n_gpus: int = 1) -> Run:
    """A batch on GPUs at 80 % that are all held from its start to its end, at this price an hour."""
    one = with_telemetry(batch(name, seconds, params={"p": 1}, settings={"price_per_gpu_h": price}), [80.0])
    held = [one.gpu.assign(gpu=str(k)) for k in range(n_gpus)]
    return replace(one, gpu=conform(pd.concat(held), GPU))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("price", "n_gpus", "verdicts", "follows"),
    [
        (2.0, 1, ("equivalent", "equivalent"), ("time_per_item", "time_per_item")),
        (3.0, 1, ("equivalent", "higher"), ("time_per_item", "")),
        (2.0, 2, ("higher", "higher"), ("", "gpu_time_per_item")),
        (1.0, 2, ("higher", "equivalent"), ("", "time_per_item")),
    ],
)
def test_gpus_and_prices_count_though_the_time_is_the_same(
    price: float, n_gpus: int, verdicts: tuple[str, str], follows: tuple[str, str]
) -> None:
    found = pair(priced("a", A, 2.0), priced("b", 1.001 * A, price, n_gpus))
    assert found.quantity("time_per_item").verdict == "equivalent"
    hours = A.sum() / 3600 / 40
    truths = (1.001 * n_gpus, 1.001 * n_gpus * price / 2)
    for name, base, truth, verdict, other in zip(
        ("gpu_time_per_item", "cost_per_item"), (3600 * hours, 2 * hours), truths, verdicts, follows, strict=True
    ):
        held = found.quantity(name)
        assert held.baseline == pytest.approx(base, rel=1e-3) and held.ratio == pytest.approx(truth, rel=1e-3)
        assert (held.verdict, held.follows, held.tested) == (verdict, other, not other)
        assert (held.low > 1.01) == (verdict == "higher") and held.low - 1e-6 < truth < held.high + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("dark", [0.6, 0.05])
def test_energy_of_a_part_of_a_job_is_not_compared(dark: float) -> None:
    """Both draw 340 W all the time; the power of one was not read in its first part."""
    a, b = (with_telemetry(batch(n, x, params={"p": 1}), [80.0]) for n, x in (("a", A), ("b", 1.01 * A)))
    unread = np.arange(len(b.gpu)) < dark * len(b.gpu)
    found = pair(a, replace(b, gpu=b.gpu.assign(power_w=b.gpu["power_w"].mask(unread))))
    for name, truth in (("energy", 340 * A.sum() / 3.6e6), ("energy_per_item", 340 * A.sum() / 3600 / 40)):
        held = found.quantity(name)
        assert held.baseline == pytest.approx(truth, rel=0.01) and np.isnan(held.experiment) and np.isnan(held.ratio)
        said = re.search(r"recorded for 100 % of a and ([\d.]+) % of b:", str(held.note))
        assert held.verdict == "invalid" and said
        assert float(said[1]) == pytest.approx(100 * (1 - unread.mean()), abs=0.6)
    assert found.quantity("gpu_time").verdict == "no evidence" and found.quantity("power").verdict == "equivalent"


@pytest.mark.slow
def test_failures_told_by_logs_are_rates() -> None:
    def run(name: str, n: int) -> Run:
        told = {"time": [T0] * n, "kind": ["oom"] * n, "detail": ["CUDA out of memory"] * n}
        return replace(batch(name, 1.01 * A if n else A, params={"p": 1}), events=conform(pd.DataFrame(told), EVENTS))

    found = pair(run("a", 0), run("b", 12)).quantity("log_events")
    assert (found.baseline, found.experiment) == (0, pytest.approx(12 / (1.01 * A.sum() / 3600)))
    assert found.verdict == "higher" and "0 in" in str(found.note)
    with pytest.raises(KeyError):
        pair(run("a", 0), batch("b", 1.01 * A, params={"p": 1})).quantity("log_events")


@pytest.mark.slow
def test_attributes_that_may_be_shown_are_compared() -> None:
    def run(name: str, commit: str, factor: float) -> Run:
        made = batch(name, factor * A, params={"p": 1}, show_attrs=("commit",))
        return replace(made, trials=made.trials.assign(**{"user_attrs.commit": commit, "user_attrs.token": commit}))

    found = [d for d in pair(run("a", "abc", 1), run("b", "def", 1.1)).differences if d.group == "attributes"]
    assert [(d.name, d.baseline, d.experiment) for d in found] == [("commit", "abc", "def")]


@pytest.mark.slow
def test_money_needs_one_currency() -> None:
    def run(name: str, currency: str) -> Run:
        told = {"price_per_gpu_h": 2.0, "currency": currency}
        return with_telemetry(batch(name, A, settings=told), [40, 60])

    found = pair(run("a", "EUR"), run("b", "EUR"))
    assert found.quantity("cost").baseline == pytest.approx(2 * A.sum() / 3600, rel=1e-3)
    assert found.quantity("cost").unit == "EUR"
    with pytest.raises(KeyError):
        pair(run("a", "EUR"), run("b", "USD")).quantity("cost")


def study(name: str, seconds: np.ndarray, values: list[float], steps: int) -> Run:
    run = with_telemetry(batch(name, seconds, named=False, params={"lr": np.linspace(0.1, 0.2, len(seconds))}), 60.0)
    rows = [("batch", t, s, 0.5) for t in range(len(seconds)) for s in range(steps)]
    reports = conform(pd.DataFrame(rows, columns=["study", "trial", "step", "value"]), REPORTS)
    studies = conform(pd.DataFrame({"study": ["batch"], "directions": ["MINIMIZE"]}), STUDIES)
    return replace(run, trials=run.trials.assign(value=values), reports=reports, studies=studies)


@pytest.mark.slow
def test_time_to_the_same_best_value() -> None:
    a = study("a", np.full(8, 100.0), [9, 8, 7, 6, 5, 4, 3, 2.0], 5)
    b = study("b", np.full(8, 50.0), [9, 8, 1, 6, 5, 4, 3, 2.0], 5)
    found = pair(a, b)
    reached = found.quantity("time_to_best")
    assert (reached.baseline, reached.experiment) == pytest.approx((800, 150))
    assert found.quantity("gpu_time_to_best").baseline == pytest.approx(800 / 3600, rel=1e-3)
    assert "was 2," in str(reached.note)


@pytest.mark.slow
def test_trials_of_other_lengths_are_another_unit_and_give_time_per_step() -> None:
    found = pair(study("a", A, [1.0] * 40, 5), study("b", 2.2 * A, [1.0] * 40, 10))
    assert found.invalid and [check.check for check in found.reasons] == ["same-unit"]
    assert found.quantity("step_time").ratio == pytest.approx(1.1)
    assert {one.claim: one.status for one in found.consistency}["time against work"] == "consistent"


@pytest.mark.slow
def test_far_too_fast_for_the_work_is_inconsistent_never_impossible() -> None:
    a = batch("a", A, params={"n_estimators": 100, "p": 1})
    b = batch("b", 0.5 * A, params={"n_estimators": 1000, "p": 1})
    found = {one.claim: one for one in pair(a, b).consistency}["time against work"]
    assert found.status == "inconsistent" and found.values["work_low"] == pytest.approx(10)
    assert "Before it is called impossible" in str(found.text) and "no check failed" in str(found.text)


@pytest.mark.slow
def test_several_experiments_share_the_control_and_have_names_of_their_own() -> None:
    a = batch("a", A, params={"p": 1})
    noise = [A * RNG.lognormal(0, 0.1, 40) for _ in range(2)]
    found = compare(a, batch("b", noise[0], params={"p": 1}), batch("b", 0.5 * noise[1], params={"p": 1}))
    assert isinstance(found, Comparisons) and len(found) == 2
    assert [one.experiment.name for one in found] == ["b", "b (experiment 2)"]
    assert found[1].verdict == "faster" and not found.fails("regression")
    assert found.to_dict()["schema"] == "gpudiag.comparisons/1"
    listed = compare(a, [batch("b", noise[0], params={"p": 1})])
    assert isinstance(listed, Comparisons) and len(listed) == 1


@pytest.mark.slow
def test_a_regression_is_slower_or_fails_more() -> None:
    a = batch("a", A, params={"p": 1})
    assert pair(a, batch("b", 1.5 * A, params={"p": 1})).fails("regression")
    assert not pair(a, batch("b", 0.5 * A, params={"p": 1})).fails("regression")
    states = ["FAIL" if i % 2 else "COMPLETE" for i in range(40)]
    broken = pair(a, batch("b", 1.01 * A, states=states, params={"p": 1}))
    assert broken.quantity("failures").verdict == "higher" and broken.fails("regression")
    assert not broken.fails("never")
    same = pair(a, a)
    assert same.fails("invalid") and not same.fails("regression")


@pytest.mark.slow
def test_the_same_against_the_same_is_seldom_called_different() -> None:
    wrong = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        size = rng.lognormal(3, 0.5, 20)
        runs = [batch(n, size * rng.lognormal(0, 0.2, 20), workers=2, params={"p": 1}) for n in "ab"]
        wrong.append(pair(*runs).verdict in ("faster", "slower"))
    assert sum(wrong) <= 2  # 0.6 expected at 5 %; more than 2 of 12 happens in 2 % of such samples


@pytest.mark.slow
def test_swapping_the_runs_inverts_every_ratio() -> None:
    a, b = (with_telemetry(batch(n, x, params={"p": 1}), [50, 70, 60]) for n, x in (("a", A), ("b", 1.2 * A)))
    there, back = pair(a, b), pair(b, a)
    for one in there.quantities:
        other = back.quantity(one.name)
        if not math.isnan(one.ratio) and one.ratio > 0:
            assert one.ratio * other.ratio == pytest.approx(1, rel=1e-6), one.name
    assert (there.verdict, back.verdict) == ("slower", "faster")


@pytest.mark.slow
def test_longer_items_with_fewer_pauses_are_slower_one_way_and_faster_the_other() -> None:
    """Items take a fifth longer in b; in a each is followed by a pause half as long, so that the whole takes longer."""
    a, b = batch("a", A, params={"p": 1}), batch("b", 1.2 * A, params={"p": 1})
    pauses = pd.to_timedelta(np.cumsum(0.5 * A) - 0.5 * A, unit="s")
    times = {name: a.trials[name] + pauses for name in ("start", "end")}
    paused = replace(a, trials=a.trials.assign(**times))
    there, back = pair(paused, b), pair(b, paused)
    assert [one.quantity("duration").verdict for one in (there, back)] == ["slower", "faster"]
    assert [one.verdict for one in (there, back)] == ["faster", "slower"]
    assert "Slower by duration of an item" in there.headline["sentences"][1]


@pytest.mark.slow
def test_inputs_are_not_changed() -> None:
    a, b = (with_telemetry(batch(n, A, params={"p": 1}), [50, 70]) for n in ("never", "measured"))
    before = [(run.trials.copy(), run.gpu.copy()) for run in (a, b)]
    pair(a, b).to_json()
    for run, (trials, gpu) in zip((a, b), before, strict=True):
        pd.testing.assert_frame_equal(run.trials, trials)
        pd.testing.assert_frame_equal(run.gpu, gpu)
    assert a.trials["start"].min() == T0


@pytest.mark.slow
def test_where_trials_are_pruned_a_complete_trial_is_the_unit() -> None:
    states = ["PRUNED" if i % 2 else "COMPLETE" for i in range(40)]
    a = batch("a", A, states=states, named=False, params={"p": 1})
    found = pair(a, batch("b", 0.6 * A, states=states, named=False, params={"p": 1}))
    assert found.leader is not None and found.leader.name == "time_per_complete"
    assert found.leader.baseline == pytest.approx(A.sum() / 20)
    assert found.leader.ratio == pytest.approx(0.6)


@pytest.mark.slow
def test_wall_time_per_complete_is_no_second_test_where_all_are_complete() -> None:
    """The same numbers twice would loosen the control of chance findings for all others."""
    found = pair(batch("a", A, params={"p": 1}), batch("b", 1.1 * A, params={"p": 1}))
    item, complete = found.quantity("time_per_item"), found.quantity("time_per_complete")
    assert (complete.tested, complete.ratio, complete.p) == (False, item.ratio, item.p)
    assert (complete.p_adjusted, complete.verdict) == (item.p_adjusted, item.verdict)
    tested = [q.p for q in found.quantities if q.tested and not math.isnan(q.p)]
    assert len(set(tested)) == len(tested)


@pytest.mark.slow
def test_wall_time_per_complete_counts_complete_items() -> None:
    states = ["FAIL" if i % 4 == 0 else "PRUNED" if i % 4 == 1 else "COMPLETE" for i in range(40)]
    found = pair(batch("a", A, params={"p": 1}), batch("b", 1.1 * A, states=states, params={"p": 1}))
    complete = found.quantity("time_per_complete")
    assert (complete.tested, complete.n_baseline, complete.n_experiment) == (True, 40, 20)


@pytest.mark.slow
def test_one_success_of_one_proves_no_equality() -> None:
    found = pair(batch("a", A[:1], states=["FAIL"]), batch("b", A[:1], states=["FAIL"]))
    failures = found.quantity("failures")
    assert (failures.baseline, failures.experiment, failures.verdict) == (100, 100, "no evidence")
    assert failures.low < 0.5 and failures.high > 2


def on_two(run: Run) -> Run:
    """The run with a second GPU that does as the first."""
    both = pd.DataFrame({"gpu": ["0", "1"], "name": "NVIDIA GeForce RTX 4090", "mem_total_mib": 24564.0})
    return replace(run, gpu=conform(pd.concat([run.gpu, run.gpu.assign(gpu="1")]), GPU), gpus=conform(both, GPUS))


@pytest.mark.slow
def test_another_number_of_gpus_is_said_beside_the_times_by_the_wall() -> None:
    """Two GPUs take half the wall time for as much GPU time, each as busy as the one was."""
    a = with_telemetry(batch("a", A, named=False, params={"p": 1}), [80, 70])
    b = with_telemetry(batch("b", A, workers=2, named=False, params={"p": 1}, begin_s=7.0), [80, 70])
    found = pair(a, on_two(b))
    said = found.headline["sentences"][1]
    assert found.verdict == "faster" and "GPUs recorded: 1 and 2; GPU time per finished item" in said
    ratio = found.quantity("gpu_time_per_item").ratio
    assert ratio == pytest.approx(1, abs=0.05) and f"{ratio:.2f} (" in said
    alone = pair(a, b)
    assert "GPUs recorded" not in str(alone.headline)


@pytest.mark.slow
def test_busy_seconds_of_another_model_are_no_measure_of_work() -> None:
    """An item takes a third of the time and busy time on another GPU; on the same model it did less work."""
    slow, fast = (batch(n, x, named=False, params={"p": 1}) for n, x in (("a", A), ("b", A / 3)))
    here, there = (with_telemetry(fast, [80, 70], gpu_model=f"NVIDIA GeForce RTX {n}") for n in (4090, 5090))
    claims = [[c.claim for c in pair(with_telemetry(slow, [80, 70]), one).consistency] for one in (here, there)]
    assert "GPU work per item" in claims[0] and "GPU work per item" not in claims[1]


@pytest.mark.slow
def test_constant_work_is_spread_over_all_gpus() -> None:
    """Four times the busy time an item on two GPUs in the same wall time, at twice the utilization of one."""
    a, b = (with_telemetry(batch(n, A, named=False, params={"p": 1}, begin_s=s), u) for n, s, u in
            (("a", 0.0, [40, 36]), ("b", 7.0, [80, 72])))  # fmt: skip
    found = next(c for c in pair(a, on_two(b)).consistency if c.claim == "GPU work per item")
    assert found.values["busy_ratio"] == pytest.approx(4, rel=0.02)
    assert found.values["constant_work_util_pct"] == pytest.approx(38 / 2, abs=0.5)
