"""Each check of the gate: what makes it pass, fail or unknown, and what the verdict is then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from batchruns import batch, moved, unjoined, with_telemetry, without_params
from loggedruns import training

from gpudiag.analysis import Analysis
from gpudiag.comparison.applied import parameters_applied
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.side import Side
from gpudiag.errors import ConfigError, InputError
from gpudiag.manifest import DataLoader
from gpudiag.run import Run, RunInfo

RNG = np.random.default_rng(11)
A = RNG.lognormal(3, 0.4, 24)
B = A * RNG.lognormal(0, 0.1, 24)
SAME = {"depth": 6, "lr": 0.1}


def pair(a: Run | None = None, b: Run | None = None, **more: object) -> Comparison:
    found = compare(a or batch("a", A, params=SAME), b or batch("b", B, params=SAME), **more)  # type: ignore[arg-type]
    assert isinstance(found, Comparison)
    found.to_json()
    return found


def check(found: Comparison, name: str) -> tuple[str, str]:
    return {c.check: (c.status, str(c.evidence)) for c in found.gate}[name]


@pytest.mark.slow
def test_two_like_batches_pass() -> None:
    found = pair()
    assert not found.invalid and found.verdict in ("no evidence", "equivalent")
    assert [c.check for c in found.gate] == [
        "same-unit", "same-workload", "not-a-subset", "parameters-applied", "telemetry-covers-job", "warm-up",
        "sample-size", "equal-success",
    ]  # fmt: skip
    assert {c.status for c in found.gate if c.check not in ("parameters-applied", "telemetry-covers-job")} == {"pass"}


@pytest.mark.slow
def test_a_run_against_itself_is_no_comparison() -> None:
    run = batch("a", A, params=SAME)
    found = pair(run, run)
    assert found.invalid and "the same run" in check(found, "not-a-subset")[1]
    assert found.experiment.name == "a (experiment)"


@pytest.mark.slow
def test_a_part_of_a_run_is_found_by_its_timestamps() -> None:
    run = batch("a", A, params=SAME, named=False)
    part = replace(run, trials=run.trials.iloc[4:14].reset_index(drop=True), info=replace(run.info, name="part"))
    status, evidence = check(pair(run, part), "not-a-subset")
    assert status == "fail" and evidence.startswith("10 of 10 trials have the same start and end")


@pytest.mark.slow
def test_a_run_whose_timestamps_were_moved_is_the_same_run() -> None:
    run = batch("a", A, params=SAME)
    found = pair(run, moved(replace(run, info=replace(run.info, name="b")), 3600))
    assert found.invalid and "lie 1 h apart: the same run" in check(found, "not-a-subset")[1]


@pytest.mark.slow
def test_items_interleaved_with_others_are_a_subset_either_way_round() -> None:
    every_third = [f"item {i}" for i in range(0, 24, 3)]
    few = batch("few", B[:8], items=every_third, params=SAME)
    for found in (pair(batch("many", A, params=SAME), few), pair(few, batch("many", A, params=SAME))):
        assert check(found, "not-a-subset")[0] == "fail" and check(found, "same-workload")[0] == "fail"
        held = found.matched.subset
        assert held is not None and (held.inner, held.n_shared, held.n_between) == ("few", 8, 14)
        assert held.span_s == pytest.approx(A[:22].sum(), rel=1e-6)
        assert held.busy_s == pytest.approx(A[:24:3].sum(), rel=1e-6)


@pytest.mark.slow
def test_items_at_one_end_are_compared_alone_and_totals_are_not() -> None:
    found = pair(batch("long", A, params=SAME), batch("short", 0.7 * A[:18], params=SAME))
    assert check(found, "same-workload")[0] == "pass" and not found.invalid
    assert found.verdict == "faster" and found.leader is not None and found.leader.name == "duration"
    assert found.leader.ratio == pytest.approx(0.7)
    assert found.quantity("wall_time").verdict == "invalid"
    assert found.quantity("time_per_item").verdict == "invalid"


@pytest.mark.slow
def test_other_items_are_another_workload() -> None:
    found = pair(b=batch("b", B, items=[f"other {i}" for i in range(24)], params=SAME))
    assert found.invalid and "0 in both" in check(found, "same-workload")[1]


@pytest.mark.slow
def test_searches_over_other_parameters_are_another_workload() -> None:
    a, b = (batch(n, x, named=False, params=p) for n, x, p in (("a", A, SAME), ("b", B, {"depth": 6, "width": 3})))
    status, evidence = check(pair(a, b), "same-workload")
    assert status == "fail" and "lr, width" in evidence
    assert check(pair(a, without_params(b)), "same-workload")[0] == "unknown"


@pytest.mark.slow
def test_durations_against_timestamps_are_not_one_unit() -> None:
    b = batch("b", B, params=SAME)
    bare = replace(b, trials=b.trials.assign(start=pd.Series(pd.NaT, b.trials.index, dtype=b.trials["start"].dtype)))
    found = pair(b=bare)
    assert found.invalid and check(found, "same-unit")[0] == "fail"
    assert found.quantity("time_per_item").experiment == pytest.approx(B[1:].sum() / 23, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"notes": ("requested: num_leaves 255, n_estimators=1000",)}, "num_leaves 255, n_estimators 1000"),
        ({"notes": ("requested: depth 9",)}, "depth 9 (logged: 6)"),
        ({"settings": {"command": "python train.py --depth=9 --out x"}}, "depth 9 (logged: 6)"),
        ({"settings": {"command": "train.py depth=9"}}, "depth 9 (logged: 6)"),
    ],
)
def test_what_was_requested_and_is_not_shown_fails(info: dict[str, object], words: str) -> None:
    status, evidence = check(pair(b=batch("b", B, params=SAME, **info)), "parameters-applied")
    assert status == "fail" and words in evidence


@pytest.mark.slow
def test_what_was_requested_and_logged_passes() -> None:
    b = batch("b", B, params={**SAME, "flag": True, "num_workers": 4}, dataloader=DataLoader(num_workers=4),
              notes=("requested: depth 6, lr 0.10, flag true",))  # fmt: skip
    _, evidence = check(pair(b=b), "parameters-applied")
    assert "asked for" not in evidence
    odd = replace(b, info=replace(b.info, dataloader=DataLoader(num_workers=8)))
    assert "num_workers 8 (logged: 4)" in check(pair(b=odd), "parameters-applied")[1]


@pytest.mark.slow
def test_missing_parameters_are_unknown() -> None:
    found = pair(b=without_params(batch("b", B, params=SAME)))
    assert check(found, "parameters-applied") == (
        "unknown",
        "b logs no parameters of its items, so whether they are the same is not known. Without GPU telemetry on both "
        "sides the hardware is not known.",
    )
    assert not found.invalid


@pytest.mark.slow
def test_another_board_fails_and_another_power_limit_is_told() -> None:
    a = with_telemetry(batch("a", A, params=SAME), [40, 60])
    other = with_telemetry(batch("b", B, params=SAME), [40, 60], gpu_model="NVIDIA GeForce RTX 3090")
    found = pair(a, other)
    assert found.invalid and "The GPUs differ" in check(found, "parameters-applied")[1]
    assert ("hardware", "gpu_model") in {(d.group, d.name) for d in found.differences}
    capped = with_telemetry(batch("b", B, params=SAME), [40, 60], limit_w=300.0)
    set_lower = pair(a, capped)
    assert check(set_lower, "parameters-applied")[0] == "unknown" and not set_lower.invalid
    assert "450 W; 300 W" in check(set_lower, "parameters-applied")[1]
    assert "The power limit went from 450 W to 300 W" in set_lower.headline["sentences"][1]


@pytest.mark.parametrize(
    ("uuids", "model", "status"),
    [
        (("u", "u"), "NVIDIA A100-SXM4-80GB", "unknown"),
        ((None, None), "NVIDIA A100-SXM4-80GB", "unknown"),
        (("u", None), "NVIDIA A100-SXM4-80GB", "unknown"),
        (("u", "v"), "NVIDIA A100-SXM4-80GB", "fail"),  # another board
        ((None, None), None, "fail"),  # maybe another model
    ],
)
def test_a_power_limit_is_a_setting_of_the_same_gpus(
    uuids: tuple[str | None, str | None], model: str | None, status: str
) -> None:
    sides = []
    for name, uuid, limit_w in (("a", uuids[0], 250.0), ("b", uuids[1], 400.0)):
        run = with_telemetry(batch(name, A[:6], params=SAME), [40, 60], limit_w=limit_w, gpu_model=model or "")
        gpus = run.gpus.assign(uuid=uuid, name=model).drop(columns=[] if model else ["name"])
        sides.append(Side(Analysis(replace(run, gpus=gpus.drop(columns=[] if uuid else ["uuid"]))), name))
    found = parameters_applied(*sides)
    assert found.status == status and "250 W; 400 W" in str(found.evidence)
    assert ("a setting of the same GPUs" in str(found.evidence)) is (status == "unknown")


@pytest.mark.slow
def test_telemetry_that_is_too_short_too_long_or_elsewhere_fails() -> None:
    a = with_telemetry(batch("a", A, params=SAME), [40, 60, 50])
    assert check(pair(a, with_telemetry(batch("b", B, params=SAME), [40, 60, 50])), "telemetry-covers-job")[0] == "pass"
    long = with_telemetry(batch("b", B, params=SAME), 80.0, lag_s=3 * float(B.sum()))
    found = pair(a, long)
    status, evidence = check(found, "telemetry-covers-job")
    needed = found.consistency[0].values["needed_util_pct"]
    assert status == "fail" and needed == pytest.approx(320, abs=4) and f"needed {needed:.0f} %" in evidence
    assert found.quantity("utilization").verdict == "invalid" and not found.invalid
    for strange in (moved(with_telemetry(batch("b", B, params=SAME), 50.0), 86_400),):
        assert "covers 0 %" in check(pair(a, strange), "telemetry-covers-job")[1]
    assert check(pair(a, unjoined(long)), "telemetry-covers-job")[0] == "unknown"


@pytest.mark.slow
def test_peaks_of_another_period_are_not_compared() -> None:
    a = with_telemetry(batch("a", A, params=SAME), [40, 60, 50])
    slow = with_telemetry(batch("b", B, params=SAME), [40, 60, 50], period_s=15.0)
    found = pair(a, slow)
    assert found.quantity("utilization_peak").verdict == "invalid"
    assert "every 5 s and every 15 s" in str(found.quantity("utilization_peak").note)
    assert ("recording", "period_s") in {(d.group, d.name) for d in found.differences}
    same = pair(a, with_telemetry(batch("b", B, params=SAME), [40, 60, 50]))
    assert same.quantity("utilization_peak").verdict == "no evidence"


@pytest.mark.slow
def test_a_cold_start_in_one_run_only_fails() -> None:
    cold = B.copy()
    cold[:3] *= 6
    status, evidence = check(pair(b=batch("b", cold, params=SAME)), "warm-up")
    assert status == "fail" and "b began cold" in evidence
    hot = A.copy()
    hot[:3] *= 6
    both = pair(batch("a", hot, params=SAME), batch("b", cold, params=SAME))
    assert check(both, "warm-up")[0] == "pass"


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "status"), [(1, "fail"), (3, "unknown")])
def test_trials_beside_others_before_a_pruner_stops_any_are_no_cold_start(workers: int, status: str) -> None:
    """The first five of 15 COMPLETE trials ran beside each other, the rest beside trials that were soon pruned."""
    states = ["COMPLETE"] * 5 + ["PRUNED", "PRUNED", "COMPLETE"] * 10
    lengths = np.where(np.array(states) == "PRUNED", 5.0, 40 + np.arange(35) % 3)
    lengths[:5] *= 1.5
    crowded = batch("b", lengths, workers=workers, states=states, named=False, params=SAME, begin_s=9e4)
    alike = batch("a", lengths[5:], workers=workers, states=states[5:], named=False, params=SAME)
    found, evidence = check(pair(alike, crowded), "warm-up")
    assert found == status and ("b began cold" if workers == 1 else "no pruner stopped yet") in evidence


@pytest.mark.slow
def test_durations_are_of_items_that_succeeded_in_both() -> None:
    states = ["FAIL" if i in (2, 5) else "COMPLETE" for i in range(24)]
    found = pair(b=batch("b", np.where(np.isin(np.arange(24), (2, 5)), 0.1, B), states=states, params=SAME))
    assert check(found, "equal-success")[0] == "fail"
    assert found.quantity("duration").n_experiment == 22
    keep = [i for i in range(24) if i not in (2, 5)]
    assert found.quantity("duration").ratio == pytest.approx(np.exp(np.log(B[keep] / A[keep]).mean()), rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 5])
def test_a_few_items_are_described(n: int) -> None:
    found = pair(batch("a", A[:n], params=SAME), batch("b", 2 * A[:n], params=SAME))
    assert check(found, "sample-size")[0] == "fail"
    assert found.verdict == "no evidence" and found.quantity("duration").ratio == pytest.approx(2)
    assert np.isnan(found.quantity("duration").low)


def test_an_empty_run_is_one_sentence() -> None:
    with pytest.raises(InputError, match="the experiment 'no thing' holds neither trials, GPU telemetry nor steps"):
        compare(batch("a", A), Run(info=RunInfo(name="no\nthing")))
    with pytest.raises(ConfigError, match="expected a run, a path"):
        compare(3, batch("a", A))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no experiment"):
        compare(batch("a", A), [])


@pytest.mark.slow
def test_telemetry_alone_is_compared_as_telemetry() -> None:
    a, b = (with_telemetry(batch(n, A), util) for n, util in (("a", [40, 60, 50]), ("b", [80, 90, 70])))
    found = pair(*(replace(run, trials=Run().trials) for run in (a, b)))
    assert found.leader is None and found.verdict == "no evidence"
    assert found.quantity("utilization").verdict == "higher"


@pytest.mark.slow
def test_what_is_wrong_and_what_to_do_are_those_of_the_reason() -> None:
    """Only the board differs, so nobody is told to log parameters; and no number of an invalid pair is a result."""
    a, b = (
        with_telemetry(batch(name, seconds, params={"p": 1}), 60.0, gpu_model=board)
        for name, seconds, board in (("a", A, "NVIDIA H100 80GB HBM3"), ("b", 1.5 * A, "NVIDIA A100-SXM4-80GB"))
    )
    head = pair(a, b).headline
    assert head["verdict"] == "INVALID: b cannot be compared with a (other hardware)."
    assert list(head["sentences"][1:]) == [
        "No ratio below is a result, whatever it is.",
        "Run both on the same hardware.",
    ]


@pytest.mark.slow
def test_a_search_and_a_training_share_no_unit_and_more_trials_would_not_help() -> None:
    lines = [(60.0 + 20 * n, 20 * n, "") for n in range(1, 40)]
    alone = training("b", [((0.0, 4.0), 60.0), ((95.0, 60_000.0), 800.0)], lines)
    for one, other in ((batch("a", A, params=SAME), alone), (alone, batch("a", A, params=SAME))):
        found = pair(one, other)
        assert found.verdict == "no evidence" and found.leader is None
        why = "b has no trials or tasks and a has: they share no unit of work."
        assert check(found, "same-unit") == ("unknown", why)
        assert check(found, "sample-size")[0] == "unknown" and "6 items a side" not in str(found.headline)
        assert why in found.headline["sentences"][0]
