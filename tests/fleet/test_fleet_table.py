"""Totals, groups and causes over made-up rows, recomputed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.errors import ConfigError
from gpudiag.fleets.groups import GROUPS
from gpudiag.fleets.table import FleetTable
from gpudiag.fleets.touched import FAILED, PRUNED, RECORD
from gpudiag.fleets.weeks import week_of
from gpudiag.report._render.blocks import Number, TableBlock
from gpudiag.report.fleet.document import CELLS, Cause, FailedTrials, RunRow
from gpudiag.report.fleet.sections import causes
from gpudiag.rules import RULES

SECONDS = st.floats(0, 1e7, allow_nan=False)


def row(name: str, user: str = "u", seconds: dict[str, float] | None = None, **more: object) -> RunRow:
    cells = dict.fromkeys(CELLS, 0.0) | (seconds or {})
    held = {f"{cell}_gpu_s": value for cell, value in cells.items()}
    fixed = {"gpu_s": math.fsum(cells.values()), "inputs": name, "start": "2026-03-02T10:00:00+00:00"}
    return RunRow(name, f"/{name}", "diagnosed", user=user, **{**fixed, **held, **more})  # type: ignore[arg-type]


rows = st.lists(
    st.builds(
        row,
        st.uuids().map(str),
        user=st.sampled_from(["a", "b", ""]),
        seconds=st.dictionaries(st.sampled_from(CELLS), SECONDS),
        util_pct=st.none() | st.floats(0, 100),
        start=st.none() | st.dates().map(lambda day: f"{day.isoformat()}T00:00:00+00:00"),
        failed_gpu_s=st.none() | SECONDS,
    ),
    max_size=12,
)


@pytest.mark.slow
@given(rows, st.sampled_from(sorted(GROUPS)))
@settings(max_examples=60, deadline=None)
def test_groups_add_up_to_the_total_and_cells_to_the_time(held: list[RunRow], group: str) -> None:
    table = FleetTable.of(held)
    parts = table.by(group)
    assert sum(one.n_runs for one in parts) == table.total.n_runs == len(held)
    assert math.fsum(one.gpu_s for one in parts) == pytest.approx(table.total.gpu_s, rel=1e-12, abs=1e-6)
    for one in parts:
        assert one.gpu_s == math.fsum(one.cells.values())
        assert one.idle_gpu_s <= one.gpu_s * (1 + 1e-12)
        assert math.isnan(one.util_pct) or 0 <= one.util_pct <= 100 + 1e-9
    assert len(table.frame()) == len(held)
    assert repr(table) and table.to_json()


def test_the_mean_weighs_runs_by_their_observed_time() -> None:
    total = FleetTable.of(
        [
            row("a", seconds={"busy": 300.0, "unobserved": 600.0}, util_pct=90.0),
            row("b", seconds={"stalled": 100.0}, util_pct=10.0),
            row("c", seconds={"busy": 50.0}),
        ]
    ).total
    assert total.util_pct == pytest.approx((300 * 90 + 100 * 10) / 400)


def cause(rule: str, lost: float | None, parent: str | None = None) -> Cause:
    return Cause(rule, rule.upper(), "warning", lost, parent)


def test_causes_are_ranked_by_what_they_cost_where_they_cost_most() -> None:
    table = FleetTable.of(
        [
            row("a", "x", causes=(cause("slow", 3.0), cause("idle", 2.0)), top_cause="slow", recoverable_gpu_h=3.0),
            row("b", "x", causes=(cause("idle", 2.5),), top_cause="idle", recoverable_gpu_h=2.5),
            row("c", "y", causes=(cause("idle", 1.0),), top_cause="idle", recoverable_gpu_h=1.0),
            row("d", "y", causes=(cause("odd", None),), top_cause="odd"),
        ]
    )
    found = {one.rule: one for one in table.causes}
    assert [one.rule for one in table.causes] == ["idle", "slow", "odd"]
    assert (found["idle"].lost_gpu_h, found["idle"].n_runs, found["idle"].n_top) == (3.5, 3, 2)
    assert found["idle"].worst_run == "b" and found["idle"].offenders == (("x", 2),)
    assert math.fsum(one.lost_gpu_h for one in table.causes) == table.total.recoverable_gpu_h == 6.5


def test_a_known_loss_comes_before_pruned_trials_of_which_nobody_knows_what_was_lost() -> None:
    """0.5 of 20 GPU-h are known to be lost; the pruned trials of another run took 9, which may all have been of use."""
    table = FleetTable.of(
        [
            row("a", causes=(cause("pruning-rate-high", None),), top_cause="pruning-rate-high",
                pruned_gpu_s=9 * 3600.0, seconds={"busy": 10 * 3600.0}),
            row("b", causes=(cause("loader-slow", 0.5),), top_cause="loader-slow", recoverable_gpu_h=0.5,
                seconds={"busy": 10 * 3600.0}),
            row("c", causes=(cause("io-wait", 0.1),), top_cause="io-wait", recoverable_gpu_h=0.1,
                seconds={"busy": 1.0}),
        ]
    )  # fmt: skip
    assert [one.rule for one in table.causes] == ["loader-slow", "pruning-rate-high", "io-wait"], (
        "0.1 is next to nothing"
    )
    assert table.document.headline.sentences[1].startswith("LOADER-SLOW. It cost at least 0.5 GPU-h")


def test_a_cost_that_counts_for_another_cause_is_not_called_unknown() -> None:
    both = (cause("slow", 3.0), cause("idle", 2.0), cause("odd", None))
    held = [row("a", causes=both, top_cause="slow", recoverable_gpu_h=3.0)]
    (table,) = (one for one in causes(FleetTable.of(held).document) if isinstance(one, TableBlock))
    costs = {str(cells[0]): cells[1] for cells in table.rows}
    assert costs == {"SLOW": Number("3 GPU-h"), "IDLE": Number("counted elsewhere"), "ODD": Number("–")}
    assert "counted elsewhere: known" in table.caption
    (table,) = (one for one in causes(FleetTable.of([replace(held[0], causes=both[:1])]).document))  # type: ignore[assignment]
    assert "elsewhere" not in table.caption


def test_failures_add_up_by_kind_and_name_where_most_are() -> None:
    table = FleetTable.of(
        [
            row("a", "x", failures=(FailedTrials("oom", 4, 100.0), FailedTrials("nan", 1, None)), project="p"),
            row("b", "y", failures=(FailedTrials("oom", 2, 50.0),), project="q"),
            row("c", "y", failures=(FailedTrials("unknown", 9, None),), project="q"),
        ]
    )
    held = {one.kind: one for one in table.divided_by("user").failures}
    assert [*held] == ["oom", "unknown", "nan"]
    oom = held["oom"]
    assert (oom.n_trials, oom.n_runs, oom.gpu_s, oom.groups) == (6, 2, 150.0, (("x", 4), ("y", 2)))
    assert held["unknown"].gpu_s is None and table.failures[0].groups == (("p", 4), ("q", 2))
    text = table.to_markdown()
    assert "out of memory" in text and "not a number (NaN)" in text and "0.04 GPU-h" in text


def test_money_is_added_up_by_currency_and_energy_by_group() -> None:
    table = FleetTable.of(
        [
            row("a", "x", cost=1.5, currency="USD", energy_kwh=2.0, seconds={"busy": 1.0}),
            row("b", "x", cost=2.25, currency="EUR", seconds={"busy": 1.0}),
            row("c", "x", cost=4.0, currency="USD", energy_kwh=0.5, seconds={"busy": 1.0}),
            row("d", "y", seconds={"busy": 1.0}, gpu_s=None),
        ]
    )
    x, y = table.by("user")
    assert x.cost == {"EUR": 2.25, "USD": 5.5} and x.n_priced == 3 and x.energy_kwh == 2.5
    assert y.cost == {} and y.n_without_telemetry == 1
    assert "2.25 EUR + 5.50 USD" in table.divided_by("user").to_markdown()


def test_the_same_inputs_count_once() -> None:
    table = FleetTable.of([row("a", inputs="1"), row("b", inputs="1"), row("c", inputs=""), row("d", inputs="")])
    assert [one.status for one in table.rows] == ["diagnosed", "counted already", "diagnosed", "diagnosed"]


def test_anonymous_rows_keep_numbers_alone() -> None:
    named = row("secret/run", "ann", seconds={"busy": 5.0}, host="node7", project="moon", headline="secret")
    hidden = FleetTable.of([named, row("other")], "secret-fleet").anonymous()
    for word in ("secret", "ann", "node7", "moon"):
        assert word not in hidden.to_json() and word not in hidden.to_markdown()
    assert hidden.total.gpu_s == 5.0 and hidden.rows[0].user == "user 1"


@pytest.mark.parametrize(
    ("start", "end", "source", "counted_h"),
    [
        ("2026-03-02T02:00:00.5+00:00", "2026-03-02T03:00:00.5+00:00", "/copy", 1),  # 8 h earlier: another zone
        ("2026-03-02T02:00:00.7+00:00", "2026-03-02T03:00:00.7+00:00", "/copy", 2),  # zones are no 0.2 s apart
        ("2026-03-02T02:00:00.5+00:00", "2026-03-02T03:10:00.5+00:00", "/copy", 2),  # of another length
        ("2026-03-04T10:00:00.5+00:00", "2026-03-04T11:00:00.5+00:00", "/copy", 2),  # two days later
        ("2026-03-02T02:00:00.5+00:00", "2026-03-02T03:00:00.5+00:00", "/first", 2),  # sessions of one place
    ],
)
def test_one_recording_read_in_two_zones_counts_once(start: str, end: str, source: str, counted_h: float) -> None:
    first = row("first", telemetry=("t",), seconds={"busy": 3600.0}, start="2026-03-02T10:00:00.5+00:00")
    first = replace(first, end="2026-03-02T11:00:00.5+00:00")
    copy = replace(row("copy", telemetry=("t",), seconds={"busy": 3600.0}, start=start), end=end, source=source)
    assert FleetTable.of([first, copy]).total.gpu_s == 3600.0 * counted_h


def test_an_anonymous_report_still_says_what_is_not_counted() -> None:
    """Of two runs of the same telemetry the second is none without telemetry, also where its reason named the first."""
    twice = [
        row("first", telemetry=("t",), seconds={"busy": 7200.0}),
        row("again", telemetry=("t",), seconds={"busy": 7200.0}),
    ]
    failed = RunRow("secret", "/secret", "not diagnosed", reason="/secret/gpu.csv: is empty")
    table = FleetTable.of([*twice, row("bare", gpu_s=None), failed]).anonymous()
    reasons = {one.run: one.reason for one in table.rows}
    assert reasons["run 1"] == "its telemetry is that of another run, where its GPU time counts"
    assert reasons["run 4"] == "hidden, since it may hold names" and "secret" not in table.to_json()
    text = table.to_markdown()
    assert "1 run recorded no GPU" in text and "1 run could not be diagnosed" in text
    assert "The GPU time of 1 run counts with other telemetry of the same GPUs" in text
    assert "1 run held GPUs for 2 GPU-h" in text


def test_only_what_is_known_has_a_column() -> None:
    table = FleetTable.of([row("a", "x", seconds={"busy": 3600.0}), row("b", "y", seconds={"busy": 3600.0})])
    assert "Failed trials" not in table.to_markdown() and "Lost at least" not in table.to_markdown()
    known = FleetTable.of([row("a", "x", seconds={"busy": 3600.0}, failed_gpu_s=360.0, recoverable_gpu_h=0.1)])
    assert "Failed trials" in known.to_markdown() and "Lost at least" in known.to_markdown()


def test_a_fleet_of_broken_runs_says_that_and_nothing_of_a_cluster() -> None:
    text = FleetTable.of([RunRow("a", "/a", "not diagnosed", reason="is empty")]).to_markdown()
    assert text.count("The run could not be diagnosed.") == 1 and "cluster" not in text


def test_models_are_no_number_of_gpus_and_times_name_their_zone() -> None:
    held = [row(name, gpu_model=name, end="2026-03-02T11:00:00+00:00") for name in "abcd"]
    text = FleetTable.of(held).to_markdown()
    assert "GPU models: 4" in text and "(UTC): 2026-03-02 10:00:00 to" in text


def test_an_unknown_group_is_said_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="'user'"):
        FleetTable.of([]).by("usr")


def test_weeks_are_those_of_the_calendar() -> None:
    assert week_of("2026-01-01T00:00:00+00:00") == "2026-W01" and week_of("2027-01-01T00:00:00Z") == "2026-W53"


def test_an_empty_fleet_says_so() -> None:
    text = FleetTable.of([]).to_markdown()
    assert "nothing can be said about their time" in text


def month() -> FleetTable:
    """Three weeks of two hosts, the second week without a run."""
    held = [("a", "h1", "2026-03-02", 90.0), ("b", "h2", "2026-03-03", 20.0), ("c", "h1", "2026-03-16", 60.0)]
    return FleetTable.of(
        [
            row(
                name,
                host=host,
                start=f"{day}T10:00:00+00:00",
                end=f"{day}T20:00:00+00:00",
                seconds={"busy": 3600.0, "stalled": 1800.0},
                util_pct=pct,
            )
            for name, host, day, pct in held
        ]
    )


@pytest.mark.slow
def test_a_week_without_runs_has_its_place_in_the_figure() -> None:
    picture = month()._draw("weeks")
    assert picture is not None
    labels = [text.get_text() for text in picture.figure.axes[1].get_xticklabels()]
    assert labels == ["2026-W10", "2026-W11", "2026-W12"]
    assert "3 GPU-h in 2026-W10, 1.5 GPU-h in 2026-W12" in picture.alt and "GPU time" in picture.svg()


def test_hosts_and_days_are_a_heat_map_with_holes() -> None:
    picture = month()._draw("hosts")
    assert picture is not None and "from 20 % on h2 to 75 % on h1" in picture.alt
    image = picture.figure.axes[0].images[0].get_array()
    assert image.shape == (2, 15) and image[0, 0] == 90.0 and image[1, 1] == 20.0
    assert image.mask.sum() == 2 * 15 - 3


def test_a_year_of_hosts_is_drawn_by_weeks() -> None:
    """Two hours at 90 % on a Tuesday and one at 30 % on the Friday after it; and a run in December."""
    held = [("2026-01-06", 2, 90.0), ("2026-01-09", 1, 30.0), ("2026-12-01", 1, 50.0)]
    table = FleetTable.of(
        row(day, host="h", start=f"{day}T10:00:00+00:00", end=f"{day}T{10 + hours}:00:00+00:00", util_pct=pct,
            seconds={"busy": 3600.0 * hours})
        for day, hours, pct in held
    )  # fmt: skip
    frame = table._drawn["hosts"]
    assert frame is not None and frame.columns[0] == "2026-01-05" and frame.shape == (1, 48)
    assert frame.iloc[0].dropna().tolist() == pytest.approx([(2 * 90 + 30) / 3, 50.0])
    picture = table._draw("hosts")
    assert picture is not None and "over 48 weeks" in picture.alt


def test_hosts_that_nobody_names_are_no_figure() -> None:
    named = month()
    unnamed = FleetTable.of([replace(one, host="") for one in named.rows])
    assert named._draw("hosts") is not None and unnamed._draw("hosts") is None


@pytest.mark.slow
def test_many_weeks_have_few_labels_under_their_utilization() -> None:
    weeks = [f"{date(2026, 1, 5) + timedelta(weeks=k)}T10:00:00+00:00" for k in range(40)]
    rows = [row(f"w{k}", start=start, seconds={"busy": 3600.0}, util_pct=50.0) for k, start in enumerate(weeks)]
    picture = FleetTable.of(rows)._draw("weeks")
    assert picture is not None
    use, bars = picture.figure.axes
    assert len(bars.get_xticks()) == 10 and list(use.lines[0].get_ydata()) == [50.0] * 40


def test_one_week_and_one_day_are_no_figure() -> None:
    held = FleetTable.of([row("a", seconds={"busy": 1.0}, util_pct=5.0, end="2026-03-02T11:00:00+00:00")])
    assert held._draw("weeks") is None and held._draw("hosts") is None


@pytest.mark.slow
def test_the_document_fits_its_schema() -> None:
    import json

    import jsonschema

    from gpudiag.schemas import schema

    for table in (month(), month().divided_by("user"), FleetTable.of([])):
        jsonschema.validate(json.loads(table.to_json()), schema("fleet-1"))


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        ([("well", 80.0, 36.0)], "✓ The GPUs were well used (80 % on average)."),
        ([("poorly", 10.0, 1.0), ("well", 80.0, 35.0)], "✓ The GPUs were well used (78 % on average)."),
        (
            [("poorly", 10.0, 2.0), ("well", 90.0, 34.0), ("unknown", None, 0.0)],
            "✓ The GPUs were well used (86 % on average), but 1 of 2 runs used them poorly.",
        ),
        ([("poorly", 10.0, 1.0), ("poorly", 20.0, 1.0)], "▲ The GPUs were poorly used (15 % on average)."),
        ([("unused", 0.0, 2.0)], "■ The GPUs were not used (0 % on average)."),
        ([("unknown", None, 0.0)], "? The run recorded no GPU."),
    ],
)
def test_the_tone_of_the_title_is_that_of_the_evidence(runs: list[tuple[str, float, float]], line: str) -> None:
    """Runs with less than a twentieth of the GPU time are no part of it."""
    rows = [
        row(f"{at}", seconds={"busy": 3600 * hours} if hours else None, use=use, util_pct=util)
        if hours
        else row(f"{at}", use=use, gpu_s=None)
        for at, (use, util, hours) in enumerate(runs)
    ]
    assert f"**{line}**" in FleetTable.of(rows).to_markdown()


def test_little_observed_time_is_part_of_the_title() -> None:
    held = [row("a", seconds={"busy": 3600.0, "unobserved": 3 * 3600.0}, util_pct=80.0)]
    said = FleetTable.of(held).document.headline.verdict
    assert said == "The GPUs were well used in the 25 % of their time that was observed (80 % on average)."


def test_the_first_screen_answers_whose_and_what_first() -> None:
    """ann has 6 of 10 GPU-h and bob 3; loader faults cost 2 GPU-h; a stuck sensor is the most common finding."""
    slow = cause("loader-slow", 2.0)
    held = [
        row("a", "ann", {"busy": 6 * 3600.0}, causes=(slow,), top_cause="loader-slow", recoverable_gpu_h=2.0),
        row("b", "bob", {"idle_no_trial": 3 * 3600.0}, causes=(cause("sensor-stuck", None),)),
        row("c", "", {"unobserved": 3600.0}, causes=(cause("sensor-stuck", None),)),
    ]
    text = FleetTable.of([replace(one, util_pct=70.0) for one in held]).to_markdown().partition("\n## ")[0]
    assert "**Where it went:** Of the GPU time, 60 % was busy, 30 % was idle and 10 % was not observed." in text
    assert "**Whose:** ann 60 % and bob 30 %." in text
    assert "**Mend first:** LOADER-SLOW. It cost at least 2 GPU-h, 20 % of all, in 1 run. Start with a." in text
    assert "**Most common:** SENSOR-STUCK (2 of 3 runs)." in text
    assert "**2 GPU-h** lost at least" in text


def test_a_cause_of_unknown_cost_ranks_by_what_it_is_about() -> None:
    """Of 100 GPU-h: 16 in pruned trials, 40 lost, 0.1 lost, runs of 80 GPU-h concerned; a note and the record last."""
    held = [
        row("a", seconds={"busy": 20 * 3600.0}, pruned_gpu_s=16 * 3600.0, causes=(cause("pruning-rate-high", None),)),
        row("b", seconds={"busy": 80 * 3600.0}, recoverable_gpu_h=40.0, top_cause="idle-without-trial"),
        row("c", recoverable_gpu_h=0.1, top_cause="gpu-unused", causes=(cause("gpu-unused", 0.1),)),
    ]
    light = replace(cause("memory-headroom", None), severity="note")
    more = (cause("idle-without-trial", 40.0), cause("launch-bound", None), cause("sensor-stuck", None), light)
    table = FleetTable.of([held[0], replace(held[1], causes=more), held[2]])
    assert [(one.rule, one.touched, one.touched_gpu_h) for one in table.causes] == [
        ("idle-without-trial", "runs", None),
        ("pruning-rate-high", "pruned trials", 16.0),
        ("launch-bound", "runs", 80.0),
        ("gpu-unused", "runs", None),
        ("memory-headroom", "runs", 80.0),
        ("sensor-stuck", "", None),
    ]
    (shown,) = (one for one in causes(table.document) if isinstance(one, TableBlock))
    numbers = {str(cells[0]): cells[1:3] for cells in shown.rows}
    assert shown.columns[1:3] == ("Lost at least", "Only touched")
    assert numbers["IDLE-WITHOUT-TRIAL"] == (Number("40 GPU-h"), "–")
    assert numbers["PRUNING-RATE-HIGH"] == (Number("–"), "16 GPU-h of pruned trials")
    assert numbers["LAUNCH-BOUND"] == (Number("–"), "80 GPU-h of runs")
    assert "no estimate of a loss" in shown.caption
    assert table.total.recoverable_gpu_h == 40.1


def test_a_symptom_touches_nothing_of_its_own() -> None:
    both = (cause("foreign-load", None), cause("launch-bound", None, parent="foreign-load"))
    found = {one.rule: one for one in FleetTable.of([row("a", seconds={"busy": 3600.0}, causes=both)]).causes}
    assert (found["foreign-load"].touched_gpu_h, found["launch-bound"].touched_gpu_h) == (1.0, None)


def test_what_findings_are_about_is_said_of_rules_that_exist() -> None:
    ids = {one.id for one in RULES}
    assert {*PRUNED, *FAILED, *RECORD} <= ids
    assert {one for one in ids if one.startswith("prun")} == set(PRUNED)
    assert {one for one in ids if one.startswith("failure")} == set(FAILED)


def test_where_to_start_is_a_command_that_can_be_called() -> None:
    worst = replace(
        row("hostile/-o", causes=(cause("idle", 2.0),), top_cause="idle", recoverable_gpu_h=2.0), source="-o/my runs/x"
    )
    text = FleetTable.of([worst]).document.headline.sentences[2]
    assert text == "Start with hostile/-o: gpudiag report './-o/my runs/x'"
    hidden = FleetTable.of([worst]).anonymous()
    assert hidden.document.headline.sentences[2] == "Start with run 1."
    assert "my runs" not in hidden.to_markdown()


def test_runs_of_one_reason_are_one_line() -> None:
    failed = [RunRow(f"bad{k}", "/x", "not diagnosed", reason="It is empty.") for k in range(5)]
    text = FleetTable.of([row("a"), *failed, RunRow("odd", "/x", "not diagnosed", reason="It is odd.")]).to_markdown()
    assert "| bad0, bad1, bad2 and 2 more | not diagnosed | It is empty. |" in text and "| odd |" in text


def test_markdown_is_one_screen_over_folds() -> None:
    """In a pull request all sections are folded, and nothing but the answers and numbers stands over them."""
    top, *folds = month().to_markdown().split("<details>")
    assert len(top.splitlines()) <= 20 and "## " not in top and len(folds) >= 3
    assert "**Where it went:**" in top and "| Category |" in folds[0]


def test_markdown_names_the_runs_that_failed_and_why_as_many_as_one_reads() -> None:
    failed = [RunRow(f"bad{k:02d}", "/x", "not diagnosed", reason=f"is empty {k}") for k in range(14)]
    text = FleetTable.of([row("a", seconds={"busy": 3600.0}), *failed]).to_markdown()
    assert "bad00" in text and "is empty 9" in text and "bad12" not in text


def test_a_run_counts_in_the_month_it_began_in_and_the_table_says_so() -> None:
    long = row("a", seconds={"busy": 3600.0 * 1440}, start="2026-05-28T00:00:00+00:00", end="2026-07-27T00:00:00+00:00")
    text = FleetTable.of([long]).divided_by("month").to_markdown()
    assert "| Month of start |" in text and "| 2026-05 | 1 | 1,440 GPU-h |" in text
    assert "The whole time of a run counts in the month in which it began." in text
    assert "of start" not in FleetTable.of([long]).divided_by("user").to_markdown()


def test_models_of_a_run_with_several_are_named_once() -> None:
    held = [
        row("a", seconds={"busy": 60.0}, gpu_model="H100"),
        row("b", seconds={"busy": 60.0}, gpu_model="A100, H100"),
    ]
    assert "GPU models: A100 and H100" in FleetTable.of(held).to_markdown()
