"""``memory_capacity`` on the case of memory exhaustion, its traps, its refusals and its faces."""

from __future__ import annotations

import ast
import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import optuna
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from sampleruns import sample

import gpudiag as gd
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.memory.capacity import MemoryCapacity
from gpudiag.forecast.memory.constraint import constraint, share_code
from gpudiag.forecast.memory.peaks import trial_peaks
from gpudiag.forecast.memory.recommended import MOST_NET
from gpudiag.plots.memory_capacity import MEMORY_CAPACITY
from gpudiag.report.format import UNKNOWN
from gpudiag.report.kinds.memory import _advice, _all_fit, _evidence, _risk, to_run
from gpudiag.report.kinds.parallelism import RISKY_PCT, _memory, answer, room_at_once
from tests.forecast.memoryruns import mixed_run


@pytest.fixture(scope="module")
def run() -> gd.Run:
    return sample("memory-exhaustion")


@pytest.fixture(scope="module")
def case(run: gd.Run) -> MemoryCapacity:
    return gd.memory_capacity(run)


@pytest.fixture(scope="module")
def truth(samples: Path) -> pd.DataFrame:
    return pd.DataFrame(json.loads((samples / "memory-exhaustion/truth.json").read_text())["trials"])


@pytest.mark.slow
def test_what_each_combination_takes(case: MemoryCapacity) -> None:
    """Peaks of the simulated models: context + fixed + per sample x batch size."""
    fixed = {"small": (3600, 12), "base": (4600, 18), "large": (5200, 48)}
    assert case.parameters == ("model", "batch_size")
    for row in case.combinations.to_dict("records"):
        base, each = fixed[row["model"]]
        assert row["peak_mib"] == pytest.approx(450 + base + each * row["batch_size"], rel=0.01)
    assert case.larger_than(10)[["model", "batch_size"]].to_numpy().tolist() == [["large", 128]]


def test_peaks_hold_the_truth(case: MemoryCapacity, truth: pd.DataFrame) -> None:
    rows = case.trials[case.trials["reached"]].merge(truth[["trial", "mem_peak_mib"]], on="trial")
    assert (rows["peak_mib"] / rows["mem_peak_mib"] - 1).abs().mean() < 0.01
    assert ((rows["low_mib"] <= rows["mem_peak_mib"]) & (rows["mem_peak_mib"] <= rows["high_mib"])).mean() >= 0.85


def test_the_table(case: MemoryCapacity) -> None:
    table = case.table.set_index("k")
    assert list(table.index) == [1, 2, 3, 4, 5]
    assert table.loc[[1, 2], "hard_fit"].all() and not table.loc[[3, 4], "hard_fit"].any()
    assert case.hard_fit_k == 2 and case.recommended_k == 2
    for k in (3, 4):  # what was seen lies inside the interval, and within a third of the estimate
        row = table.loc[k]
        assert row["p_overflow_pct"] == pytest.approx(row["oom_pct"], rel=1 / 3)
        assert row["p_low_pct"] <= row["oom_pct"] <= row["p_high_pct"]
        assert row["p_overflow_pct"] <= row["sets_over_pct"] <= row["p_high_pct"]  # peaks do not all coincide
        assert row["study_low_pct"] >= 100 * (1 - (1 - row["oom_low_pct"] / 100) ** case.n_trials) - 1e-9
    assert table.loc[2, "margin_mib"] > 0 > table.loc[3, "margin_mib"]
    assert table.loc[3, "seen_max_mib"] == pytest.approx(0.97 * 24564, rel=0.035)
    assert table.loc[2, "p_high_pct"] > 0  # none was seen, which is not never


@pytest.mark.parametrize(
    ("hard_fit", "p_low", "worst_low", "said"),
    [
        (True, 0.0, 900.0, "yes"),
        (False, 0.0, 970.0, "not sure"),
        (False, 0.1, 970.0, "no"),
        (False, 0.0, 981.0, "no"),
        (False, 0.0, math.nan, "not sure"),
    ],
)
def test_whether_all_fit_is_not_open_where_the_largest_never_do(
    hard_fit: bool, p_low: float, worst_low: float, said: str
) -> None:
    assert _all_fit({"hard_fit": hard_fit, "p_low_pct": p_low, "worst_low_mib": worst_low}, 980.0) == said


