"""The few numbers at the top of a report: from what is known, in one form, never more than the whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sampleruns import diagnosed
from toyrun import with_only

from gpudiag.report._sections.key_numbers import key_numbers, mean_util_pct
from gpudiag.report.document import CellEntry, CostsEntry, Document, LedgerEntry, TrialOutcomeEntry

HOUR_S = 3600.0


def made(cells: dict[str, float], outcomes: dict[str, float], **measures: dict[str, float | str | None]) -> Document:
    facts = {t: {n: {"value": v, "unit": "1"} for n, v in values.items()} for t, values in measures.items()}
    ledger = LedgerEntry(sum(cells.values()), tuple(CellEntry("0", cell, value) for cell, value in cells.items()))
    rows = tuple(TrialOutcomeEntry(name, 1, None, gpu_s, None, None, None) for name, gpu_s in outcomes.items())
    return replace(with_only(measures=facts), ledger=ledger if cells else None, costs=CostsEntry("", rows))


@pytest.mark.parametrize(
    ("cells", "outcomes", "words"),
    [
        ({"busy": 10 * HOUR_S}, {}, "of GPU time"),
        ({"busy": 9.6 * HOUR_S, "stalled": 0.4 * HOUR_S}, {}, "of GPU time"),
        (
            {"busy": 8 * HOUR_S, "stalled": HOUR_S, "idle_no_trial": HOUR_S},
            {"PRUNED": HOUR_S},
            "of GPU time, 20 % of it idle (below 10 %)",
        ),
        (
            {"busy": 10 * HOUR_S},
            {"COMPLETE": 2 * HOUR_S, "PRUNED": 8 * HOUR_S},
            "of GPU time, 80 % of it in pruned trials",
        ),
        ({"busy": 10 * HOUR_S}, {"PRUNED": HOUR_S, "FAIL": 3 * HOUR_S}, "of GPU time, 30 % of it in failed trials"),
        (
            {"busy": HOUR_S, "idle_no_trial": 2 * HOUR_S, "unobserved": 7 * HOUR_S},
            {},
            "of GPU time, 20 % of it idle (below 10 %), 70 % not observed",
        ),
        ({"busy": 4 * HOUR_S, "unobserved": 6 * HOUR_S}, {}, "of GPU time, 60 % of it not observed"),
        ({"busy": 9.6 * HOUR_S, "unobserved": 0.4 * HOUR_S}, {}, "of GPU time"),
    ],
)
def test_gpu_time_and_the_largest_part_of_it_that_is_no_result(
    cells: dict[str, float], outcomes: dict[str, float], words: str
) -> None:
    assert (words, "10 GPU-h") in key_numbers(made(cells, outcomes))


@pytest.mark.parametrize(
    ("outside_h", "measures", "words"),
    [
        (1.0, {}, "of GPU time"),
        (1.2, {}, "of GPU time from the first work to the last"),
        (1.2, {"trials": {"n": 4, "are_jobs": False}}, "of GPU time from the first trial to the last"),
        (1.2, {"trials": {"n": 4, "are_jobs": True}}, "of GPU time from the first job to the last"),
    ],
)
def test_gpu_time_says_what_it_is_of_where_much_was_recorded_besides(
    outside_h: float, measures: dict[str, dict[str, float | str | None]], words: str
) -> None:
    ledger = {"outside_gpu_s": outside_h * HOUR_S}
    document = made({"busy": 10 * HOUR_S}, {}, ledger=ledger, **measures)
    joined = replace(document, clock=replace(document.clock, joined=True))
    assert (words, "10 GPU-h") in key_numbers(joined)


def test_of_power_alone_it_is_the_power() -> None:
    one = {"gpu.0.mean_w": 2.74, "gpu.0.max_w": 13.2}
    assert key_numbers(made({}, {}, power={**one})) == (("mean power of the GPU, 13.2 W at most", "2.74 W"),)
    two = {**one, "gpu.1.mean_w": 250.0, "gpu.1.max_w": 300.0}
    assert key_numbers(made({}, {}, power={**two})) == (("mean power of 2 GPUs together", "253 W"),)
    assert not key_numbers(made({}, {}, power={"gpu.0.mean_w": None, "gpu.0.max_w": None}))


def test_without_telemetry_it_is_the_time_of_the_trials() -> None:
    trials = {"n": 9, "state.COMPLETE.n": 2, "state.PRUNED.n": 7}
    times = {"state.COMPLETE.total_worker_s": 900.0, "state.PRUNED.total_worker_s": 2700.0}
    assert key_numbers(made({}, {}, trials={**trials, **times})) == (
        ("of trial time, 75 % of it in pruned trials", "1 worker-h"),
        ("trials completed; 7 pruned", "2 of 9"),
    )


def test_trials_by_outcome_have_a_comma_and_no_empty_part() -> None:
    whole = {"n": 1200, "state.COMPLETE.n": 1200}
    assert key_numbers(made({}, {}, trials=whole)) == (("trials completed", "1,200 of 1,200"),)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (41.8, "of trials until the best value; 42 GPU-h after it"),
        (0.0, "of trials until the best value"),
    ],
)
def test_how_much_was_spent_until_the_best_value(after: float, words: str) -> None:
    costs = {"to_best_gpu_h": 5.5, "after_best_gpu_h": after}
    assert key_numbers(made({}, {}, costs=costs)) == ((words, "5.5 GPU-h"),)


def test_money_takes_the_place_of_the_best_value() -> None:
    costs = {"to_best_gpu_h": 5.5, "after_best_gpu_h": 1.0, "cost": 12.5, "currency": "EUR"}
    ((words, number),) = key_numbers(made({}, {}, costs=costs))
    assert words == "at the price stated" and "12.5" in number and "EUR" in number


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (6.3, 6.3, ", at 6.3 % of the GPU's peak (MFU)"),
        (20.0, 41.0, ", at 20–41 % of the GPU's peak (MFU)"),
        (20.0, None, ""),
        (None, None, ""),
    ],
)
def test_a_step_is_told_with_how_much_of_the_peak_it_is(low: float | None, high: float | None, words: str) -> None:
    mfu, steps = {"mfu_low_pct": low, "mfu_high_pct": high}, {"step_s": 10.0, "unit": "step"}
    assert key_numbers(made({}, {}, mfu=mfu, steps=steps))[-1] == (f"median time of one step{words}", "10 s")


@pytest.mark.parametrize("sample", ["hpo-aggressive-pruning", "memory-exhaustion", "tiny-batch-laptop"])
def test_a_sample_has_at_most_four_and_the_mean_is_that_of_the_headline(sample: str) -> None:
    document = diagnosed(sample).document
    numbers = key_numbers(document)
    mean = mean_util_pct(document)
    assert 3 <= len(numbers) <= 4 and mean is not None
    assert (
        numbers[0] == ("mean GPU utilization", f"{mean:.0f} %") and f"({mean:.0f} %)" in document.headline.sentences[0]
    )


@pytest.mark.parametrize(
    ("means", "words"),
    [
        ((95.0, 52.0, 52.0, 52.0), "mean utilization of 4 GPUs, from 52 % to 95 %"),
        ((62.0, 52.1, 55.0, 60.0), "mean utilization of 4 GPUs"),
        ((62.1, 52.1, 55.0, None), "mean utilization of 4 GPUs, from 52 % to 62 %"),
        ((95.0,), "mean GPU utilization"),
    ],
)
def test_gpus_that_are_far_apart_are_not_told_by_their_mean_alone(means: tuple[float | None, ...], words: str) -> None:
    """Jain's index of the first is 0.92, within the limit of METHODS 8."""
    rows = {
        f"gpu.{at}.{name}": value
        for at, mean in enumerate(means)
        for name, value in (("mean_pct", mean), ("n_samples", 9))
    }
    use = {"mean_pct": 60.0, "n_gpus": len(means), **rows}
    assert key_numbers(made({}, {}, utilization=use)) == ((words, "60 %"),)
