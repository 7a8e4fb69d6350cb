"""Which GPU each trial ran on: every way of saying so, and never silently a guess."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smallruns import T0, at, gpu, gpus, run, trials

from gpudiag._run.gpu_names import GpuNames, declared_gpus
from gpudiag.errors import NotMeasurable
from gpudiag.measures._gpu.shares import share_error_pct
from gpudiag.measures.attribution import AttributionProfile, measure_attribution
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.run import Run
from gpudiag.schema import EVENTS, PROCESSES, conform
from gpudiag.simulation import Gpu, Simulated, simulate

NAMES = GpuNames({"gpu-5a1b2c3d-11": "0", "gpu-5a1b9999-22": "1"}, {"00000000:01:00.0": "0", "00000000:c1:00.0": "1"})
BOARDS = gpus(
    gpu=["0", "1"], uuid=["GPU-5a1b2c3d-11", "GPU-5a1b9999-22"], bus_id=["00000000:01:00.0", "00000000:C1:00.0"]
)
TWO = pd.concat([gpu(range(0, 100), name, util_pct=60.0) for name in ("0", "1")])
ONE = trials([("COMPLETE", 10, 90)])


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("1", ["1"]), (1, ["1"]), (1.0, ["1"]), ("1.0", ["1"]), ("cuda:1", ["1"]), ("GPU 1", ["1"]), ("gpu_1", ["1"]),
        ("0,1", ["0", "1"]), ("[0, 1]", ["0", "1"]), ("cuda:0; cuda:1", ["0", "1"]), ("'1'", ["1"]), ("01", ["1"]),
        ("GPU-5a1b9999-22", ["1"]), ("GPU-5a1b2", ["0"]), ("0000:C1:00.0", ["1"]), ("C1:00.0", ["1"]),
        ("GPU-5a1b", []), ("GPU-ffffffff", []), ("MIG-GPU-5a1b2c3d/1/0", []),
        ("cuda", []), ("cpu", []), ("auto", []), ("-1", []), ("", []), (None, []), (True, []),
        ("0,cpu", []), ("lr=1", []),
    ],
)  # fmt: skip
def test_values_in_every_spelling(value: object, found: list[str]) -> None:
    assert list(NAMES.parse(value)) == found


@given(st.text(max_size=30) | st.integers() | st.floats() | st.booleans() | st.none())
def test_no_value_breaks_the_parser(value: object) -> None:
    assert all(isinstance(name, str) for name in NAMES.parse(value))


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"gpu": "1"}, "1"),
        ({"user_attrs.gpu_id": [1]}, "1"),
        ({"params.device": "cuda:1"}, "1"),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "1"}, "1"),
        ({"user_attrs.gpu-uuid": "GPU-5a1b9999-22"}, "1"),
        ({"user_attrs.cuda_visible_devices": "0,1"}, "0,1"),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "1,0", "params.device": "cuda:0"}, "1"),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "1", "params.device": "cuda"}, "1"),
        ({"gpu": "0", "user_attrs.gpu_id": [1]}, "0"),
    ],
)
def test_what_the_record_says(columns: dict[str, object], found: str) -> None:
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=trials([("COMPLETE", 10, 90)], **columns)))
    (row,) = p.trials.to_dict("records")
    assert (row["gpu"], row["method"], row["confidence"]) == (found, "declared", "strong")
    assert p.links["gpu"].tolist() == found.split(",") and p.attributed_pct == 100 and p.n_inferred == 0


@pytest.mark.parametrize(
    "columns", [{"user_attrs.gpus": [2]}, {"params.gpu_use_dp": [True]}, {"user_attrs.note": ["cuda:1"]}]
)
def test_what_names_no_gpu_is_not_taken_for_one(columns: dict[str, object]) -> None:
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=trials([("COMPLETE", 10, 90)], **columns)))
    assert p.trials["method"].tolist() == ["unknown"] and p.trials["gpu"].isna().all() and p.links.empty
    assert p.maybe["gpu"].tolist() == ["0", "1"] and p.maybe["chance"].isna().all() and p.n_attributed == 0


def test_names_of_which_the_telemetry_knows_none_say_nothing() -> None:
    """A container numbers its GPUs anew: cuda:3 of the host is its 0."""
    renumbered = run(gpu=gpu(range(100), "0", util_pct=60.0), trials=trials([("COMPLETE", 10, 90)], gpu="3"))
    assert declared_gpus(renumbered) == {}
    assert measure_attribution(renumbered).trials["gpu"].tolist() == ["0"]


TWINS = gpus(gpu=["0", "0b"], uuid=["GPU-5a1b2c3d-11", "GPU-5a1b9999-22"])


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"gpu": "0"}, ""),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "0"}, ""),
        ({"user_attrs.gpu_uuid": "GPU-5a1b2c3d-11"}, "0"),
        ({"user_attrs.gpu_uuid": "GPU-5a1b9999-22"}, "0b"),
        ({"user_attrs.CUDA_VISIBLE_DEVICES": "GPU-5a1b9999-22", "user_attrs.device": "cuda:0"}, "0b"),
    ],
)
def test_an_index_that_two_machines_have_names_neither(columns: dict[str, object], found: str) -> None:
    both = pd.concat([gpu(range(0, 100), name, util_pct=60.0) for name in ("0", "0b")])
    made = run(gpu=both, gpus=TWINS, trials=trials([("COMPLETE", 10, 90)], **columns))
    assert declared_gpus(made) == ({0: (found,)} if found else {})


def test_an_index_is_that_of_the_board_that_was_there_while_the_trial_ran() -> None:
    """A board in the place of another one, which was taken out at 100 s."""
    samples = pd.concat([gpu(range(0, 100), "0", util_pct=60.0), gpu(range(120, 300), "0b", util_pct=60.0)])
    lives = [("COMPLETE", 10, 90), ("COMPLETE", 95, 110), ("COMPLETE", 130, 190), ("COMPLETE", 90, 130)]
    unknown = float("nan")
    lives += [("RUNNING", 200, unknown), ("RUNNING", 50, unknown), ("COMPLETE", unknown, 90)]
    made = run(gpu=samples, gpus=TWINS, trials=trials(lives, gpu="0"))
    assert declared_gpus(made) == {0: ("0",), 1: ("0",), 2: ("0b",), 4: ("0b",), 6: ("0",)}


def test_of_gpus_of_two_machines_the_trial_s_host_names_the_one() -> None:
    both = pd.concat([gpu(range(0, 100), name, util_pct=60.0) for name in ("n1/0", "n2/0", "n2/1")])
    lives = [("COMPLETE", 10, 90)] * 4
    named = trials(lives, gpu=["0", "0", "0", "1"]).assign(host=["n1", "n2", None, None])
    made = run(gpu=both, gpus=gpus(gpu=["n1/0", "n2/0", "n2/1"]), trials=named)
    assert declared_gpus(made) == {0: ("n1/0",), 1: ("n2/0",), 3: ("n2/1",)}


@pytest.mark.parametrize("kept", ["0", "0b"])
def test_one_of_two_machines_alone_has_not_the_trials_of_both(kept: str) -> None:
    both = pd.concat([gpu(range(0, 100), name, util_pct=60.0) for name in ("0", "0b")])
    whole = run(gpu=both, gpus=TWINS, trials=trials([("COMPLETE", 10, 90), ("COMPLETE", 10, 90)], gpu="0"))
    assert declared_gpus(whole.gpus_only(kept)) == {}


def test_a_line_of_a_log_names_the_gpu() -> None:
    lines = pd.DataFrame(
        {
            "time": at([11, 12, 13, 14]),
            "kind": ["log", "gpu_assigned", "log", "oom"],
            "detail": [
                "Trial 0 using GPU 1",
                "[trial #1] device=cuda:0",
                "trial 7 gpu 9",
                "trial 1 failed: CUDA out of memory. GPU 1 has a total capacity of 24 GiB",
            ],
        }
    )
    two = trials([("COMPLETE", 10, 90), ("COMPLETE", 10, 90)])
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=two, events=conform(lines, EVENTS)))
    assert p.trials["gpu"].tolist() == ["1", "0"] and p.trials["method"].unique().tolist() == ["log line"]
    other = pd.concat([two, trials([("COMPLETE", 10, 90)], study="t")], ignore_index=True)
    both = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=other, events=conform(lines, EVENTS)))
    assert both.trials["gpu"].fillna("?").tolist() == ["?", "0", "?"]  # two studies have a trial 0


def test_its_process_shows_the_gpu() -> None:
    seen = pd.DataFrame(
        {"time": at([20, 30, 20, 500]), "gpu": ["1", "1", "0", "0"], "pid": [7, 7, 8, 9], "mem_used_mib": 900.0}
    )
    two = trials([("COMPLETE", 10, 90), ("COMPLETE", 10, 90)], pid=[7, 9])
    p = measure_attribution(run(gpu=TWO, gpus=BOARDS, trials=two, processes=conform(seen, PROCESSES)))
    assert p.trials["gpu"].fillna("?").tolist() == ["1", "?"]
    assert p.trials["method"].tolist() == ["process", "unknown"]


def test_where_there_is_one_gpu_it_is_that() -> None:
    p = measure_attribution(run(gpu=gpu(range(100), "0", util_pct=60.0), trials=ONE))
    assert p.trials[["gpu", "method", "confidence"]].to_numpy().tolist() == [["0", "only GPU", "strong"]]


def test_the_only_active_gpu_is_a_guess_and_said_to_be() -> None:
    log = pd.concat([gpu(range(100), "0", util_pct=0.0), gpu(range(100), "1", util_pct=60.0)])
    p = measure_attribution(run(gpu=log, gpus=BOARDS, trials=ONE))
    assert p.trials[["gpu", "method", "confidence"]].to_numpy().tolist() == [["1", "only active GPU", "weak"]]
    assert p.n_inferred == 1
    apart = measure_attribution(run(joined=False, gpu=log, gpus=BOARDS, trials=ONE))
    assert apart.trials["method"].tolist() == ["unknown"]


def test_memory_that_falls_with_the_trial() -> None:
    """Memory that rises and falls with three trials on each GPU places them."""
    t = np.arange(500)
    lives = [[(18, 90), (120, 210), (300, 420)], [(35, 160), (185, 280), (333, 470)]]
    used = [sum(np.where((t > a + 3) & (t < b), 4600.0, 0.0) for a, b in own) + 400.0 for own in lives]
    log = pd.concat([gpu(t, str(g), util_pct=60.0, mem_used_mib=used[g]) for g in (0, 1)])
    six = trials([("COMPLETE", a, b) for pair in zip(*lives, strict=True) for a, b in pair])
    p = measure_attribution(run(gpu=log, gpus=BOARDS, trials=six))
    assert p.trials["gpu"].tolist() == ["0", "1"] * 3 and p.trials["method"].unique().tolist() == ["telemetry"]
    assert p.trials["confidence"].unique().tolist() == ["weak"] and p.n_inferred == 6


def rotation(seed: int, **changes: Any) -> tuple[AttributionProfile, pd.Series, Simulated]:
    """A search whose trials say nothing, what is found, and the true GPU of each trial."""
    made = simulate(seed=seed, declares=(), **changes)
    return measure_attribution(made.run), made.truth.trials["gpu"].astype(str), made


def n_wrong(found: AttributionProfile, true: pd.Series) -> int:
    placed = found.trials["gpu"].notna().to_numpy()
    return int((found.trials["gpu"].to_numpy() != true.to_numpy())[placed].sum())


@pytest.mark.parametrize("period_s", [15.0, 60.0])
def test_one_trial_on_each_gpu_is_placed_by_rotation_however_slowly_it_is_sampled(period_s: float) -> None:
    found, true, _ = rotation(3, gpus=(Gpu(),) * 4, workers=4, n_trials=48, epochs=8, period_s=period_s)
    assert found.n_attributed >= 0.9 * found.n_trials and n_wrong(found, true) == 0


def test_a_pause_of_activity_places_trials_whose_memory_stays() -> None:
    changes = {"gpus": (Gpu(),) * 3, "workers": 3, "n_trials": 36, "period_s": 2.0, "keeps_memory": True}
    found, true, _ = rotation(5, **changes)
    assert found.n_attributed >= 0.9 * found.n_trials and n_wrong(found, true) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("assign", "least"), [("by_worker", 0.7), ("random", 0.3)])
def test_of_those_placed_on_shared_gpus_next_to_none_is_wrong(assign: str, least: float) -> None:
    """Workers that keep a GPU, and trials that draw one: the log itself tells which it was."""
    named = total = wrong = 0
    for seed in range(4):
        outages = ((200.0, 300.0), (600.0, 700.0))
        changes = {"workers": 6, "n_trials": 60, "assign": assign, "period_s": 5.0, "outages_s": outages}
        found, true, _ = rotation(seed, gpus=(Gpu(),) * 3, **changes)
        total, named, wrong = total + found.n_trials, named + found.n_attributed, wrong + n_wrong(found, true)
    assert named >= least * total and wrong <= 0.01 * named


def test_the_chances_of_those_that_are_not_placed_add_up_and_hold_the_truth() -> None:
    changes = {"gpus": (Gpu(),) * 4, "workers": 8, "n_trials": 80, "period_s": 30.0, "gap_s": (0.1, 15.0)}
    found, true, made = rotation(2, **changes)
    maybe = found.maybe.merge(pd.DataFrame({"trial": made.truth.trials["trial"], "true": true}), on="trial")
    assert len(maybe) and not set(maybe["trial"]) & set(found.links["trial"])
    assert maybe.groupby("trial")["chance"].sum().to_numpy() == pytest.approx(1)
    held = (maybe["gpu"] == maybe["true"]).groupby(maybe["trial"]).any()
    assert held.mean() >= 0.9


def test_what_is_stated_of_some_trials_is_kept_and_helps_the_others() -> None:
    changes = {"gpus": (Gpu(),) * 3, "workers": 3, "n_trials": 30, "period_s": 15.0}
    _, true, made = rotation(9, **changes)
    stated = true.where(np.arange(len(true)) % 3 == 0)
    part = replace(made.run, trials=made.run.trials.assign(gpu=stated.to_numpy()))
    found = measure_attribution(part)
    assert (found.trials["method"] == "declared").sum() == 10 and n_wrong(found, true) == 0
    assert found.n_attributed >= 0.9 * found.n_trials


MASKED = {"gpus": (Gpu(),) * 3, "workers": 3, "n_trials": 36, "period_s": 2.0}


@pytest.mark.slow
@pytest.mark.parametrize("column", ["gpu", "user_attrs.device", "user_attrs.gpu_id"])
def test_one_gpu_stated_by_all_is_not_believed_where_the_marks_are_on_others(column: str) -> None:
    """Each worker sees one GPU alone and calls it 0."""
    unsaid, true, made = rotation(5, **MASKED)
    stated = {"gpu": "0", "user_attrs.device": "cuda:0", "user_attrs.gpu_id": 0}[column]
    found = measure_attribution(replace(made.run, trials=made.run.trials.assign(**{column: stated})))
    assert found.refuted_gpu == "0" and 5 <= found.n_refuted <= (true != "0").sum()
    assert found.trials["gpu"].tolist() == unsaid.trials["gpu"].tolist() and n_wrong(found, true) == 0
    assert set(found.trials["method"]) == {"telemetry"} and found.trials["confidence"].unique().tolist() == ["weak"]


@pytest.mark.slow
def test_what_logs_say_of_one_gpu_is_not_believed_either() -> None:
    _, true, made = rotation(5, **MASKED)
    trial = made.run.trials["trial"].astype(str)
    lines = pd.DataFrame({"time": made.run.trials["start"], "kind": "log", "detail": "Trial " + trial + " on GPU 0"})
    found = measure_attribution(replace(made.run, events=conform(lines, EVENTS)))
    assert found.refuted_gpu == "0" and n_wrong(found, true) == 0


@pytest.mark.slow
@pytest.mark.parametrize("order", [{"0": "1", "1": "0"}, {"0": "2", "1": "0", "2": "1"}])
def test_gpus_that_are_exchanged_are_not_believed(order: dict[str, str]) -> None:
    """CUDA counts them by speed, nvidia-smi by bus. What is stated of a GPU that is not among them stands."""
    unsaid, true, made = rotation(5, **MASKED)
    stated = made.run.trials.assign(gpu=true.replace(order).to_numpy())
    found = measure_attribution(replace(made.run, trials=stated))
    wrong = (stated["gpu"] != true.to_numpy()).sum()
    assert found.refuted_gpu == ",".join(sorted(order)) and 0.7 * wrong <= found.n_refuted <= wrong
    at_home = ~stated["gpu"].isin(order)
    assert (found.trials["method"] == "declared").tolist() == at_home.tolist()
    assert found.trials["gpu"].tolist() == unsaid.trials["gpu"].where(~at_home, true.to_numpy()).tolist()
    assert n_wrong(found, true) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 6])
def test_gpus_that_are_stated_as_they_are_stay(seed: int) -> None:
    _, true, made = rotation(seed, **MASKED)
    found = measure_attribution(replace(made.run, trials=made.run.trials.assign(gpu=true.to_numpy())))
    assert found.n_refuted == 0 and set(found.trials["method"]) == {"declared"}


@pytest.mark.slow
@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("n_gpus", [2, 4])
def test_a_true_statement_is_believed_beside_trials_that_the_record_lacks(n_gpus: int, *, shown: bool) -> None:
    """Not even where its GPU shows nothing of the trials, and the others like trials."""
    _, true, made = rotation(
        8, **(MASKED | {"gpus": (Gpu(),) * n_gpus, "workers": 2 * n_gpus, "n_trials": 30 * n_gpus})
    )
    own = made.run.trials[(true == "0").to_numpy()].reset_index(drop=True).assign(gpu="0")
    samples = made.run.gpu.copy()
    if not shown:
        samples.loc[samples["gpu"] == "0", ["util_pct", "mem_used_mib"]] = [0.0, 9000.0]
    found = measure_attribution(replace(made.run, trials=own, gpu=samples))
    assert set(found.trials["method"]) == {"declared"} and set(found.trials["gpu"]) == {"0"}
    assert (found.refuted_gpu, found.n_refuted) == ("", 0)


def test_the_gpu_of_rank_0_is_believed_of_trials_that_use_all_gpus() -> None:
    t, rng = np.arange(1500), np.random.default_rng(1)
    ends = np.cumsum(rng.uniform(40, 80, 20))
    lives = [(end - 35.0, end) for end in ends]
    works = np.any([(t > a + 8) & (t < b) for a, b in lives], axis=0)
    columns = [(np.clip(80 * works + rng.normal(0, 3, len(t)), 0, 100), 400 + 5000.0 * works) for _ in range(3)]
    log = pd.concat([gpu(t, str(i), util_pct=u, mem_used_mib=m) for i, (u, m) in enumerate(columns)])
    found = measure_attribution(run(gpu=log, trials=trials([("COMPLETE", a, b) for a, b in lives], gpu="0")))
    assert found.n_refuted == 0 and set(found.trials["gpu"]) == {"0"}


def test_telemetry_that_has_nothing_to_do_with_trials_places_none() -> None:
    rng = np.random.default_rng(4)
    log = pd.concat([gpu(range(0, 6000, 5), str(g), util_pct=rng.uniform(0, 100, 1200)) for g in range(4)])
    starts = np.sort(rng.uniform(0, 5000, 60))
    rows = [("COMPLETE", float(at), float(at + rng.uniform(50, 400))) for at in starts]
    found = measure_attribution(run(gpu=log, trials=trials(rows)))
    assert found.n_attributed <= 2 and found.maybe["chance"].isna().all()


@pytest.mark.slow
@pytest.mark.parametrize("period_s", [5.0, 30.0])
def test_what_is_said_without_declarations_holds_of_the_same_run_with_them(period_s: float) -> None:
    """Cells that a GPU is idle in lie between their own time and that plus ``waiting``; GPU-hours within 5 %."""
    changes = {"gpus": (Gpu(),) * 8, "workers": 8, "n_trials": 80, "epochs": 6, "startup_s": (60.0, 90.0)}
    _, true, made = rotation(6, period_s=period_s, **changes)
    declared = replace(made.run, trials=made.run.trials.assign(gpu=true.to_numpy()))
    said, known = (measure_ledger(each).totals.set_index("cell")["share_pct"] for each in (made.run, declared))
    for cell in ("idle_no_trial", "startup_only", "tail_only", "stalled"):
        assert known[cell] - said["waiting"] - 1 <= said[cell] <= known[cell] + 1
    assert said.sum() == pytest.approx(100)
    hours = [measure_costs(each).outcomes.set_index("outcome")["gpu_s"] for each in (made.run, declared)]
    assert hours[0]["COMPLETE"] == pytest.approx(hours[1]["COMPLETE"], rel=0.05)
    assert hours[0].sum() == pytest.approx(hours[1].sum())


def test_without_trials_there_is_nothing_to_attribute() -> None:
    with pytest.raises(NotMeasurable, match="There is no trials table"):
        measure_attribution(Run(gpu=TWO))
    assert T0.tzinfo is not None


def test_the_published_error_of_a_share_is_the_one_that_is_used(root: Path) -> None:
    """19, 23 and 26 % at two, three and four trials at once; more count as four, fractions as the next level."""
    at_once = np.array([np.nan, 1.0, 1.2, 2.0, 2.5, 3.0, 3.01, 4.0, 9.0])
    assert share_error_pct(at_once).tolist() == [0.0, 0.0, 19.0, 19.0, 23.0, 23.0, 26.0, 26.0, 26.0]
    methods = (root / "docs" / "methods.md").read_text(encoding="utf-8")
    assert "19 % at two, 23 % at three, 26 % at four trials" in methods