def test_throughput_is_neither_linear_nor_free_of_crashes(case: MemoryCapacity) -> None:
    table = case.table.set_index("k")
    plain, net = (table[name] for name in ("rate_day", "net_day"))
    assert plain[2] / plain[3] > 0.7  # not -33 %
    assert net[2] / net[3] >= plain[2] / plain[3]
    for name in ("rate", "net"):
        assert (
            (table[f"{name}_day_low"] <= table[f"{name}_day"]) & (table[f"{name}_day"] <= table[f"{name}_day_high"])
        ).all()
    true_restart_h = (90 + 420) / 2 / 3600
    assert case.restart.how == "seen" and case.restart.hours.value == pytest.approx(true_restart_h, rel=0.3)


def test_trials_a_day_with_crashes_are_those_that_came(case: MemoryCapacity, truth: pd.DataFrame) -> None:
    """A trial out of memory fails within minutes: at four at once as many ended well a day as at three."""
    start, end = (pd.to_datetime(truth[name], utc=True, format="ISO8601") for name in ("start", "end"))
    table = case.table.set_index("k")
    for k, worker in ((4, 3), (3, 2)):  # worker 3 left first, then worker 2
        border = end[truth["worker"] == worker].max()
        since = end[truth["worker"] == 3].max() if k == 3 else start.min()
        well = ((end > since) & (end <= border) & (truth["state"] == "COMPLETE")).sum()
        a_day = well / ((border - since) / pd.Timedelta(days=1))
        assert table.loc[k, "net_day"] == pytest.approx(a_day, rel=0.02)
        assert table.loc[k, "net_day_low"] < a_day < table.loc[k, "net_day_high"]


def test_an_assert_is_another_class(case: MemoryCapacity) -> None:
    by = case.crashes.by_class.set_index("kind")
    assert by.loc["device_assert", "n_trials"] == 36 and by.loc["device_assert", "n_events"] == 12
    assert by.loc["oom", "p_memory"] < 1e-6 and by.loc["device_assert", "p_memory"] > 0.05
    text = case._repr_markdown_()
    assert "logic error" in text and "would show only a rate below 5.8" in text


def test_the_constraint_refuses_the_large_and_says_what_it_would_have_cost(run: gd.Run, case: MemoryCapacity) -> None:
    one = case.constraint(3)
    peak = {(r["model"], r["batch_size"]): r["peak_mib"] for r in case.combinations.to_dict("records")}
    keys = list(zip(run.trials["params.model"], run.trials["params.batch_size"], strict=True))
    refused = [peak[key] > one.limit_mib for key in keys]
    assert one.n_refused == sum(refused) == 50
    assert (
        not one.best_refused
        and one.best_refused == refused[int(run.trials["value"].where(run.trials["state"] == "COMPLETE").idxmin())]
    )
    tree = ast.parse(one.code)
    assert ast.literal_eval(tree.body[0].value) == {key: round(mib) for key, mib in peak.items()}  # type: ignore[attr-defined]
    assert 3 * one.limit_mib + case.room.baseline_mib <= case.room.usable_mib
    with pytest.raises(KeyError, match="no constraint for 9"):
        case.constraint(9)


def refuses(code: str, params: dict[str, object]) -> bool:
    """Whether the lines of a constraint prune a trial of these parameters."""
    try:
        exec(code, {"trial": SimpleNamespace(params=params), "optuna": optuna})
    except optuna.TrialPruned:
        return True
    return False


