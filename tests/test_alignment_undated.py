"""Telemetry without dates, or without any time, beside dated trials or logs of known truth."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.analysis import Analysis
from gpudiag.export.perfetto import trace
from gpudiag.report.timeline.packed import zone_offsets
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.rules._engine.verdict import Verdict
from gpudiag.rules.clock import clocks_apart, clocks_differ
from gpudiag.rules.events import gpu_lost

LENGTHS_S = (640, 520, 800, 440, 680, 560, 760, 600, 480, 720, 500, 860, 620, 540)
PAUSES_S = (90, 140, 60, 120, 100, 150, 70, 110, 80, 130, 95, 65, 145, 85)
DAY_S = 86_400


def stretches(begin_s: float, n: int = len(LENGTHS_S)) -> list[tuple[float, float]]:
    """Work of so many stretches with a pause behind each."""
    out, at = [], begin_s
    for length, pause in list(zip(LENGTHS_S, PAUSES_S, strict=True))[:n]:
        out.append((at, at + length))
        at += length + pause
    return out


def judged(run: gd.Run, rule: Rule) -> Verdict:
    (verdict,) = judge_all([rule], Analysis(run), check_thresholds([rule], {}))
    return verdict


def write_dmon(path: Path, times: np.ndarray, work: list[tuple[float, float]], zone: str, form: str) -> None:
    """As nvidia-smi dmon prints it: with -o DT, -o T or neither."""
    on = np.any([(times >= low) & (times < high) for low, high in work], axis=0)
    shown = {"DT": "#Date       Time        ", "T": "#Time        ", "": "# "}[form]
    units = {"DT": "#YYYYMMDD   HH:MM:SS    ", "T": "#HH:MM:SS    ", "": "# "}[form]
    rows = [f"{shown}gpu    pwr  gtemp     sm    mem", f"{units}Idx      W      C      %      %"]
    for time, busy in zip(times, on, strict=True):
        moment = datetime.fromtimestamp(float(time), ZoneInfo(zone))
        before = moment.strftime({"DT": " %Y%m%d    %H:%M:%S", "T": " %H:%M:%S", "": ""}[form])
        rows.append(f"{before}      0    {600 if busy else 100}     60     {98 if busy else 0}     40")
    path.write_text("\n".join(rows) + "\n")


def write_log(path: Path, work: list[tuple[float, float]], zone: str) -> None:
    """A line each ten steps of two seconds."""
    lines, step = [], 0
    for low, high in work:
        for at in np.arange(low + 20, high + 1, 20):
            step += 10
            lines.append(f"{datetime.fromtimestamp(float(at), ZoneInfo(zone)):%Y-%m-%d %H:%M:%S} step {step} loss 2.1")
    path.write_text("\n".join(lines) + "\n")


def trials(work: list[tuple[float, float]], zone: str) -> pd.DataFrame:
    def local(at: float) -> str:
        return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%Y-%m-%d %H:%M:%S.%f}"

    rows = [(n, "COMPLETE", 0.1, local(low - 5), local(high + 2)) for n, (low, high) in enumerate(work)]
    return pd.DataFrame(rows, columns=["number", "state", "value", "datetime_start", "datetime_complete"])


def since(zone: str, *moment: int) -> float:
    return datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[arg-type,misc]


def first_s(run: gd.Run) -> float:
    return float(run.gpu["time"].min().timestamp())


def assumed(run: gd.Run) -> str:
    return " ".join(note for one in run.info.inputs for note in one.notes if " assumed" in note)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Taipei", "America/New_York", "Europe/London"])
@pytest.mark.parametrize("hour", [10, 23])
def test_times_of_day_get_the_day_of_the_log(zone: str, hour: int, tmp_path: Path) -> None:
    begin = since(zone, 2026, 3, 10, hour)
    work = stretches(begin + 30)
    times = np.arange(begin, work[-1][1] + 60, 5.0)
    write_dmon(tmp_path / "dmon.txt", times, work, zone, "T")
    write_log(tmp_path / "train.log", work, zone)
    run = gd.load_run(tmp_path, timezone=zone)
    assert first_s(run) == begin and run.gpu["time"].max().timestamp() == times[-1]
    assert run.info.logs_clock.joined and run.info.logs_clock.applied_s == 0
    assert "2026-03-10 is assumed, the one day on which they overlap with the log" in assumed(run)
    (telemetry,) = [one for one in run.info.inputs if one.kind == "telemetry"]
    assert datetime.fromisoformat(telemetry.start or "").timestamp() == begin
    part = run.between("2026-03-10 23:40", None) if hour == 23 else run.between("2026-03-10 10:40", None)
    assert first_s(part) == begin + 40 * 60


def test_a_spring_night_is_placed_to_the_second_on_both_sides_of_the_change(tmp_path: Path) -> None:
    begin = since("Europe/Berlin", 2026, 3, 28, 23, 30)
    work = stretches(begin + 30)
    times = np.arange(begin, work[-1][1] + 60, 5.0)
    write_dmon(tmp_path / "dmon.txt", times, work, "Europe/Berlin", "T")
    write_log(tmp_path / "train.log", work, "Europe/Berlin")
    run = gd.load_run(tmp_path, timezone="Europe/Berlin")
    assert [first_s(run), run.gpu["time"].max().timestamp()] == [times[0], times[-1]]


def test_each_of_two_files_gets_its_own_day(tmp_path: Path) -> None:
    begin, midnight = since("Asia/Taipei", 2026, 3, 10, 23), since("Asia/Taipei", 2026, 3, 11)
    work = stretches(begin + 30)
    times = np.arange(begin, work[-1][1] + 60, 5.0)
    for name, part in (("b.txt", times[times < midnight]), ("a.txt", times[times >= midnight])):
        write_dmon(tmp_path / name, part, work, "Asia/Taipei", "T")
    write_log(tmp_path / "train.log", work, "Asia/Taipei")
    run = gd.load_run(tmp_path, timezone="Asia/Taipei")
    found = run.gpu["time"].map(lambda time: time.timestamp()).to_numpy()
    assert np.array_equal(found, times)


def test_of_several_days_the_one_on_which_steps_lie_on_work(tmp_path: Path) -> None:
    """The log is of the second night of telemetry that was recorded for 34 h; always busy GPUs show no day."""
    begin = since("UTC", 2026, 3, 10, 1)
    times = np.arange(begin, begin + 34 * 3600, 20.0)
    work = stretches(begin + 25 * 3600)
    write_log(tmp_path / "train.log", work, "UTC")
    write_dmon(tmp_path / "dmon.txt", times, work, "UTC", "T")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert first_s(run) == begin and "steps lie on work" in assumed(run)
    write_dmon(tmp_path / "dmon.txt", times, [(begin, times[-1] + 20)], "UTC", "T")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert first_s(run) < DAY_S and not run.info.logs_clock.joined
    assert "It may be of 2 days from 2026-03-10 to 2026-03-11" in assumed(run)


@pytest.mark.parametrize("seen", [(0, 1), (0, 2), (1, 2)])
def test_trials_of_two_days_alike_tell_no_day_and_unlike_ones_do(seen: tuple[int, int], tmp_path: Path) -> None:
    begin = since("Asia/Taipei", 2026, 3, 10, 14)
    first = stretches(begin)
    for apart, told in ((DAY_S, False), (DAY_S + 1300, True)):
        work = [*first, *((low + apart, high + apart) for low, high in first)]
        start = begin - 300 + DAY_S * seen[0]
        times = np.arange(start, start + DAY_S * (seen[1] - seen[0] - 1) + 4 * 3600, 10.0)
        write_dmon(tmp_path / "dmon.txt", times, work, "Asia/Taipei", "T")
        trials(work, "Asia/Taipei").to_csv(tmp_path / "trials.csv", index=False)
        run = gd.load_run(tmp_path, timezone="Asia/Taipei")
        assert run.info.clock.joined is told
        assert (first_s(run) == start) if told else (first_s(run) < DAY_S)


def test_a_log_in_another_zone_is_moved_beside_times_of_day(tmp_path: Path) -> None:
    begin = since("Asia/Taipei", 2026, 3, 10, 22)
    work = stretches(begin + 30)
    write_dmon(tmp_path / "dmon.txt", np.arange(begin, work[-1][1] + 60, 5.0), work, "Asia/Taipei", "T")
    write_log(tmp_path / "train.log", work, "UTC")
    run = gd.load_run(tmp_path, timezone="Asia/Taipei")
    assert first_s(run) == begin and run.info.logs_clock.applied_s == 8 * 3600


def test_a_log_of_other_work_gets_no_date_and_nobody_says_that_it_is_another_run(tmp_path: Path) -> None:
    begin = since("UTC", 2026, 3, 10, 8)
    work = stretches(begin)
    times = np.arange(begin - 3600, begin + 16 * 3600, 10.0)
    write_dmon(tmp_path / "dmon.txt", times, work, "UTC", "T")
    write_log(tmp_path / "train.log", stretches(begin + 8 * 3600, 5), "UTC")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert not run.info.logs_clock.joined and first_s(run) < 2 * DAY_S
    apart, differ = judged(run, clocks_apart), judged(run, clocks_differ)
    for verdict in (apart, differ):
        assert verdict.status.value == "not_assessed"
        assert "no day is found on which it fits the log" in verdict.reason
    assert "nvidia-smi dmon -o DT" in apart.remedy


def test_samples_without_any_time_are_placed_where_the_log_fits(tmp_path: Path) -> None:
    begin = since("Asia/Taipei", 2026, 3, 10, 22)
    work = stretches(begin + 300)
    times = np.arange(begin, work[-1][1] + 60, 2.0)
    write_dmon(tmp_path / "dmon.txt", times, work, "Asia/Taipei", "")
    write_log(tmp_path / "train.log", work, "Asia/Taipei")
    run = gd.load_run(tmp_path, timezone="Asia/Taipei", period_s=2.0)
    assert first_s(run) == pytest.approx(begin, abs=10) and run.info.logs_clock.joined
    assert "Its samples carry no time: a beginning at 2026-03-10 13:59" in assumed(run) or "14:00" in assumed(run)


def test_samples_without_any_time_beside_trials_leave_seconds_open(tmp_path: Path) -> None:
    begin = since("UTC", 2026, 3, 10, 22)
    work = stretches(begin + 300)
    write_dmon(tmp_path / "dmon.txt", np.arange(begin, work[-1][1] + 60, 2.0), work, "UTC", "")
    trials(work, "UTC").to_csv(tmp_path / "trials.csv", index=False)
    run = gd.load_run(tmp_path, timezone="UTC", period_s=2.0)
    clock = run.info.clock
    assert abs(first_s(run) - begin) <= clock.doubt_s == 60 and clock.joined and not clock.exact


@pytest.mark.parametrize("n", [1, 5])
def test_too_few_pauses_place_no_samples_without_time(n: int, tmp_path: Path) -> None:
    begin = since("UTC", 2026, 3, 10, 10)
    work = [(begin + 30 + 690 * k, begin + 630 + 690 * k) for k in range(n)]
    write_dmon(tmp_path / "dmon.txt", np.arange(begin, work[-1][1] + 60, 1.0), work, "UTC", "")
    write_log(tmp_path / "train.log", work, "UTC")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert not run.info.logs_clock.joined and first_s(run) == 0
    verdict = judged(run, clocks_apart)
    assert verdict.status.value == "not_assessed"
    assert verdict.reason.startswith("The telemetry carries no time, and nothing in it shows where it lies beside")


def test_dates_of_the_telemetry_itself_stay(tmp_path: Path) -> None:
    begin = since("UTC", 2026, 3, 10, 10)
    work = stretches(begin + 30)
    write_dmon(tmp_path / "dmon.txt", np.arange(begin, begin + 3600, 5.0), work, "UTC", "DT")
    write_log(tmp_path / "train.log", [(low + 2 * DAY_S, high + 2 * DAY_S) for low, high in work], "UTC")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert first_s(run) == begin and not assumed(run) and not run.info.logs_clock.joined


def test_a_stated_offset_counts_before_the_day_is_taken(tmp_path: Path) -> None:
    """The log is ten minutes behind, and so ends before midnight; a part of the telemetry begins after it."""
    begin = since("UTC", 2026, 3, 11, 0, 2)
    work = stretches(begin, 1)
    write_dmon(tmp_path / "dmon.txt", np.arange(begin, begin + 900, 5.0), work, "UTC", "T")
    write_log(tmp_path / "train.log", [(low - 1200, high - 1200) for low, high in work], "UTC")
    (tmp_path / "run.toml").write_text('timezone = "UTC"\nclock_offset_s = 1200\n')
    run = gd.load_run(tmp_path)
    assert first_s(run) == begin and run.steps["time"].min().timestamp() == begin + 20


def test_alone_it_has_no_date(tmp_path: Path) -> None:
    """A time of day is shown as it stands, whatever the zone, and is not shifted by it."""
    begin = since("Asia/Taipei", 2026, 3, 10, 9)
    write_dmon(tmp_path / "dmon.txt", np.arange(begin, begin + 3600, 5.0), stretches(begin), "Asia/Taipei", "T")
    run = gd.load_run(tmp_path / "dmon.txt", timezone="Asia/Taipei")
    assert run.gpu["time"].min() == pd.Timestamp("1970-01-01 09:00", tz="UTC")
    part = run.between("1970-01-01 09:10", "1970-01-01 09:20")
    assert part.gpu["time"].min() == pd.Timestamp("1970-01-01 09:10", tz="UTC")
    assert part.info.notes[-1] == "Selected: 09:10:00 (no date) to 09:20:00 (no date)."
    assert timedelta(minutes=10) > part.gpu["time"].max() - part.gpu["time"].min()
    diagnosis = gd.diagnose(run)
    assert trace(diagnosis)["otherData"]["start"] is None  # type: ignore[index,call-overload]
    assert zone_offsets("Asia/Taipei", 9 * 3600 * 10**6, 10 * 3600 * 10**6) == {"name": "UTC", "offsets": [[0.0, 0.0]]}


def test_a_table_with_times_of_day_is_dated_in_the_zone_of_the_run(tmp_path: Path) -> None:
    begin = since("Asia/Taipei", 2026, 3, 10, 6)
    work = stretches(begin, 2)
    times = np.arange(begin, work[-1][1], 5.0)
    on = [any(low <= time < high for low, high in work) for time in times]
    shown = [f"{datetime.fromtimestamp(float(time), ZoneInfo('Asia/Taipei')):%H:%M:%S}" for time in times]
    rows = [f"{clock},{97 * busy}" for clock, busy in zip(shown, on, strict=True)]
    (tmp_path / "gpu.csv").write_text("\n".join(["time,gpu_util", *rows]) + "\n")
    assert gd.load_run(tmp_path / "gpu.csv", timezone="Asia/Taipei").info.inputs[0].clock == "day"
    write_log(tmp_path / "train.log", work, "Asia/Taipei")
    assert first_s(gd.load_run(tmp_path, timezone="Asia/Taipei")) == begin


@pytest.mark.slow
def test_a_run_with_dated_trials_lasts_as_long_as_these(tmp_path: Path) -> None:
    begin = since("UTC", 2026, 3, 10, 10)
    work = stretches(begin, 4)
    write_dmon(tmp_path / "dmon.txt", np.arange(begin, begin + 300, 1.0), [(0, 0)], "UTC", "")
    trials(work, "UTC").to_csv(tmp_path / "trials.csv", index=False)
    run = gd.load_run(tmp_path, timezone="UTC")
    assert not run.info.clock.joined and first_s(run) == 0
    assert gd.diagnose(run).to_dict()["run"]["start"] == "2026-03-10T09:59:55+00:00"


def test_a_lost_gpu_without_a_date_is_not_of_1970(tmp_path: Path) -> None:
    head = "#Entity   GPUTL       XIDER       \nID                                \n"
    rows = [
        f"GPU {gpu}     90          {79 if gpu and s >= 120 else 0}           " for s in range(300) for gpu in (0, 1)
    ]
    (tmp_path / "dcgm.log").write_text(head + "\n".join(rows) + "\n")
    run = gd.load_run(tmp_path / "dcgm.log", timezone="Asia/Taipei")
    assert judged(run, gpu_lost).summary == "GPU 1 was lost at 00:02:00 (no date)."
