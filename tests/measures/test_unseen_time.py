"""Time outside of steps of logs without timestamps: what bars show, and what no clock tells."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from verdicts import verdict_of

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.measures.loader import measure_loader
from gpudiag.measures.steps import StepsProfile, measure_steps


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def bar(n: int, each_s: float, name: str = "", every: int = 10) -> list[str]:
    """tqdm's bar of ``n`` steps, drawn empty first."""
    return [
        f"{name}{100 * at // n:3d}%|###| {at}/{n} [{clock(at * each_s)}<00:10, {1 / each_s:.2f}it/s]"
        for at in range(0, n + 1, every)
    ]


def loaded(folder: Path, lines: list[str]) -> gd.Run:
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return gd.load_run(folder, timezone="UTC")


def measured(folder: Path, lines: list[str]) -> StepsProfile:
    return measure_steps(loaded(folder, lines))


def epochs(*bars: list[str], n: int = 6) -> list[str]:
    return [line for epoch in range(n) for one in (*bars, [f"epoch {epoch}: val loss 2.1"]) for line in one]


def test_between_bars_nobody_knows_what_passed(tmp_path: Path) -> None:
    """The bar of an evaluation has no name, and another number of steps."""
    said = measured(tmp_path, epochs(bar(200, 1.0), bar(1000, 0.05, every=50)))
    assert said.step_s == pytest.approx(1.0) and said.logged_s == 6 * 200
    assert said.n_unseen == 5 and math.isnan(said.productive_pct) and math.isnan(said.goodput_pct)


@pytest.mark.slow
def test_time_outside_of_steps_is_a_finding_or_not_assessed_where_more_is_unknown(tmp_path: Path) -> None:
    few, many = (epochs(bar(200, 1.0, "Train: "), bar(100, s, "Eval: "), ["Saving checkpoint"]) for s in (0.1, 1.0))
    unknown = gd.diagnose(loaded(tmp_path, few))
    assert unknown.verdicts["steps-paused"].status.value == "not_assessed"
    assert "no timestamps" in unknown.verdicts["steps-paused"].reason
    found = verdict_of(loaded(tmp_path, many), "steps-paused")
    assert found.status.value == "found" and "may be more" in found.summary
    text = unknown.to_markdown()
    assert "At least 1 min passed outside of steps. It may be more" in text


def test_bars_of_evaluations_tell_of_no_more_of_the_time_between(tmp_path: Path) -> None:
    """Loader workers may start behind them, and what the hooks of an epoch do is in no bar."""
    said = measured(tmp_path, epochs(bar(200, 1.0, "Train: "), bar(1000, 0.05, "Validation: ", every=50)))
    assert said.n_unseen == 5 and said.pauses_s == pytest.approx(6 * 50, abs=6)
    assert said.logged_s == pytest.approx(6 * 250, abs=6) and math.isnan(said.productive_pct)


def test_a_checkpoint_beside_an_evaluation_with_a_bar_is_unknown(tmp_path: Path) -> None:
    lines = epochs(bar(200, 1.0, "Train: "), bar(1000, 0.05, "Validation: ", every=50), ["Saving checkpoint to out"])
    said = measured(tmp_path, lines)
    assert said.n_unseen == 5 and math.isnan(said.productive_pct) and said.pauses_s == pytest.approx(6 * 50, abs=6)


def test_one_bar_tells_of_all_of_its_time(tmp_path: Path) -> None:
    said = measured(tmp_path, bar(2000, 0.5))
    assert said.n_unseen == 0 and said.productive_pct == pytest.approx(100, abs=1)


@pytest.mark.parametrize("slower", [0, 1, 2])
@pytest.mark.parametrize("n_kinds", [2, 3])
def test_nothing_tells_which_of_two_bars_in_turn_is_the_training(tmp_path: Path, slower: int, n_kinds: int) -> None:
    each_s = [1.0 if kind == slower % n_kinds else 0.25 for kind in range(n_kinds)]
    with pytest.raises(NotMeasurable, match="take turns"):
        measured(tmp_path, epochs(*(bar(200, seconds) for seconds in each_s)))


def test_names_tell_which_of_two_bars_in_turn_is_the_training(tmp_path: Path) -> None:
    said = measured(tmp_path, epochs(bar(200, 1.0, "Train: "), bar(200, 0.25, "Eval: ")))
    assert said.step_s == pytest.approx(1.0) and said.pauses_s == pytest.approx(6 * 50, abs=6)


@pytest.mark.parametrize("each_s", [[2.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.6, 1.1, 1.5, 1.2], [0.5, 0.6, 0.5, 0.6, 0.5]])
def test_bars_of_one_kind_are_a_training(tmp_path: Path, each_s: list[float]) -> None:
    lines = [line for seconds in each_s for line in bar(200, seconds)]
    assert measured(tmp_path, lines).logged_s == pytest.approx(200 * sum(each_s), abs=5)


@pytest.mark.parametrize("validated", ["", " - val_loss: 0.6"])
def test_a_line_an_epoch_says_nothing_of_the_time_between(tmp_path: Path, validated: str) -> None:
    row = f"300/300 ━━━━━━━━━━━━━━━━━━━━ 72s 240ms/step - loss: 0.5{validated}"
    lines = [line for epoch in range(1, 16) for line in (f"Epoch {epoch}/15", row)]
    said = measured(tmp_path, lines)
    assert said.n_unseen == 14 and math.isnan(said.productive_pct)