def test_the_constraint_runs_and_refuses_what_it_says(run: gd.Run, case: MemoryCapacity) -> None:
    one = case.needed_constraint()
    assert one is not None and one.k == 3 and one.n_refused
    params = run.trials[["params.model", "params.batch_size"]].set_axis(["model", "batch_size"], axis=1)
    assert sum(refuses(one.code, row) for row in params.to_dict("records")) == one.n_refused
    assert not refuses(one.code, {})  # of a trial without these parameters nothing is known
    roomy = gd.memory_capacity(run, [1, 2])
    assert roomy.needed_constraint() is None
    refuses_all = replace(case, constraints=tuple(replace(each, n_refused=each.n) for each in case.constraints))
    assert refuses_all.needed_constraint() is None, "after it there were no search"
    assert "Refuse trials" in case._repr_markdown_() and "Refuse trials" not in refuses_all._repr_markdown_()


def test_a_formula_refuses_by_number_and_a_missing_parameter_is_no_error() -> None:
    """Width 1 to 120 takes 20 MiB each; half of the trials lack it."""
    made = mixed_run(7, 1, n_trials=120)
    width = pd.Series(np.where(made.run.trials["trial"] % 2, np.nan, made.run.trials["trial"] + 1.0))
    trials = made.run.trials.drop(columns=[c for c in made.run.trials if c.startswith("params.")])
    trials = trials.assign(**{
        "params.width": width, "params.net": np.where(width.isna(), "a", "b"),
        "user_attrs.max_memory_reserved_mib": 2000 + 20 * width.fillna(0.0),
    })  # fmt: skip
    peaks = trial_peaks(replace(made.run, trials=trials), np.random.default_rng(0))
    found = constraint(
        replace(made.run, trials=trials), replace(peaks, parameters=("width", "net")), pd.DataFrame(), 6600.0, 0.0, 2
    )
    assert found.limit_mib == 3300 and found.n_refused == (2450 + 20 * width > 3300).sum()
    assert refuses(found.code, {"net": "b", "width": 60}) and not refuses(found.code, {"net": "b", "width": 20})
    assert not refuses(found.code, {"net": "a"}) and not refuses(found.code, {"net": "new", "width": 99})


def test_a_formula_of_numbers_alone() -> None:
    """Width 1 to 120 takes 20 MiB each, and nothing else is a parameter."""
    made = mixed_run(7, 1, n_trials=120)
    width = made.run.trials["trial"] + 1.0
    trials = made.run.trials.drop(columns=[c for c in made.run.trials if c.startswith("params.")])
    trials = trials.assign(**{"params.width": width, "user_attrs.max_memory_reserved_mib": 2000 + 20 * width})
    run = replace(made.run, trials=trials)
    peaks = replace(trial_peaks(run, np.random.default_rng(0)), parameters=("width",))
    found = constraint(run, peaks, pd.DataFrame(), 6600.0, 0.0, 2)
    assert found.n_refused == (2450 + 20 * width > 3300).sum()
    assert refuses(found.code, {"width": 60}) and not refuses(found.code, {"width": 20})


def test_without_parameters_the_allocator_gets_its_share() -> None:
    said: list[float] = []
    cuda = SimpleNamespace(mem_get_info=lambda: (0, 8000 * 2**20), set_per_process_memory_fraction=said.append)
    exec(share_code(4000), {"torch": SimpleNamespace(cuda=cuda)})
    exec(share_code(500), {"torch": SimpleNamespace(cuda=cuda)})
    assert said == pytest.approx([3400 / 8000, 250 / 8000])  # less a context; never nothing


@pytest.mark.slow
def test_the_same_seed_gives_the_same_and_faces_agree(run: gd.Run, case: MemoryCapacity) -> None:
    again = gd.memory_capacity(run)
    pd.testing.assert_frame_equal(case.table, again.table)
    document = json.dumps(case.to_dict(), allow_nan=False)
    assert json.loads(document)["hard_fit_k"] == 2
    assert case.to_frame() is case.table
    assert repr(case).startswith("Memory capacity of memory-exhaustion")
    assert "<table" in case._repr_html_() and "memory-exhaustion" in case._repr_html_()
    for face in (repr(case), case._repr_markdown_()):  # case 4's table, whole, before what it rests on
        levels, grounds = face.index("with crashes"), face.index("Any overflow %")
        assert face.index("Memory") < face.index("Margin GiB") < face.index("Failed %") < levels < grounds
    assert "... and" not in repr(case)
    picture = MEMORY_CAPACITY.picture("memory_capacity", {"memory_capacity": case})
    bars = [patch.get_width() for patch in picture.figure.axes[1].patches]
    np.testing.assert_allclose(bars, case.combinations["peak_mib"] / 1024)
    assert "[GiB]" in picture.figure.axes[0].get_ylabel() and "9" in picture.alt


