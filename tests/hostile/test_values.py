"""Values and stamps that no run can have: each costs itself, and nothing fails."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag._load.inspection import inspect
from gpudiag.comparison.written import read_written
from gpudiag.errors import ConfigError

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
HEADER = "number,state,value,datetime_start,datetime_complete,duration\n"


def trials(folder: Path, start: str, end: str, *, value: str = "1.0", duration: str = "") -> gd.Run:
    good = "".join(f"{n},COMPLETE,0.5,2026-03-01 10:{n:02}:00,2026-03-01 10:{n:02}:30,\n" for n in range(5))
    (folder / "t.csv").write_text(f"{HEADER}{good}5,COMPLETE,{value},{start},{end},{duration}\n")
    return gd.load_run(folder / "t.csv", timezone="Asia/Taipei")


@pytest.mark.slow
@pytest.mark.parametrize("year", ["0001", "1969", "1970", "2425", "9999"])
@pytest.mark.parametrize("zone", ["", "+00:00"])
def test_a_stamp_that_no_trial_can_have_is_unknown(year: str, zone: str, tmp_path: Path) -> None:
    run = trials(tmp_path, f"{year}-01-01 10:00:00{zone}", f"{year}-01-01 10:10:00{zone}")
    assert run.trials["start"].notna().tolist() == [True] * 5 + [False]
    assert [p.count for one in run.info.inputs for p in one.problems if p.kind == "timestamp that is no date"]
    found = gd.diagnose(run)
    assert not found.errors
    assert (run.trials["end"].max() - run.trials["start"].min()).total_seconds() == 270


@pytest.mark.slow
def test_stamps_of_a_study_that_no_trial_can_have(tmp_path: Path) -> None:
    import sqlite3

    shutil.copy(SAMPLES / "healthy" / "optuna.db", tmp_path / "o.db")
    with sqlite3.connect(tmp_path / "o.db") as held:
        held.execute("UPDATE trials SET datetime_start = '0001-01-01 00:00:00' WHERE number = 0")
    run = gd.load_run(tmp_path / "o.db", timezone="Asia/Taipei")
    assert math.isnan(run.trials["start"].isna().map({True: math.nan, False: 0.0}).iloc[0])
    assert run.trials["start"].notna().sum() == len(run.trials) - 1 and not gd.diagnose(run).errors


def test_a_pruner_that_cannot_be_read_is_said_with_its_file(tmp_path: Path) -> None:
    trials(tmp_path, "2026-03-01 10:06:00", "2026-03-01 10:06:30")
    (tmp_path / "run.toml").write_text('[settings]\npruner = "median(("\n')
    said = rf"^{tmp_path}: key 'settings\.pruner' of run\.toml: pruner 'median\(\(': not of the form"
    with pytest.raises(ConfigError, match=said):
        gd.diagnose(gd.load_run(tmp_path, timezone="UTC"))


@pytest.mark.slow
def test_a_duration_of_ages_is_unknown(tmp_path: Path) -> None:
    run = trials(tmp_path, "2026-03-01 10:06:00", "", duration="99999999 days 00:00:00")
    assert not gd.diagnose(run).errors


@pytest.mark.slow
@pytest.mark.parametrize("value", ["1e308", "-1e308", "inf", "nan", "1.7976931348623157e308"])
def test_values_at_the_end_of_all_numbers(value: str, tmp_path: Path) -> None:
    assert not gd.diagnose(trials(tmp_path, "2026-03-01 10:06:00", "2026-03-01 10:06:30", value=value)).errors


@pytest.mark.slow
def test_the_best_trial_has_no_usable_end(tmp_path: Path) -> None:
    rows = "".join(f"{n},COMPLETE,{n},2026-03-01 10:{n + 1:02}:00,2026-03-01 09:00:00,\n" for n in range(10))
    rows += "10,COMPLETE,99,2026-03-01 10:20:00,2026-03-01 10:20:30,\n"
    (tmp_path / "t.csv").write_text(HEADER + rows)
    assert not gd.diagnose(gd.load_run(tmp_path / "t.csv", timezone="UTC")).errors


def test_a_board_that_says_it_has_no_memory(tmp_path: Path) -> None:
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
    rows = "".join(f"2026/03/01 10:{n // 60:02}:{n % 60:02}.000, 0, 50 %, {n} MiB, 0 MiB\n" for n in range(1200))
    (tmp_path / "g.csv").write_text(head + rows)
    assert not gd.diagnose(gd.load_run(tmp_path / "g.csv", timezone="UTC")).errors


@pytest.mark.parametrize(
    "text", ["clock_offset_s = nan", "clock_offset_s = 1e300", "clock_offset_s = -inf", "x = " + "[" * 5000]
)
def test_a_run_toml_out_of_bounds_is_a_sentence(text: str, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "tiny-batch-laptop" / "gpu.csv", tmp_path)
    (tmp_path / "run.toml").write_text(text + "\n")
    with pytest.raises(gd.ConfigError, match=r"run\.toml"):
        gd.load_run(tmp_path)


def test_a_plan_of_a_hundred_thousand_brackets_is_none(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("[" * 100_000)
    assert read_written(tmp_path / "plan.json") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["²", "1²", "٣", "0" * 5000, "9" * 5000, "x" * 100_000])
def test_a_gpu_that_is_called_like_no_number(name: str, tmp_path: Path) -> None:
    rows = (
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}"}} 50 {1.7e12 + 5000 * n:.0f}\n' for n in range(9) for gpu in ("0", name)
    )
    (tmp_path / "gpu.prom").write_text("".join(rows), encoding="utf-8")
    found = gd.diagnose(gd.load_run(tmp_path))
    assert list(found.run.gpus["gpu"]) == ["0", name] and not found.errors and found.to_markdown()


@pytest.mark.parametrize(
    "line",
    [
        "[settings]\nparallel = 10000000000000000000000000",
        "[settings]\nmax_steps = 9223372036854775807",
        "[settings]\nram_gib = inf",
        "[settings]\nprice_per_gpu_h = nan",
        "[gpus.0]\nmem_total_mib = 1e308",
        "[gpus.0]\npower_limit_w = 5e-324",
        "[dataloader]\nbatch_size = 99999999999999999999",
        "period_s = 5e-324",
        "period_s = inf",
    ],
)
def test_numbers_of_run_toml_that_no_run_has(line: str, folder: Path) -> None:
    (folder / "run.toml").write_text(line)
    with pytest.raises(ConfigError, match=r"key '[a-z0-9_.]+': Input should be|must be a number"):
        gd.load_run(folder)


@pytest.mark.parametrize("name", [r"a\u0000b", "x" * 5000])
def test_an_input_that_no_file_can_be_called(name: str, folder: Path) -> None:
    (folder / "run.toml").write_text(f'telemetry = ["gpu.csv", "{name}"]')
    with pytest.raises(gd.InputError, match="no such file or folder"):
        gd.load_run(folder)
    assert [one.kind for one in inspect([folder])] == ["telemetry", "unknown"]


@pytest.mark.slow
@pytest.mark.parametrize("huge", ["1" + "0" * 30, "1e300", "9" * 400, "true"])
def test_numbers_beyond_all_times_and_steps(huge: str, tmp_path: Path) -> None:
    task = '{"task": "%s", "start": %s, "end": %s, "status": "ok"}\n'
    (tmp_path / "t.jsonl").write_text(task % ("a", huge, huge) + task % ("b", 1700000000, 1700000060))
    step = huge if huge.isdigit() else "3"
    trial = '{"number": %d, "state": "COMPLETE", "value": %s, "intermediate_values": {"%s": 1, "2": 2}}'
    (tmp_path / "trials.json").write_text(f"[{trial % (0, huge, step)}, {trial % (1, 2, 4)}]")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert run.trials["start"].notna().sum() == 1 and not gd.diagnose(run).errors
    assert run.reports["step"].max() <= 4 and len(run.trials) == 4


def test_numbers_beyond_all_times_in_results_of_ray(tmp_path: Path) -> None:
    (tmp_path / "t_1").mkdir()
    huge = "9" * 400
    rows = (
        f'{{"training_iteration": {n}, "timestamp": {huge}, "time_total_s": {huge}, "loss": {huge}' for n in (1, huge)
    )
    text = "".join(f'{row}, "trial_id": "x", "date": "2026-03-01_10-00-00"}}\n' for row in rows)
    (tmp_path / "t_1" / "result.json").write_text(text)
    (tmp_path / "t_1" / "params.json").write_text(f'{{"lr": {huge}}}')
    assert len(gd.load_run(tmp_path, timezone="UTC").trials) == 1


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e300, -1e300, 2.0**63])
@pytest.mark.parametrize("where", ["1", "trial_id = 3"])
def test_integers_of_a_study_that_no_integer_holds(value: float, where: str, tmp_path: Path) -> None:
    import sqlite3

    shutil.copy(SAMPLES / "hpo-aggressive-pruning" / "optuna.db", tmp_path / "o.db")
    with sqlite3.connect(tmp_path / "o.db") as held:
        held.execute(f"UPDATE trial_params SET param_value = ? WHERE {where}", [value])
        held.execute("UPDATE trial_params SET distribution_json = replace(distribution_json, 'Float', 'Int')")
    run = gd.load_run(tmp_path / "o.db", timezone="UTC")
    assert not gd.diagnose(run).errors