def test_stated_times_say_nothing_of_the_time_between_lines(tmp_path: Path) -> None:
    said = measured(tmp_path, [f"step {n}/1000 | loss 2.5 | 0.5 s/it" for n in range(10, 1001, 10)])
    assert said.n_unseen == 99 and math.isnan(said.productive_pct)
    assert said.step_s == pytest.approx(0.5) and said.logged_s == pytest.approx(500)


@pytest.mark.parametrize("shown", [True, False])
def test_a_stated_time_that_shows_the_evaluation_leaves_nothing_open(tmp_path: Path, shown: bool) -> None:
    """nanoGPT's iteration holds its evaluation; a copy that starts its clock behind it shows none."""
    lines = []
    for n in range(300):
        evaluates = n > 0 and n % 50 == 0
        lines += [f"step {n}: train loss 3.0, val loss 3.1"] if evaluates else []
        lines.append(f"iter {n}: loss 3.1234, time {500 + 20_000 * (evaluates and shown):.2f}ms, mfu 35.12%")
    said = measured(tmp_path, lines)
    assert said.n_unseen == (0 if shown else 5)
    assert math.isnan(said.productive_pct) != shown


@pytest.mark.slow
@pytest.mark.parametrize(("n", "each_s"), [(400, 0.2496), (3000, 0.0104), (4000, 0.0014)])
def test_the_rounded_means_of_keras_are_no_clock_that_goes_back(tmp_path: Path, n: int, each_s: float) -> None:
    """The mean of an epoch's steps in whole milliseconds; each takes up to a fifth more or less."""
    rng, lines = random.Random(5), []
    for epoch in range(3):
        lines.append(f"Epoch {epoch + 1}/3")
        passed_s = 0.0
        for at in range(1, n + 1):
            passed_s += each_s * rng.uniform(0.8, 1.2)
            left_s = passed_s if at == n else each_s * (n - at)
            lines.append(f"{at}/{n} ━━━━━━━━━━━━━━━━━━━━ {left_s:.0f}s {1000 * passed_s / at:.0f}ms/step - loss: 2.1")
    said = measured(tmp_path, lines)
    assert (said.n_resumed, said.n_trainings, said.n_steps) == (0, 1, 3 * n)
    assert said.step_s == pytest.approx(each_s, rel=0.1)
    assert said.p95_step_s <= 1.3 * said.step_s, "no spikes"


def restarted(step_s: float = 1.0, *, again: int = 100, drawn_s: int = 8) -> list[str]:
    """A bar of 1,000 steps that ends at 600 by a failure, and goes on from ``600 - again`` after an unknown time."""
    first = bar(1000, step_s)[:61]
    begin = 600 - again
    later = [
        f"{at // 10}%|###| {at}/1000 [{clock(drawn_s + (at - begin - 1) * step_s)}<00:10, 1.00it/s]"
        for at in [begin + 1, *range(begin + 10, 1001, 10)]
    ]
    resumed = [
        "Traceback (most recent call last):",
        "Continuing training from global step",
        "  0%|   | 0/1000 [00:00<?, ?it/s]",
    ]
    return [*first, *resumed, *later]


def test_what_is_lost_without_a_known_downtime_is_a_least_value(tmp_path: Path) -> None:
    said = measured(tmp_path, restarted())
    assert (said.n_resumed, said.n_down_unknown, said.n_repeated) == (1, 1, 100)
    assert said.down_s == pytest.approx(8 - 1, abs=0.1), "the first step of the second bar took eight seconds"
    assert said.resumption_s == pytest.approx(7 + 100, abs=0.5) and said.logged_s == pytest.approx(600 + 507, abs=1)
    assert math.isnan(said.productive_pct) and math.isnan(said.goodput_pct) and math.isnan(said.ettr_pct)


@pytest.mark.slow
@pytest.mark.parametrize(("again", "status"), [(100, "found"), (10, "not_assessed")])
def test_a_least_value_may_prove_a_loss_and_never_that_there_is_none(tmp_path: Path, again: int, status: str) -> None:
    verdict = verdict_of(loaded(tmp_path, restarted(again=again)), "steps-lost")
    assert verdict.status.value == status
    said = verdict.summary if status == "found" else verdict.reason
    assert ("at least 1 min 47 s" in said) == (status == "found") and "how long it was down is unknown" in said.lower()


def test_the_share_of_a_wait_is_of_steps_without_evaluations(tmp_path: Path) -> None:
    """detectron2: steps of half a second wait 0.15 s for data, and each 300 steps an evaluation takes 30 s."""
    lines, at = [], 0.0
    for step in range(20, 1201, 20):
        at += 10
        moment = f"01/05 08:{int(at) // 60:02d}:{int(at) % 60:02d}"
        lines.append(f"[{moment} d2.utils.events]: iter: {step - 1} total_loss: 2.1 time: 0.5000 data_time: 0.1500")
        if step % 300 == 0:
            at += 30
            lines.append(f"[{moment} d2.evaluation.evaluator]: Total inference time: 0:00:30.0 (0.03 s / iter)")
    found = measure_loader(loaded(tmp_path, lines))
    assert (found.avg_ms, found.step_ms, found.of_step_pct) == pytest.approx((150, 500, 30), rel=0.01)