@pytest.mark.slow
def test_the_figure_holds_every_level_and_labels_that_do_not_touch(run: gd.Run) -> None:
    """What is above the scale stands at its end as an arrow; no marker is cut, and none is left out."""
    case = gd.memory_capacity(run, [1, 2, 3, 4, 6, 12])
    figure = MEMORY_CAPACITY.picture("memory_capacity", {"memory_capacity": case}).figure
    levels = figure.axes[1] if figure.axes[1].get_ylabel() == "memory [GiB]" else figure.axes[0]
    (*_, ceiling) = levels.get_ylim()
    gib = case.table[["typical_mib", "worst_mib"]].to_numpy() / 1024
    drawn = [tuple(at) for points in levels.collections for at in np.asarray(points.get_offsets()) if len(at) == 2]
    within = [(i, y) for i, row in enumerate(gib) for y in row if y <= 0.97 * ceiling]
    for place in within:
        assert any(np.allclose(place, at) for at in drawn)
    points_of = [points for points in levels.collections if isinstance(points, PathCollection)]
    arrows = [points for points in points_of if not len(points.get_facecolor()) and len(points.get_offsets())]
    assert sum(len(points.get_offsets()) for points in arrows) == gib.size - len(within) > 0
    assert all(0 < y < ceiling for points in arrows for _, y in np.asarray(points.get_offsets()))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in levels.get_xticklabels() if label.get_text()]
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))
    assert "above the scale" in [text.get_text() for text in levels.get_legend().get_texts()]


def test_a_chosen_risk_and_a_given_restart(run: gd.Run) -> None:
    careful = gd.memory_capacity(run, [1, 2, 3], risk_pct=1, restart_min=30)
    assert careful.recommended_k == 2 and "1 %" in careful.because
    assert careful.restart.how == "given" and careful.restart.hours.value == 0.5
    assert careful.overflow(3).value > 1 and careful.overflow(3).high < 100
    assert "was not looked at" in careful.overflow(9).reason


@pytest.mark.slow
def test_a_shared_process_gives_facts_and_the_sentence() -> None:
    found = gd.memory_capacity(mixed_run(2, 3, keeps_memory=True, n_trials=60).run)
    assert "share a process" in found.reason and found.reason in " ".join(repr(found).split())
    assert found.table["p_overflow_pct"].isna().all() and found.table["seen_max_mib"].notna().any()
    assert found.overflow(2).bounds_only and np.isnan(found.overflow(2).high)
    assert found.constraints == () and np.isnan(found.hard_fit_k)
    with pytest.raises(NotMeasurable, match="share a process"):
        MEMORY_CAPACITY.picture("memory_capacity", {"memory_capacity": found})
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_parameters_from_an_input_are_never_code_or_markup() -> None:
    from gpudiag.simulation import ModelSpec

    evil = "<script>'); import os #`"
    models = (ModelSpec(evil, 1, 1, 1000, 5), ModelSpec("b", 1, 1, 9000, 60))
    found = gd.memory_capacity(mixed_run(1, 2, models=models, n_trials=60).run)
    assert evil in set(found.combinations["model"])
    assert "<script" not in found._repr_html_() and "<script" not in found._repr_markdown_().replace("\\<", "")
    body = ast.parse(found.constraints[-1].code).body
    assert [type(part).__name__ for part in body] == ["Assign", "Assign", "Assign", "If"]


