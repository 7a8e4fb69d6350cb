"""A DataFrame that somebody holds: every way to write its times, names and numbers, or a sentence on what is wrong."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest

import gpudiag as gd
from gpudiag.errors import ConfigError, InputError

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
TIMES = [START + timedelta(seconds=10 * k) for k in range(30)]
UTIL = [float(k % 7 * 15) for k in range(30)]


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"time": TIMES, "gpu": 0, "util_pct": UTIL} | columns)


def load(data: pd.DataFrame, **options: Any) -> gd.Run:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return gd.load_run(data, **({"timezone": "UTC"} | options))


def notes(run: gd.Run) -> str:
    return " ".join(run.info.inputs[0].notes)


def times_of(run: gd.Run) -> list[datetime]:
    return [stamp.to_pydatetime() for stamp in run.gpu["time"]]


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("kind", ["int64", "float64", "Int64", "object", "str"])
def test_the_unit_of_a_count_since_1970_is_told(scale: int, kind: str) -> None:
    counts = [int(moment.timestamp()) * scale for moment in TIMES]
    run = load(frame(time=pd.Series(counts, dtype=kind)), timezone="Asia/Taipei")
    assert times_of(run) == TIMES and run.info.inputs[0].clock == "utc" and not notes(run)


def test_a_count_keeps_its_fraction_and_its_gaps() -> None:
    counts = [moment.timestamp() + 0.25 for moment in TIMES]
    assert times_of(load(frame(time=counts)))[-1] == TIMES[-1] + timedelta(seconds=0.25)
    assert times_of(load(frame(time=[Decimal(str(count)) for count in counts])))[3] == TIMES[3] + timedelta(
        seconds=0.25
    )
    run = load(frame(time=[float("nan"), *counts[1:]]))
    assert len(run.gpu) == 29 and run.info.inputs[0].problems[0].kind == "row without a time"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([10.0 * k for k in range(30)], r"holds 0\.0, which counts from an unknown start; expected .* since 1970"),
        (["08:00:00"] * 30, "holds '08:00:00', a time of day without its date; expected"),
        (["yesterday"] * 30, "holds 'yesterday', no known form of time; expected datetimes, text such as"),
        ([True] * 30, "holds True, no known form of time"),
        (["2026-03-01 08:00:00", "01/03/2026 08:00:00"] * 15, "holds '2026-.*' and '01/03/.*, which are of two forms"),
        ([1772352000.0, 1772352000000.0, 1772352000.0] * 10, r"holds 1772352000\.0 and .*, which are of two forms"),
        ([START, START.replace(tzinfo=None)] * 15, "holds 2026-.* beside times with other zones or none"),
        (["2026-03-01", "2026-03-01 08:00+00"] * 15, "holds '2026-.*' and '2026-.*', which are of two forms"),
        ([timedelta(1)] * 30, "holds 1 day.*, no known form of time"),
    ],
)
def test_times_that_cannot_be_told_are_refused(given: list[object], said: str) -> None:
    with pytest.raises(InputError, match=f"^DataFrame: column 'time' {said}") as error:
        load(frame(time=given))
    assert "pandas.to_datetime" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%Y-%m-%dT%H:%M:%S.5", "%a %b %e %H:%M:%S %Y"],
)
def test_text_without_a_zone_is_of_the_zone_of_the_run(form: str) -> None:
    run = load(frame(time=[moment.strftime(form) for moment in TIMES]), timezone="Asia/Taipei")
    assert times_of(run)[7] == TIMES[7] - timedelta(hours=8) + timedelta(seconds=0.5 if form.endswith(".5") else 0)


@pytest.mark.parametrize("zone", ["Z", "+00:00", "+00", " UTC"])
def test_text_with_a_zone_is_utc(zone: str) -> None:
    run = load(frame(time=[f"{moment:%Y-%m-%d %H:%M:%S}{zone}" for moment in TIMES]), timezone="Asia/Taipei")
    assert times_of(run) == TIMES and run.info.inputs[0].clock == "utc"


def test_an_offset_of_hours_alone_may_change() -> None:
    texts = [f"{at + timedelta(hours=k % 2):%Y-%m-%d %H:%M:%S}+0{k % 2}" for k, at in enumerate(TIMES)]
    assert times_of(load(frame(time=texts), timezone="Asia/Taipei")) == TIMES


def test_datetimes_of_several_zones_are_utc() -> None:
    east = timezone(timedelta(hours=8))
    mixed = pd.Series([at.astimezone(east) if k % 2 else at for k, at in enumerate(TIMES)], dtype=object)
    assert times_of(load(frame(time=mixed))) == TIMES


def test_day_and_month_in_doubt_are_said() -> None:
    run = load(frame(time=[f"{moment:%d/%m/%Y %H:%M:%S}" for moment in TIMES]))
    assert "nothing in the log decides; month first was assumed" in notes(run)
    assert times_of(run)[0] == datetime(2026, 1, 3, 8, tzinfo=UTC)


@pytest.mark.parametrize("seed", range(4))
def test_day_and_month_are_told_in_any_order_of_the_rows(seed: int) -> None:
    """Three nights in March: month first they would be three months."""
    nights = [START + timedelta(hours=2 * k) for k in range(30)]
    rows = frame(time=[f"{moment:%d/%m/%Y %H:%M:%S}" for moment in nights]).sample(frac=1, random_state=seed)
    run = load(rows)
    assert times_of(run) == nights and "read day first" in notes(run)


def test_a_few_times_of_another_form_are_counted() -> None:
    texts = [f"{moment:%Y-%m-%d %H:%M:%S}" for moment in TIMES]
    run = load(frame(time=[*texts[:27], "soon", "N/A", ""]))
    found = {problem.kind: problem.count for problem in run.info.inputs[0].problems}
    assert len(run.gpu) == 27 and found == {"timestamp that is no date": 1, "row without a time": 3}


@pytest.mark.parametrize("kind", ["int64", "float64", "Float64", "object", "str"])
def test_a_gpu_that_a_gap_made_a_fraction_has_its_number(kind: str) -> None:
    gpus = pd.Series([0.0, 10.0] * 15)
    assert list(load(frame(gpu=gpus.astype(kind))).gpus["gpu"]) == ["0", "10"]
    gapped = load(frame(gpu=gpus.astype("Float64" if kind == "int64" else kind).mask(gpus.index == 3)))
    assert list(gapped.gpus["gpu"]) == ["0", "10"] and len(gapped.gpu) == 29


def test_names_of_gpus_stay() -> None:
    assert list(load(frame(gpu=["gpu1.0", "0.5", "a"] * 10)).gpus["gpu"]) == ["0.5", "a", "gpu1.0"]


def test_milliwatts_are_watts_as_in_a_table_of_text() -> None:
    run = load(frame(power_w=[250_000.0 + k for k in range(30)]))
    assert run.gpu["power_w"].tolist() == pytest.approx([250.0 + k / 1000 for k in range(30)])
    assert "its numbers are milliwatts" in notes(run)


def test_shares_are_refused_since_they_may_be_percent_of_an_idle_gpu() -> None:
    """A frame may hold means, where a log of a driver holds whole percent."""
    time = pd.date_range("2026-03-01", periods=30, freq="10s", tz="UTC")
    given = pd.DataFrame({"time": time, "gpu": 0, "util_pct": [0.0, 0.9, 0.45] * 10})
    with pytest.raises(InputError, match=r"'util_pct' goes from 0 to 0\.9, .*multiply it by 100, or round it"):
        gd.load_run(given)
    assert gd.load_run(given.assign(util_pct=100 * given["util_pct"])).gpu["util_pct"].max() == 90
    assert gd.load_run(given.assign(util_pct=given["util_pct"].round())).gpu["util_pct"].max() == 1


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("util_pct", [0.0] * 20 + [730.0] * 6 + [50.0] * 4, r"holds 730\.0, and 6 of its 10 values other than 0 lie"),
        ("util_pct", [0.0] * 20 + [-20.0] * 10, r"holds -20\.0, .* outside 0 to 100; expected numbers in %: convert"),
        (
            "mem_used_mib",
            [3.0e10] * 30,
            r"holds 30000000000\.0, .* 0 to 100,000,000; expected numbers in MiB: convert it, or leave it",
        ),
        ("util_pct", ["80 %"] * 30, r"holds '80 %'; expected numbers in %, without the unit\.$"),
        ("pstate", ["P0"] * 30, r"holds 'P0'; expected whole numbers\.$"),
        ("pstate", [0.5] * 30, r"holds 0\.5; expected whole numbers\.$"),
        ("power_w", [[1]] * 30, r"holds \[1\]; expected numbers in W, without the unit\.$"),
    ],
)
def test_a_value_that_its_column_cannot_have(column: str, values: list[object], said: str) -> None:
    with pytest.raises(InputError, match=f"^DataFrame: column '{column}' {said}"):
        load(frame(**{column: values}))


def test_a_column_that_is_there_twice() -> None:
    with pytest.raises(InputError, match=r"^DataFrame: has several columns 'util_pct'; expected one: drop"):
        load(pd.concat([frame(), frame()[["util_pct"]]], axis=1))
    noted = pd.DataFrame([["a", "b"]] * 30, columns=["note", "note"])
    assert load(pd.concat([frame(), noted], axis=1)).gpu["util_pct"].tolist() == UTIL


def test_unknown_values_stay_unknown() -> None:
    words = load(frame(power_w=["250.5", "[N/A]", "nan", None, ""] * 6)).gpu["power_w"]
    assert words.isna().sum() == 24 and words[0] == 250.5
    assert "power_limit_w" not in load(frame(power_limit_w=-1)).gpu
    few = load(frame(util_pct=[*UTIL[:28], 730.0, -1.0]))
    assert np.isnan(few.gpu["util_pct"].iloc[-2:]).all()
    assert [(p.kind, p.count) for p in few.info.inputs[0].problems] == [("util_pct out of bounds", 2)]


def test_the_run_does_not_change_with_the_frame() -> None:
    given = frame(gpu="0")
    run = load(given)
    given.loc[3, "util_pct"] = 99.0
    assert run.gpu["util_pct"].tolist() == UTIL
    run.gpu.loc[4, "util_pct"] = 1.0
    assert run.gpu["util_pct"][4] == 1.0 and given["util_pct"][4] == UTIL[4]


def trials(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"trial": [0, 1, 2], "state": ["COMPLETE", "COMPLETE", "RUNNING"]} | columns)


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_trials_in_counts_since_1970(scale: int) -> None:
    start = [int(moment.timestamp()) * scale for moment in TIMES[:3]]
    end = [float(start[1]), float(start[2]), float("nan")]
    run = load(trials(start=start, end=end, gpu=[0.0, 1.0, float("nan")]), timezone="Asia/Taipei")
    assert run.trials["start"].tolist() == TIMES[:3] and run.trials["end"].tolist()[:2] == TIMES[1:3]
    assert pd.isna(run.trials["end"][2]) and run.trials["gpu"].tolist()[:2] == ["0", "1"]


def test_trials_in_text_are_read_one_way_in_both_columns() -> None:
    """The starts alone leave day and month open; the ends, of which one is a 13th, do not."""
    run = load(trials(start=["12/03/2026 08:00:00"] * 3, end=["12/03/2026 09:00:00", "13/03/2026 09:00:00", None]))
    assert run.trials["start"].tolist() == [datetime(2026, 3, 12, 8, tzinfo=UTC)] * 3
    assert run.trials["end"].tolist()[:2] == [datetime(2026, 3, day, 9, tzinfo=UTC) for day in (12, 13)]
    dated = load(trials(start=["2026-03-12", "2026-03-12", "2026-03-13"]))
    assert dated.trials["start"].tolist() == [datetime(2026, 3, day, tzinfo=UTC) for day in (12, 12, 13)]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"start": [5, 6, 7]}, "column 'start' holds 5, which counts from an unknown start"),
        ({"trial": [0, 1, None]}, "column 'trial' has rows without a value; expected a whole number in each"),
        ({"trial": [0, 1.5, 2]}, r"column 'trial' holds 1\.5; expected whole numbers\."),
        ({"trial": ["0", "1", "x2"]}, r"column 'trial' holds 'x2'; expected whole numbers\."),
        ({"value": ["0.5", "best", None]}, r"column 'value' holds 'best'; expected numbers\."),
    ],
)
def test_trials_with_a_value_that_their_column_cannot_have(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^DataFrame: {said}"):
        load(trials(**columns))


def samples_of_a_tool() -> pd.DataFrame:
    """Without times, under the names of nvidia-smi."""
    return pd.DataFrame({"index": 0, "utilization.gpu": UTIL, "memory.used": 900, "memory.total": 81559})


ZONED = pd.DatetimeIndex(TIMES)
PLAIN = ZONED.tz_localize(None)


@pytest.mark.parametrize(
    "held",
    [
        samples_of_a_tool().set_index(PLAIN),
        samples_of_a_tool().set_index(ZONED.tz_convert("Asia/Taipei")),
        samples_of_a_tool().set_index(PLAIN.rename("when")),
        samples_of_a_tool().set_index(PLAIN.rename("index")).drop(columns="index"),
        samples_of_a_tool().set_index(PLAIN.to_period("s")),
        samples_of_a_tool().set_index(pd.Index([f"{moment:%Y-%m-%d %H:%M:%S}" for moment in TIMES])),
        samples_of_a_tool().set_axis(pd.Index([moment.replace(tzinfo=None) for moment in TIMES], dtype=object)),
        samples_of_a_tool().assign(timestamp=PLAIN).set_index(["index", "timestamp"]),
        samples_of_a_tool().assign(timestamp=PLAIN).set_index("timestamp"),
        samples_of_a_tool().set_index([samples_of_a_tool()["index"], PLAIN]),
        samples_of_a_tool().assign(timestamp=PLAIN).set_index(PLAIN + pd.Timedelta(days=900)),
        pd.DataFrame({"util_pct": UTIL, "gpu": 0}, index=PLAIN),
        pd.DataFrame({"util_pct": UTIL, "gpu": 0, "time": PLAIN}, index=pd.RangeIndex(30, name="index")),
    ],
    ids=["unnamed", "zoned", "other name", "called index", "periods", "text", "objects", "levels", "named",
         "unnamed level", "beside a column", "own names", "counted"],
)  # fmt: skip
def test_times_in_the_index_are_the_times_of_the_rows(held: pd.DataFrame) -> None:
    before = held.copy()
    run = load(held)
    assert times_of(run) == TIMES and run.gpu["util_pct"].tolist() == UTIL and set(run.gpu["gpu"]) == {"0"}
    pd.testing.assert_frame_equal(held, before)


def test_an_index_of_time_since_the_start_keeps_its_steps() -> None:
    run = load(samples_of_a_tool().set_index(pd.to_timedelta(np.arange(30) * 10, "s")))
    assert run.gpu["time"].diff().dropna().dt.total_seconds().eq(10).all()


def test_an_index_that_counts_rows_says_nothing() -> None:
    assert len(load(frame().set_index(pd.Index(range(100, 130)))).gpu) == 30
    with pytest.raises(InputError, match="holds no row"):
        load(samples_of_a_tool().iloc[:0])


def study() -> optuna.Study:
    """Every state, and a trial of each."""
    made = optuna.create_study()
    for state, value in [("COMPLETE", 0.5), ("PRUNED", None), ("FAIL", None)]:
        moments = {"datetime_start": datetime(2026, 3, 1, 8), "datetime_complete": datetime(2026, 3, 1, 9)}
        made.add_trial(
            optuna.trial.FrozenTrial(
                number=0,
                trial_id=0,
                state=optuna.trial.TrialState[state],
                value=value,
                params={"lr": 0.1},
                distributions={"lr": optuna.distributions.FloatDistribution(0, 1)},
                user_attrs={},
                system_attrs={},
                intermediate_values={},
                **moments,
            )
        )
    made.ask({"lr": optuna.distributions.FloatDistribution(0, 1)})
    made.enqueue_trial({"lr": 0.2})
    return made


NAMED = ["COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING"]


@pytest.mark.slow
def test_states_are_names_members_or_optunas_numbers() -> None:
    table = study().trials_dataframe()
    members = [optuna.trial.TrialState[name] for name in NAMED]
    own = table.rename(columns={"number": "trial", "datetime_start": "start", "datetime_complete": "end"})
    own = own[["trial", "start", "end"]]
    for states in (
        NAMED,
        members,
        pd.Series(members, dtype=object),
        pd.Series([int(m) for m in members], dtype="Int64"),
    ):
        for given in (table, own):
            run = load(given.assign(state=states), timezone="UTC")
            assert run.trials["state"].tolist() == NAMED
            assert ("numbers" in notes(run)) == (given.assign(state=states)["state"].dtype.kind == "i")


@pytest.mark.parametrize(
    ("states", "said"),
    [([1, 1, 1, 0, 0], "state 1, COMPLETE, has no value"), ([0, 2, 3, 0, 4], "state 0, RUNNING, has a value"),
     ([1, 2, 0, 0, 4], "state 0, RUNNING, has an end"), ([3, 3, 3, 0, 0], "state 3, FAIL, has a value"),
     ([1, 2, 3, 0, 7], "there is no 7"), ([-1, 2, 3, 0, 4], "there is no -1")],
)  # fmt: skip
def test_numbers_that_are_not_optunas_are_refused(states: list[int], said: str) -> None:
    with pytest.raises(InputError, match=f"numbers that are not those of Optuna's TrialState .*{said}"):
        load(study().trials_dataframe().assign(state=states))


@pytest.mark.slow
def test_trials_by_their_number_in_lazy_tables_and_as_rows() -> None:
    table = study().trials_dataframe()
    whole = load(table).trials
    rows = table.astype(object).where(table.notna(), None).to_dict("records")
    lazy = pl.from_pandas(table.drop(columns="duration")).lazy()
    for held in (table.set_index("number"), lazy, rows, [table], (table,)):
        assert load(held).trials["state"].tolist() == NAMED
        read = gd.load_run(trials=held, timezone="UTC").trials
        assert read[["trial", "start", "end"]].equals(whole[["trial", "start", "end"]])
    assert len(gd.load_run(telemetry=frame().to_dict("records")).gpu) == 30
    with pytest.raises(ConfigError, match="but got dict"):
        gd.load_run({"time": TIMES})
