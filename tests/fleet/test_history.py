"""The newest run against the noise of the earlier ones, with truth drawn here."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from commandline import called
from scipy import stats

from gpudiag.errors import InputError
from gpudiag.fleets.history.history import history
from gpudiag.fleets.history.noise import FEWEST, MOST, prediction_interval
from gpudiag.fleets.history.page import panels_of
from gpudiag.fleets.history.tracked import TRACKED
from gpudiag.plots.history import HISTORY_PLOTS
from gpudiag.report._render.blocks import Number
from gpudiag.report.fleet.history import history_text, runs_table


def write(folder: Path, at: int, *, util: float, gpu_s: float, n: int = 10, median_s: float | None = None) -> None:
    """A diagnosis.json with the numbers that a history reads."""
    measures = {
        "ledger": {"mean_util_pct": {"value": util, "unit": "%"}, "total_gpu_s": {"value": gpu_s, "unit": "GPU-s"}},
        "trials": {
            "n": {"value": n + 2, "unit": "1"},
            "state.COMPLETE.n": {"value": n, "unit": "1"},
            "state.COMPLETE.median_s": {"value": median_s, "unit": "s"},
        },
    }
    run = {"name": f"run {at}", "start": f"2026-03-{at + 1:02d}T00:00:00+00:00"}
    (folder / str(at)).mkdir(parents=True)
    document = {"schema": "gpudiag.diagnosis/4", "run": run, "measures": measures}
    (folder / str(at) / "diagnosis.json").write_text(json.dumps(document), encoding="utf-8")


def write_all(folder: Path, utils: list[float], times: list[float]) -> Path:
    for at, (util, gpu_s) in enumerate(zip(utils, times, strict=True)):
        write(folder, at, util=util, gpu_s=gpu_s)
    return folder


STEADY = [80.0, 81.0, 79.0, 80.5, 79.5, 80.2, 79.8]
TIMES = [1000.0, 1010.0, 990.0, 1005.0, 995.0, 1002.0, 998.0]


def test_a_run_like_the_earlier_ones_is_within_the_noise(tmp_path: Path) -> None:
    held = history(write_all(tmp_path, [*STEADY, 80.1], [*TIMES, 1001.0]))
    assert {one.name: one.verdict for one in held.quantities} == {
        "util_pct": "within the noise",
        "gpu_s": "within the noise",
    }
    gpu = held.quantities[1]
    assert gpu.newest == 100.1 and gpu.n_earlier == 7 and not held.regression
    logs = np.log(np.array(TIMES) / 10)
    reach = stats.t.ppf(1 - 0.025 / 2, 6) * logs.std(ddof=1) * math.sqrt(1 + 1 / 7)
    assert (gpu.low, gpu.high) == pytest.approx(tuple(np.exp(logs.mean() + np.array([-reach, reach]))))


@pytest.mark.parametrize(
    ("util", "gpu_s", "verdicts"),
    [
        (60.0, 1000.0, ("worse", "within the noise")),
        (99.0, 1000.0, ("better", "within the noise")),
        (80.0, 1300.0, ("within the noise", "worse")),
        (80.0, 700.0, ("within the noise", "better")),
    ],
)
def test_which_side_is_worse(tmp_path: Path, util: float, gpu_s: float, verdicts: tuple[str, str]) -> None:
    held = history(write_all(tmp_path, [*STEADY, util], [*TIMES, gpu_s]))
    assert tuple(one.verdict for one in held.quantities) == verdicts
    assert held.regression == ("worse" in verdicts)


def energies(trials_kwh: float | None, record_kwh: float, known_pct: float | None, gpu_h: float | None = 1.0) -> float:
    """What a history takes as energy per result of a search of ten completed trials."""
    costs = {"total_gpu_h": gpu_h, "energy_kwh": trials_kwh, "energy_coverage_pct": known_pct}
    measures = {
        "costs": {name: {"value": value} for name, value in costs.items()},
        "power": {"energy_kwh": {"value": record_kwh}, "coverage_pct": {"value": 100.0}},
        "trials": {"n": {"value": 12}, "state.COMPLETE.n": {"value": 10}},
    }
    found = next(one for one in TRACKED if one.name == "energy_kwh").of({"measures": measures})
    return math.nan if found is None else found


def test_energy_is_of_the_time_that_is_gpu_time() -> None:
    """A recorder that stayed on for nine idle hours after an hour of trials costs its search nothing."""
    assert energies(0.3, 0.84, 100.0) == pytest.approx(0.03)
    assert energies(None, 0.84, None, gpu_h=None) == pytest.approx(0.084)  # the clocks cannot be joined
    assert energies(0.3, 0.84, None) == pytest.approx(0.03)  # written before it was said how much is known
    assert math.isnan(energies(0.12, 0.84, 40.0)) and math.isnan(energies(None, 0.84, None))


def test_too_few_runs_are_not_judged(tmp_path: Path) -> None:
    held = history(write_all(tmp_path, [*STEADY[: FEWEST - 1], 10.0], [*TIMES[: FEWEST - 1], 9000.0]))
    assert {one.verdict for one in held.quantities} == {"not assessed"} and not held.regression


def test_the_order_is_that_of_time_and_old_runs_do_not_count(tmp_path: Path) -> None:
    wild = [5.0, 50.0, 95.0]
    held = history(write_all(tmp_path, [*wild, *(STEADY * 3)[:MOST], 70.0], [1000.0 + k for k in range(MOST + 4)]))
    assert held.runs[-1].name == f"run {MOST + 3}" and held.quantities[0].n_earlier == MOST
    assert held.quantities[0].verdict == "worse"


@pytest.mark.slow
def test_of_the_same_one_in_twenty_is_called_different() -> None:
    """All quantities together: 5 % in 4,000 drawn histories, within what chance allows."""
    rng = np.random.default_rng(20261123)
    wrong = 0
    for _ in range(4000):
        n = int(rng.integers(FEWEST, MOST + 1))
        drawn = np.exp(rng.normal(3.0, 0.2, (4, n + 1)))
        bands = [prediction_interval(list(row[:-1]), 0.05 / 4) for row in drawn]
        wrong += any(not low <= row[-1] <= high for (low, high), row in zip(bands, drawn, strict=True))
    assert 0.035 <= wrong / 4000 <= 0.06


@pytest.mark.parametrize("values", [[99.9, 100.0, 100.0, 99.95, 100.0], [80.0, 95.0, 60.0, 99.0, 40.0]])
def test_a_share_stays_a_share(values: list[float]) -> None:
    low, high = prediction_interval(values, 0.0125, share=True)
    assert 0 < low < np.mean(values) and low < high < 100
    odds = np.log(np.clip(values, 0.05, 99.95) / (100 - np.clip(values, 0.05, 99.95)))
    reach = stats.t.ppf(1 - 0.0125 / 2, 4) * odds.std(ddof=1) * math.sqrt(1.2)
    assert high == pytest.approx(100 / (1 + np.exp(-(odds.mean() + reach))))


def test_other_files_of_that_name_are_passed_over_or_said(tmp_path: Path) -> None:
    write_all(tmp_path, STEADY, TIMES)
    for name, text in (("other", '{"schema": "theirs"}'), ("torn", '{"schema": "gpudiag.diagn')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "diagnosis.json").write_text(text, encoding="utf-8")
    held = history(tmp_path)
    assert len(held.runs) == 7 and len(held.unread) == 1 and "torn" in held.unread[0]
    with pytest.raises(InputError, match="needs two"):
        history(tmp_path / "0")


def test_the_command_fails_a_pipeline_on_a_regression_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path / "bad", [*STEADY, 60.0], [*TIMES, 1000.0])
    assert called(monkeypatch, "history", tmp_path / "bad") == 0
    said = capsys.readouterr().out
    assert "Worse than 7 earlier runs: mean utilization is 60 %, not 80 %." in said
    assert called(monkeypatch, "history", tmp_path / "bad", "--fail-on", "regression") == 1
    write_all(tmp_path / "good", [*STEADY, 99.0], [*TIMES, 1000.0])
    assert called(monkeypatch, "history", tmp_path / "good", "--fail-on", "regression", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))["schema"] == "gpudiag.history/1"


def training(folder: Path, at: int, studies: list[str], parameters: list[str]) -> None:
    """Say what run ``at`` trained."""
    path = folder / str(at) / "diagnosis.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["run"]["studies"] = studies
    document["inputs"] = [{"columns": ["trial", *(f"params.{one}" for one in parameters)]}]
    path.write_text(json.dumps(document), encoding="utf-8")


def test_other_parameters_are_another_training(tmp_path: Path) -> None:
    write_all(tmp_path, STEADY, TIMES)
    for at in range(7):
        training(tmp_path, at, [f"night {at}"], ["lr"] if at < 5 else ["lr", "depth"])
    (other,) = history(tmp_path).differing
    assert (other.what, other.n_runs, other.n_earlier) == ("parameters of the trials", 5, 6)
    assert "may not be the same training" in str(history_text(history(tmp_path)))


@pytest.mark.parametrize(("newest", "n"), [("nightly-2026-11-23", 0), ("vision", 1)])
def test_a_study_a_night_is_one_training(tmp_path: Path, newest: str, n: int) -> None:
    write_all(tmp_path, STEADY, TIMES)
    for at in range(7):
        training(tmp_path, at, [f"nightly-2026-11-{at + 1:02d}"] if at < 6 else [newest], [])
    assert len(history(tmp_path).differing) == n


def machine(folder: Path, at: int, driver: str, workers: int) -> None:
    """Say on what run ``at`` ran."""
    path = folder / str(at) / "diagnosis.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["run"] |= {"gpus": [{"gpu": "0", "driver": driver}], "dataloader": {"num_workers": workers}}
    path.write_text(json.dumps(document), encoding="utf-8")


def test_what_changed_beside_the_newest_run_and_beside_an_earlier_step(tmp_path: Path) -> None:
    late = [60.0, 61.0, 59.5, 60.2, 59.9, 60.4, 60.1]
    write_all(tmp_path, [*STEADY, *late], [*TIMES, *TIMES])
    for at in range(14):
        machine(tmp_path, at, "550.54" if at < 7 else "570.86", 4 if at < 13 else 8)
    held = history(tmp_path)
    assert held.changed == ("num_workers: 4 → 8",)
    (step,) = held.quantities[0].steps
    assert (step.at, step.run, step.changed) == (8, "run 7", ("driver: 550.54 → 570.86",))
    assert held.quantities[0].n_earlier == 6, "what was before the step is no measure of what comes after it"
    assert step.before == pytest.approx(np.mean(STEADY)) and step.after == pytest.approx(np.mean(late))
    text = str(history_text(held))
    assert "Mean utilization changed from 80 % to 60.2 % with run 7 (run 8)" in text and "num_workers: 4 → 8" in text


def test_of_a_step_without_a_known_cause_it_says_what_stayed_the_same(tmp_path: Path) -> None:
    """A condition that one of the two runs does not state may have changed: nobody says that nothing did."""
    late = [60.0, 61.0, 59.5, 60.2, 59.9, 60.4, 60.1]
    write_all(tmp_path, [*STEADY, *late], [*TIMES, *TIMES])
    assert "Why is not recorded: no condition is stated in both runs." in str(history_text(history(tmp_path)))
    for at in range(14):
        machine(tmp_path, at, "550.54", 4)
    said = str(history_text(history(tmp_path)))
    assert "with run 7 (run 8). What both runs state did not change: driver and num_workers." in said


@pytest.mark.slow
def test_the_report_has_a_figure_with_the_band_and_the_newest_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path / "runs", [*STEADY, 60.0], [*TIMES, 1000.0])
    out = tmp_path / "history.html"
    assert called(monkeypatch, "history", tmp_path / "runs", "-o", out) == 0
    page = out.read_text(encoding="utf-8")
    assert "data:image/svg+xml" in page and "8 runs; the newest: mean utilization 60 %, worse" in page
    assert "report.html" not in page
    assert called(monkeypatch, "history", tmp_path / "runs", "-o", tmp_path / "history.md") == 0
    assert (tmp_path / "history_files" / "history.svg").is_file()
    assert called(monkeypatch, "history", tmp_path / "runs", "-o", tmp_path / "history.pdf") == 2
    assert "by the name of its file" in capsys.readouterr().err


def test_the_figure_draws_the_values_and_the_band(tmp_path: Path) -> None:
    held = history(write_all(tmp_path, [*STEADY, 60.0], [*TIMES, 1000.0]))
    figure = HISTORY_PLOTS["history"].picture("history", {"history": panels_of(held)}).figure
    first = figure.axes[0]
    assert list(first.lines[0].get_ydata()) == STEADY and list(first.lines[1].get_ydata()) == [60.0]
    band = first.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((held.quantities[0].low, held.quantities[0].high))
    assert first.lines[1].get_marker() == "v" and "worse" in first.get_title(loc="left")


def test_a_run_without_a_result_is_worse(tmp_path: Path) -> None:
    write_all(tmp_path, STEADY, TIMES)
    write(tmp_path, 8, util=0.0, gpu_s=1000.0, n=0)
    held = history(tmp_path)
    assert [one.verdict for one in held.quantities] == ["worse", "worse"] and held.regression
    assert math.isinf(held.quantities[1].newest)


def test_what_the_newest_run_lacks_is_not_assessed(tmp_path: Path) -> None:
    write_all(tmp_path, [*STEADY, 80.1], [*TIMES, 1001.0])
    path = tmp_path / "7" / "diagnosis.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["measures"]["ledger"]["mean_util_pct"]
    path.write_text(json.dumps(document), encoding="utf-8")
    held = history(tmp_path)
    util, gpu = held.quantities
    assert (util.name, util.verdict, util.n_earlier) == ("util_pct", "not assessed", 7) and math.isnan(util.newest)
    assert gpu.verdict == "within the noise"
    logs = np.log(np.array(TIMES) / 10)
    reach = stats.t.ppf(1 - 0.05 / 2, 6) * logs.std(ddof=1) * math.sqrt(1 + 1 / 7)  # one quantity is judged
    assert gpu.low == pytest.approx(math.exp(logs.mean() - reach))
    assert "lacks what the earlier ones have: mean utilization; not assessed" in str(history_text(held))
    picture = HISTORY_PLOTS["history"].picture("history", {"history": panels_of(held)})
    assert "mean utilization –, not assessed" in picture.alt


@pytest.mark.parametrize(
    ("name", "age_s", "code"), [("10", 0, 2), ("10", -9e5, 2), ("0-torn", 9e5, 2), ("0-torn", -9e5, 0)]
)
def test_a_newest_report_that_cannot_be_read_is_no_pass(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    age_s: float,
    code: int,
) -> None:
    write_all(tmp_path, STEADY, TIMES)
    torn = tmp_path / name / "diagnosis.json"
    torn.parent.mkdir()
    torn.write_text('{"schema": "gpudiag.diagn', encoding="utf-8")
    at = (tmp_path / "6" / "diagnosis.json").stat().st_mtime + age_s
    os.utime(torn, (at, at))
    assert called(monkeypatch, "history", tmp_path, "--fail-on", "regression") == code
    assert ("It may be the newest run" in capsys.readouterr().err) == (code == 2)
    assert called(monkeypatch, "history", tmp_path) == 0


def test_equal_runs_are_equal(tmp_path: Path) -> None:
    held = history(write_all(tmp_path, [80.0] * 8, [1000.0] * 8))
    assert {one.verdict for one in held.quantities} == {"within the noise"}
    held = history(write_all(tmp_path / "full", [100.0] * 8, [0.1 + 0.2] * 8))
    assert {one.verdict for one in held.quantities} == {"within the noise"}


def test_a_copy_is_no_second_run_and_a_run_without_a_time_has_no_place(tmp_path: Path) -> None:
    import shutil

    write_all(tmp_path, STEADY, TIMES)
    shutil.copytree(tmp_path / "3", tmp_path / "copy")
    document = json.loads((tmp_path / "3" / "diagnosis.json").read_text(encoding="utf-8"))
    document["run"]["start"] = None
    (tmp_path / "undated").mkdir()
    (tmp_path / "undated" / "diagnosis.json").write_text(json.dumps(document), encoding="utf-8")
    held = history(tmp_path)
    assert len(held.runs) == 7 and "has no time" in held.unread[0]


def test_figure_and_tables_have_one_unit(tmp_path: Path) -> None:
    """Results of 30 and of 90 GPU-s stand in GPU-h both, as in the figure."""
    held = history(write_all(tmp_path, [80.0] * 7, [300.0, 900.0, 300.0, 900.0, 300.0, 900.0, 900.0]))
    panel = next(one for one in panels_of(held) if one.title == "GPU time per result")
    gpu = next(one for one in held.quantities if one.name == "gpu_s")
    values = [run.values["gpu_s"] for run in held.runs]
    assert panel.unit == "GPU-h" and panel.values == pytest.approx([value / 3600 for value in values])
    assert panel.low == pytest.approx((gpu.low or 0.0) / 3600)
    column = [row[-1] for row in runs_table(held, [gpu], held.runs).rows]
    assert [one.text for one in column if isinstance(one, Number)][:2] == ["0.00833 GPU-h", "0.025 GPU-h"]


@pytest.mark.parametrize(
    ("logs", "recorded", "done"),
    [
        # of each as many as there are, and as many as failed
        ((1, 0), (0, 0), 1.0),
        ((1, 1), (0, 0), 0.0),
        ((2, 1), (0, 0), None),
        ((0, 0), (1, 1), 0.0),
        ((0, 0), (2, 1), None),
        ((2, 0), (1, 1), 0.0),  # the command that wrote both logs
        ((1, 0), (2, 1), None),  # one of two commands
        ((2, 1), (1, 0), None),
        ((2, 2), (1, 0), 0.0),
        ((3, 0), (2, 2), 0.0),
        ((1, 0), (1, 0), 1.0),
    ],
)
def test_a_training_is_lost_where_all_its_logs_or_all_its_commands_failed(
    logs: tuple[int, int], recorded: tuple[int, int], done: float | None
) -> None:
    endings = {
        "n_logs": logs[0], "n_recorded": recorded[0], "n_failed": logs[1] + recorded[1],
        "n_failed_recorded": recorded[1],
    }  # fmt: skip
    measures = {
        "ledger": {"total_gpu_s": {"value": 60.0}},
        "endings": {name: {"value": value} for name, value in endings.items()},
    }
    found = next(one for one in TRACKED if one.name == "gpu_s").of({"measures": measures})
    assert found == {1.0: 60.0, 0.0: math.inf, None: None}[done]


def with_trials(folder: Path, at: int, n: int, failed: int) -> None:
    write(folder, at, util=STEADY[at % 7], gpu_s=TIMES[at % 7], n=n - failed)
    path = folder / str(at) / "diagnosis.json"
    document = json.loads(path.read_text())
    document["measures"]["trials"] |= {
        "state.FAIL.n": {"value": failed, "unit": "1"},
        "state.PRUNED.n": {"value": 0, "unit": "1"},
        "fail_pct": {"value": 100 * failed / n, "unit": "%"},
    }
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("before", "failed", "verdict"),
    [
        ([0] * 12, 0, "within the noise"),
        ([0] * 12, 1, "within the noise"),  # one of sixteen: p = 16/208
        ([0] * 12, 3, "worse"),
        ([0] * 12, 12, "worse"),
        ([4] * 12, 12, "worse"),
        ([4] * 12, 0, "within the noise"),  # p = 0.03, of three quantities
        ([12] * 12, 1, "better"),
        ([0, 8, 1, 9, 0, 7, 2, 9, 0, 8, 1, 9], 10, "within the noise"),  # nights differ more than chance
    ],
)
def test_failed_trials_are_followed(tmp_path: Path, before: list[int], failed: int, verdict: str) -> None:
    for at, n in enumerate([*before, failed]):
        with_trials(tmp_path, at, 16, n)
    held = history(tmp_path)
    one = next(one for one in held.quantities if one.name == "fail_pct")
    assert one.verdict == verdict and one.newest == 100 * failed / 16
    p = stats.fisher_exact([[failed, 16 - failed], [sum(before), 12 * 16 - sum(before)]]).pvalue
    if verdict != "within the noise":
        assert p <= 0.05 / 3 and not one.low <= one.newest <= one.high
    assert one.low <= one.newest <= one.high or p <= 0.05 / 3


def test_a_night_whose_trials_all_failed_has_no_result(tmp_path: Path) -> None:
    for at, n in enumerate([0] * 8 + [16]):
        with_trials(tmp_path, at, 16, n)
    said = str(history_text(history(tmp_path)))
    assert "Worse than 8 earlier runs: the newest run has no result, since 16 of 16 trials failed." in said


def test_less_utilization_at_less_gpu_time_a_result_is_no_regression(tmp_path: Path) -> None:
    held = history(write_all(tmp_path, [*STEADY, 60.0], [*TIMES, 500.0]))
    assert {one.name: one.verdict for one in held.quantities} == {"util_pct": "lower", "gpu_s": "better"}
    assert not held.regression
    said = str(history_text(held))
    assert "Better than 7 earlier runs: GPU time per result. Mean utilization is lower (60 %, not 80 %)" in said


def test_the_cost_of_a_result_comes_before_utilization(tmp_path: Path) -> None:
    said = str(history_text(history(write_all(tmp_path, [*STEADY, 60.0], [*TIMES, 2000.0]))))
    assert "Worse than 7 earlier runs: GPU time per result is " in said


def write_training(folder: Path, at: int, *, n_steps: float | None, gpu_s: float, again: float = 0.0) -> None:
    """A run without trials, with the steps of its log, of which some were done again."""
    measures = {
        "ledger": {"mean_util_pct": {"value": 85.0}, "total_gpu_s": {"value": gpu_s}},
        "steps": {"n_steps": {"value": n_steps and n_steps + again}, "n_repeated": {"value": again}},
    }
    run = {"name": f"run {at}", "start": f"2026-03-{at + 1:02d}T00:00:00+00:00"}
    (folder / str(at)).mkdir(parents=True)
    document = {"schema": "gpudiag.diagnosis/4", "run": run, "measures": measures}
    (folder / str(at) / "diagnosis.json").write_text(json.dumps(document), encoding="utf-8")


@pytest.mark.parametrize(
    ("n_steps", "gpu_s", "again", "verdict"),
    [
        (4000, 1333.0, 0, "not assessed"),  # a third more work at the same pace
        (2000, 667.0, 0, "not assessed"),
        (3000, 1333.0, 0, "worse"),
        (3000, 1333.0, 1000, "worse"),  # the work is the same: steps were lost and done again
        (3010, 1001.0, 0, "within the noise"),
        (None, 1333.0, 0, "worse"),
    ],
)
def test_gpu_time_of_another_number_of_steps_is_neither_worse_nor_better(
    tmp_path: Path, n_steps: float | None, gpu_s: float, again: float, verdict: str
) -> None:
    for at, each in enumerate(TIMES):
        write_training(tmp_path, at, n_steps=3 * each, gpu_s=each)
    write_training(tmp_path, 7, n_steps=n_steps, gpu_s=gpu_s, again=again)
    held = history(tmp_path)
    assert {one.name: one.verdict for one in held.quantities}["gpu_s"] == verdict
    assert held.regression == (verdict == "worse")
    assert bool(held.differing) == (verdict == "not assessed")
    if held.differing:
        assert (held.differing[0].n_runs, held.differing[0].n_earlier) == (7, 7)
        assert "did another number of steps; not assessed: GPU time per result" in str(history_text(held))
