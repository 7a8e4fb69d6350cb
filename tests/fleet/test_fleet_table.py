"""Totals, groups and causes over made-up rows, recomputed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.errors import ConfigError
from gpudiag.fleets.table import GROUPS, FleetTable, week_of
from gpudiag.report.fleet.document import CELLS, Cause, RunRow

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


def test_the_same_inputs_count_once() -> None:
    table = FleetTable.of([row("a", inputs="1"), row("b", inputs="1"), row("c", inputs=""), row("d", inputs="")])
    assert [one.status for one in table.rows] == ["diagnosed", "counted already", "diagnosed", "diagnosed"]


def test_anonymous_rows_keep_numbers_alone() -> None:
    named = row("secret/run", "ann", seconds={"busy": 5.0}, host="node7", project="moon", headline="secret")
    hidden = FleetTable.of([named, row("other")], "secret-fleet").anonymous()
    for word in ("secret", "ann", "node7", "moon"):
        assert word not in hidden.to_json() and word not in hidden.to_markdown()
    assert hidden.total.gpu_s == 5.0 and hidden.rows[0].user == "user 1"


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


def test_a_week_without_runs_has_its_place_in_the_figure() -> None:
    picture = month()._draw("weeks")
    assert picture is not None
    labels = [text.get_text() for text in picture.figure.axes[0].get_xticklabels()]
    assert labels == ["2026-W10", "2026-W11", "2026-W12"]
    assert "3 GPU-h in 2026-W10, 1.5 GPU-h in 2026-W12" in picture.alt and "GPU time" in picture.svg()


def test_hosts_and_days_are_a_heat_map_with_holes() -> None:
    picture = month()._draw("hosts")
    assert picture is not None and "from 20 % on h2 to 75 % on h1" in picture.alt
    image = picture.figure.axes[0].images[0].get_array()
    assert image.shape == (2, 15) and image[0, 0] == 90.0 and image[1, 1] == 20.0
    assert image.mask.sum() == 2 * 15 - 3


def test_one_week_and_one_day_are_no_figure() -> None:
    held = FleetTable.of([row("a", seconds={"busy": 1.0}, util_pct=5.0, end="2026-03-02T11:00:00+00:00")])
    assert held._draw("weeks") is None and held._draw("hosts") is None


def test_the_document_fits_its_schema() -> None:
    import json

    import jsonschema

    from gpudiag.schemas import schema

    for table in (month(), month().divided_by("user"), FleetTable.of([])):
        jsonschema.validate(json.loads(table.to_json()), schema("fleet-1"))