def test_progress_is_told_and_may_cancel(run: gd.Run) -> None:
    def stop(what: str) -> None:
        if not what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gd.memory_capacity(run, [2], progress=stop)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": [0]}, "levels must hold whole numbers from 1 to 32, but got 0"),
        ({"levels": []}, "but is empty"),
        ({"n_trials": 0}, "n_trials must be 1 or more"),
        ({"restart_min": -1}, "restart_min must be a number of minutes of 0 or more"),
        ({"risk_pct": 100}, "risk_pct must lie between 0 and 100"),
    ],
)
def test_arguments_out_of_range(run: gd.Run, options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        gd.memory_capacity(run, **options)  # type: ignore[arg-type]


def test_no_trials() -> None:
    with pytest.raises(NotMeasurable, match="no trials table"):
        gd.memory_capacity(gd.Run())


def test_trials_that_failed_are_counted_with_those_that_follow_others(run: gd.Run, case: MemoryCapacity) -> None:
    """With two at once no trial ran out of memory, and 13 % failed all the same: nobody reads that as a risk of 3 %."""
    ended = run.trials[run.trials["state"] != "RUNNING"].copy()
    start, end = ended["start"].to_numpy(), ended["end"].to_numpy()
    beside = [int(((start < at) & (end >= at)).sum()) for at in end]
    failed = (ended["state"] == "FAIL").groupby(beside).agg(["mean", "size"])
    table = case.table.set_index("k")
    for k in (2, 3, 4):
        assert failed.at[k, "size"] >= 100
        assert table.at[k, "failed_pct"] == pytest.approx(100 * failed.at[k, "mean"], abs=2.0)
        assert table.at[k, "failed_low_pct"] < table.at[k, "failed_pct"] < table.at[k, "failed_high_pct"]
    assert table.at[2, "failed_pct"] > 10 > table.at[2, "crash_pct"]


@pytest.mark.slow
def test_where_the_memory_of_trials_is_not_known_no_number_is_recommended() -> None:
    """Tasks of LightGBM that hold next to nothing: that memory would hold four says nothing about six."""
    found = gd.memory_capacity(sample("idle-second-gpu/baseline"))
    assert found.reason and math.isnan(found.recommended_k) and not found.limits
    assert "(recommended)" not in found._repr_markdown_()


def test_no_crash_ever_adds_a_trial(case: MemoryCapacity) -> None:
    table = case.table
    for end in ("", "_low", "_high"):
        assert not (table[f"net_day{end}"] > table[f"rate_day{end}"]).any() or end == "_low"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.0, 99.9, UNKNOWN),
        (0.9, 100.0, UNKNOWN),
        (0.0, 98.9, "0 (0–99)"),
        (1.0, 100.0, "0 (1–100)"),
        (0.0, 0.0, "0 (0–0)"),
    ],
)
def test_a_risk_between_nothing_and_certainty_is_not_known(low: float, high: float, said: str) -> None:
    assert _risk(Estimate(0.0, low, high)) == said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("streak", "said"), [(0, "Every trial failed. "), (1, "The longest run without a failure was 1 trial. ")]
)
def test_where_no_trial_ended_well_no_run_of_them_is_counted(case: MemoryCapacity, streak: int, said: str) -> None:
    seen = replace(case, crashes=replace(case.crashes, success_streak=streak))
    assert any(text.startswith(said) for text in _evidence(seen))


@pytest.mark.slow
def test_what_fits_does_not_depend_on_what_is_asked(case: MemoryCapacity, run: gd.Run) -> None:
    """Two fit, and nobody asked for two: that is not said to be fewer than one."""
    asked = gd.memory_capacity(run, [3, 4])
    assert asked.hard_fit_k == case.hard_fit_k == 2 and list(asked.table["k"]) == [3, 4]
    assert asked.recommended_k in (3, 4) and "sure to fit up to 2 at once only" in _advice(asked)


@pytest.mark.slow
def test_throughput_and_memory_say_the_same_of_what_fits() -> None:
    """Of 9 trials the three largest fit; by the record of none too large more than 5 % may still overflow."""
    made = gd.what_if(sample("real-h100/two-workers"))
    assert made.capacity is not None and made.capacity.hard_fit_k == 3
    high = made.capacity.overflow(3).high
    assert high > RISKY_PCT
    said = f"at once; so few do not show that others would (overflow in up to {high:.0f} %)."
    assert f"fit together, 3 or more {said}" in _advice(made.capacity)
    others = [one for one in made.parallel if one.k != made.now]
    (text,) = _memory(made, others, "are counted below")
    assert text.endswith(f"fit together, {max(one.k for one in others)} {said}"), "and nothing is called unknown"


