"""Forms of timestamps at the beginning of lines: the time between lines holds in each, a day only where it is known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._batches.line_clocks import LineClock
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import training_log
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

START = datetime(2026, 3, 2, 9, 0, 40)
MOMENTS = [START + timedelta(seconds=10 * n + (45 if n > 2 else 0)) for n in range(6)]
SECONDS = [0, 10, 20, 75, 85, 95]


def pattern(text: str) -> Callable[[datetime], str]:
    return lambda moment: moment.strftime(text)


DATED = {
    "eight digits": pattern("%Y%m%d %H:%M:%S"),
    "iso with AM": pattern("%Y-%m-%d %I:%M:%S %p"),
    "epoch": lambda moment: f"{moment.replace(tzinfo=UTC).timestamp():.3f}",
    "epoch in brackets": lambda moment: f"[{moment.replace(tzinfo=UTC).timestamp():.0f}]",
}
OPEN = {
    "Hugging Face's examples": pattern("%m/%d/%Y %H:%M:%S - INFO - __main__ -"),
    "AM": pattern("%m/%d/%Y %I:%M:%S %p"),
    "dots": pattern("%d.%m.%Y %H:%M:%S"),
    "brackets": pattern("[%d/%m/%Y %H:%M:%S,123]"),
}
WITHOUT_DATE = {
    "detectron2": pattern("[%m/%d %H:%M:%S d2.engine]:"),
    "vLLM": pattern("INFO %m-%d %H:%M:%S worker.py:8]"),
    "glog": pattern("I%m%d %H:%M:%S.123456 139 train.py:33]"),
    "syslog": pattern("%b %d %H:%M:%S node7 python[123]:"),
    "syslog, no leading zero": lambda moment: f"Mar  2 {moment:%H:%M:%S} node7 python[123]:",
    "time": pattern("[%H:%M:%S]"),
    "time with a comma": pattern("%H:%M:%S,123 |"),
    "rank before": pattern("[rank0]: %H:%M:%S"),
    "level before": pattern("INFO: %H:%M:%S -"),
}


def log_of(folder: Path, stamp: Callable[[datetime], str], moments: list[datetime] = MOMENTS) -> Path:
    path = folder / "train.log"
    path.write_text("".join(f"{stamp(moment)} step {n}/99 loss 0.5\n" for n, moment in enumerate(moments)))
    return path


def read(path: Path) -> Trials:
    assert (found := identify(Source.open(path))) and found[1].name == "training-log"
    return training_log.read(Source.open(path), ReadOptions(parse_zone("UTC")))


@pytest.mark.parametrize("stamp", DATED.values(), ids=list(DATED))
def test_moments(tmp_path: Path, stamp: Callable[[datetime], str]) -> None:
    assert read(log_of(tmp_path, stamp)).steps["time"].tolist() == [pd.Timestamp(one, tz="UTC") for one in MOMENTS]


@pytest.mark.parametrize("stamp", [*OPEN.values(), *WITHOUT_DATE.values()], ids=[*OPEN, *WITHOUT_DATE])
def test_without_a_known_day_the_time_between_lines_counts(tmp_path: Path, stamp: Callable[[datetime], str]) -> None:
    out = read(log_of(tmp_path, stamp))
    assert out.steps["time"].isna().all() and out.clock == "unknown"
    assert out.steps["elapsed_s"].tolist() == SECONDS
    assert any("day first or month first" in note for note in out.notes) == (stamp in OPEN.values())
    assert measure_steps(gd.load_run(log_of(tmp_path, stamp))).logged_s == 95


@pytest.mark.parametrize(
    ("moments", "form", "is_open"),
    [
        ([datetime(2026, 3, 13, 9), datetime(2026, 3, 13, 10)], "%m/%d/%Y %H:%M:%S", False),
        ([datetime(2026, 3, 13, 9), datetime(2026, 3, 13, 10)], "%d.%m.%Y %H:%M:%S", False),
        ([datetime(2026, 3, 2, 23), datetime(2026, 3, 3, 1)], "%m/%d/%Y %H:%M:%S", False),
        ([datetime(2026, 3, 2, 23), datetime(2026, 3, 3, 1)], "%d/%m/%Y %H:%M:%S", False),
        ([datetime(2026, 3, 3, 23), datetime(2026, 3, 3, 23, 1)], "%d/%m/%Y %H:%M:%S", False),
        ([datetime(2026, 3, 2, 22), datetime(2026, 3, 2, 23)], "%d/%m/%Y %H:%M:%S", True),
    ],
)
def test_a_log_may_tell_the_day_from_the_month(
    tmp_path: Path, moments: list[datetime], form: str, is_open: bool
) -> None:
    moments = [moments[0], *moments, moments[1]]
    out = read(log_of(tmp_path, pattern(form), moments))
    times = [pd.NaT] * 4 if is_open else [pd.Timestamp(one, tz="UTC") for one in moments]
    assert out.steps["time"].tolist() == times
    assert (out.otherwise is not None) == is_open


@pytest.mark.slow
def test_the_day_may_be_told_far_behind_the_head(tmp_path: Path) -> None:
    moments = [datetime(2026, 3, 12) + timedelta(seconds=n) for n in range(0, 172_800, 10)]
    steps = read(log_of(tmp_path, pattern("%d/%m/%Y %H:%M:%S"), moments)).steps
    assert steps["time"].iloc[-1] == pd.Timestamp(moments[-1], tz="UTC")


@pytest.mark.parametrize("form", ["%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S"])
@pytest.mark.parametrize("known", [True, False])
def test_telemetry_tells_the_day_from_the_month(tmp_path: Path, form: str, known: bool) -> None:
    log_of(tmp_path, pattern(form))
    day = START if known else START.replace(month=7)
    rows = (f"{day + timedelta(seconds=n):%Y/%m/%d %H:%M:%S.000}, 0, 90 %\n" for n in range(120))
    (tmp_path / "gpu.csv").write_text("timestamp, index, utilization.gpu [%]\n" + "".join(rows))
    run = gd.load_run(tmp_path, timezone="UTC")
    assert run.steps["time"].notna().all() == known
    if known:
        assert run.steps["time"].iloc[0] == pd.Timestamp(START, tz="UTC")
        order = "month first" if form.startswith("%m") else "day first"
        assert any(f"Dates were read {order}" in note for record in run.info.inputs for note in record.notes)


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (["[23:59:50] a", "[00:00:10] b", "[12:00:10] c"], [0, 20, 43_220]),
        (["[00:00:01] a", "[23:59:59] of another rank", "[00:00:02] b"], [0, -2, 1]),
        (["I1231 23:59:50 a", "I0101 00:00:10 b"], [0, 20]),
        (["Feb 28 23:59:50 a", "Mar  1 00:00:10 b"], [0, 20]),
        (["Feb 28 23:59:50 a", "Feb 29 00:00:10 b", "Mar  1 00:00:10 c"], [0, 20, 86_420]),
        (["[28/02 23:59:50 a", "[01/03 00:00:10 b"], [0, 20]),
    ],
)
def test_days_go_on(lines: list[str], seconds: list[float]) -> None:
    clock = LineClock.of(lines)
    moments = [datetime.fromisoformat(clock.stamp(line)) for line in lines]
    assert [(moment - moments[0]).total_seconds() for moment in moments] == seconds


@pytest.mark.parametrize(
    "line",
    [
        "1234567890123 tokens",
        "9876543210 tokens",
        "12:30 noon",
        "00:10<01:00",
        "eta 01:02:03",
        "I9999 09:00:40 a",
        "1/2",
    ],
)
def test_what_is_no_timestamp(line: str) -> None:
    assert LineClock.of([line]).stamp(line) == ""


def test_errors_of_a_log_without_a_year_have_no_moment(tmp_path: Path) -> None:
    path = log_of(tmp_path, pattern("I%m%d %H:%M:%S"))
    with path.open("a") as file:
        file.write("I0302 09:03:00 CUDA out of memory\n2026-03-02 09:03:01 CUDA out of memory\n")
    assert read(path).events["time"].tolist() == [pd.NaT, pd.Timestamp("2026-03-02 09:03:01", tz="UTC")]