def test_what_is_recommended_for_its_throughput_is_not_said_to_have_run(case: MemoryCapacity) -> None:
    most = int(case.table["k"].max())
    room = replace(case, hard_fit_k=float(most), recommended_k=float(most - 1), reason="")
    assert f"At most {most - 1} ran at once" in _advice(replace(room, because="as the largest trials fit together"))
    said = _advice(replace(room, because=MOST_NET))
    assert said.startswith(f"Recommended: {most - 1} at once, as most trials per day") and "ran at once" not in said
    assert "Memory is not what limits" in said


def test_fewer_at_once_are_not_advised_only_because_no_more_were_looked_at(case: MemoryCapacity) -> None:
    """64 trials run well; memory was looked at for up to 32, and all of these fit together."""
    most = int(case.table["k"].max())
    fits = replace(
        case, hard_fit_k=float(most), recommended_k=float(most), because="as the largest trials fit together"
    )
    assert not fits.limits and fits.workers(2 * most) == 0
    assert f"Up to {most} at once were looked at, and memory is not what limits" in _advice(fits)
    tight = replace(fits, hard_fit_k=float(most - 1), recommended_k=float(most - 1))
    assert tight.limits and tight.workers(2 * most) == (most - 1) * case.n_gpus


@pytest.mark.slow
def test_what_memory_leaves_open_is_said_there_and_its_gain_under_forecast() -> None:
    """Three at once fit by all trials seen, and up to 39 % of other sets may not."""
    made = gd.what_if(sample("healthy"))
    (third,) = [one for one in made.parallel if one.k == 3]
    said = answer(made)
    assert said.startswith("3 at once, if they fit, may be ") and "In memory" not in said
    low, high = (float(x) for x in re.search(r"\(([\d.]+)–([\d.]+)\)", said).groups())
    assert (low, high) == (round(third.gain.low, 2), round(third.gain.high, 2))


@pytest.mark.parametrize(("high", "few"), [(5.0, False), (5.1, True)])
def test_a_rare_overflow_needs_no_doubt(high: float, few: bool) -> None:
    assert ("so few" in room_at_once(2, high)) is few


def test_nothing_is_refused_where_no_more_ran_than_fit(case: MemoryCapacity) -> None:
    one = case.needed_constraint()
    assert one is not None and one.k == 3
    at_most_two = case.table.assign(seen_h=case.table["seen_h"].where(case.table["k"] <= 2))
    at_most_two["seen_n"] = case.table["seen_n"].where(case.table["k"] <= 2)
    assert replace(case, table=at_most_two).needed_constraint() is None


@pytest.mark.parametrize(
    ("recommended", "n_gpus", "now", "because", "workers"),
    [
        (2, 1, 4, "as they fit", 2), (2, 2, 3, "as they fit", 3), (2, 2, 5, "as they fit", 4),
        (4, 2, 4, "as they fit", 4), (3, 3, 8, MOST_NET, 8), (3, 1, 2, MOST_NET, 3), (math.nan, 1, 4, "", 0),
    ],
)  # fmt: skip
def test_that_they_fit_asks_for_no_more_than_now(
    case: MemoryCapacity, recommended: float, n_gpus: int, now: int, because: str, workers: int
) -> None:
    made = replace(case, recommended_k=float(recommended), n_gpus=n_gpus, because=because, hard_fit_k=1.0)
    assert made.workers(now) == workers
    said = to_run(made, now)
    assert said.startswith({0: "", now: f"Stay at {now} trials"}.get(workers, f"Run {workers} trials"))


@pytest.mark.slow
def test_what_is_recommended_does_not_depend_on_the_numbers_asked(run: gd.Run) -> None:
    for asked in (3, [4, 5]):
        capacity = gd.what_if(run, asked).capacity
        assert capacity is not None and capacity.recommended_k == 2
