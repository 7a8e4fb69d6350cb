"""What changed over the weeks, and beside what: fleets drawn here, whose changes are known."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudiag.fleets.changes import changes_of
from gpudiag.fleets.mix import mix_part
from gpudiag.fleets.quantities import QUANTITIES
from gpudiag.fleets.table import FleetTable
from gpudiag.fleets.weeks import week_of
from gpudiag.report.fleet.changes import Change, Changes, changes_section
from gpudiag.report.fleet.document import RunRow
from gpudiag.report.fleet.verdict import better_or_worse

WEEKS = [(datetime(2026, 1, 5, tzinfo=UTC) + timedelta(weeks=k)).isoformat() for k in range(52)]
N, AT = 24, 12


def run(week: int, project: str, util: float, gpu_s: float = 3600.0, **more: object) -> RunRow:
    given = {"driver": "550.54", "gpu_model": "A100", "commit": "aaaaaaa", "image": "base:1", "framework": "torch 2.8"}
    given |= {"n_trials": 10, "n_completed": 9, "n_failed": 1, "user": "ann"}
    fixed = {"gpu_s": gpu_s, "unobserved_gpu_s": 0.0, "util_pct": util, "start": WEEKS[week], "inputs": ""}
    return RunRow(f"{project}/{week}/{more}", "", "diagnosed", project=project, **{**given, **fixed, **more})  # type: ignore[arg-type]


def fleet(drop: float, seed: int = 0, n: int = N, **changed: object) -> list[RunRow]:
    """Two projects at 80 and 40 %; from week AT on ``drop`` less, with what changes there."""
    rng = np.random.default_rng(seed)
    rows = []
    for week in range(n):
        late = week >= AT
        for project, usual in (("vision", 80.0), ("text", 40.0)):
            util = float(np.clip(usual - drop * late + rng.normal(0, 1.5), 1, 99))
            rows.append(run(week, project, util, **(changed if late else {})))
    return rows


def whole(rows: list[RunRow], quantity: str = "util_pct") -> Change:
    (only,) = (one for one in changes_of(rows, week_of).found if not one.project and one.quantity == quantity)
    return only


def test_a_drop_beside_another_driver_is_hardware_and_no_cause() -> None:
    found = changes_of(fleet(15.0, driver="570.86"), week_of)
    assert {(one.project, one.quantity) for one in found.found} == {
        ("", "util_pct"), ("vision", "util_pct"), ("text", "util_pct"),
    }  # fmt: skip
    one = whole(fleet(15.0, driver="570.86"))
    assert one.kinds == ("hardware",) and one.worse and one.mix == ()
    assert (one.last_week, one.first_week) == (week_of(WEEKS[AT - 1]), week_of(WEEKS[AT]))
    assert (one.factors[0].before, one.factors[0].after, one.factors[0].often) == ("550.54", "570.86", False)
    assert one.before == pytest.approx(60, abs=1) and one.after == pytest.approx(45, abs=1)
    text = str(changes_section(found))
    assert "driver: 550.54 → 570.86" in text and "need not be the cause" in text and "because" not in text


def test_all_that_changed_at_the_same_time_is_named() -> None:
    one = whole(fleet(15.0, driver="570.86", gpu_model="H100", commit="bbbbbbb", image="base:2"))
    assert one.kinds == ("hardware", "method")
    assert [factor.what for factor in one.factors] == ["driver", "GPU model", "commit", "image"]


@pytest.mark.parametrize(("drop", "kind"), [(15.0, "regression"), (-15.0, "improvement")])
def test_where_nothing_known_changed_it_says_so(drop: float, kind: str) -> None:
    one = whole(fleet(drop))
    assert one.kinds == (kind,) and one.factors == () and one.not_recorded == ()
    text = str(changes_section(changes_of(fleet(drop), week_of)))
    assert "none of driver, GPU model, commit, image, framework changed" in text


def test_only_what_was_compared_is_said_not_to_have_changed() -> None:
    text = str(changes_section(changes_of(fleet(15.0, image="", commit=""), week_of)))
    assert "none of driver, GPU model, framework changed; not recorded: commit, image" in text
    bare: dict[str, str] = dict.fromkeys(("gpu_model", "commit", "image", "framework"), "")
    text = str(changes_section(changes_of(fleet(15.0, **bare), week_of)))
    assert "the driver did not change; not recorded: GPU model, commit, image, framework" in text
    text = str(changes_section(changes_of(fleet(15.0, driver="", **bare), week_of)))
    assert "'not recorded: driver, GPU model" in text and "none of" not in text and "did not change" not in text


def test_what_nobody_recorded_is_no_evidence_of_no_change() -> None:
    rows = fleet(15.0, image="", commit="")
    assert whole(rows).not_recorded == ("commit", "image")
    assert "not recorded: commit, image" in str(changes_section(changes_of(rows, week_of)))


def test_weeks_that_resemble_each_other_beside_the_steps_are_said_to() -> None:
    """A fall by 30 points with a slow wave of 6 beside it, and one with noise alone."""
    wave = [6 * math.sin(week / 2) for week in range(N)]
    rows = [run(week, "vision", 70 + wave[week] - 30 * (week >= AT), n_trials=None) for week in range(N)]
    found = changes_of(rows, week_of)
    (one,) = found.found
    logits = [math.log(row.util_pct / (100 - row.util_pct)) for row in rows if row.util_pct is not None]
    at = next(week for week in range(N) if week_of(WEEKS[week]) == one.first_week)
    left = np.concatenate([np.subtract(part, np.mean(part)) for part in (logits[:at], logits[at:])])
    assert found.n_series == 1  # no trials, so that utilization is all there is
    assert found.correlation == pytest.approx(float(left[1:] @ left[:-1] / (left @ left))) and found.correlation > 0.5
    assert "resemble each other (correlation 0." in str(changes_section(found))
    quiet = changes_of(fleet(15.0), week_of)
    assert quiet.found and "resemble" not in str(changes_section(quiet))


def test_a_driver_that_changed_weeks_before_is_not_at_the_same_time() -> None:
    rows = fleet(15.0)
    early = {row.run for row in rows if row.start and row.start >= WEEKS[AT - 5]}
    moved = [run(WEEKS.index(str(row.start)), row.project, row.util_pct or 0.0, driver="570.86")
             if row.run in early else row for row in rows]  # fmt: skip
    assert whole(moved).kinds == ("regression",)


def test_another_mix_of_projects_is_no_change_of_any_project() -> None:
    """Simpson: both projects stay, the poor one takes nine tenths of the time."""
    rng = np.random.default_rng(2)
    rows = [
        run(week, project, usual + rng.normal(0, 1.5), 3600.0 * (9 if (project == "text") == (week >= AT) else 1))
        for week in range(N)
        for project, usual in (("vision", 80.0), ("text", 40.0))
    ]
    found = [one for one in changes_of(rows, week_of).found if one.quantity == "util_pct"]
    assert [one.project for one in found] == [""] and found[0].kinds == ("mix",)
    (part,) = found[0].mix
    assert part.by == "projects" and part.share_pct == pytest.approx(100, abs=5)


def test_what_the_mix_leaves_open_is_named_as_well() -> None:
    """The poor project takes more of the time, and both lose 9 points."""
    rng = np.random.default_rng(2)
    rows = [
        run(week, project, usual - 9 * late + rng.normal(0, 1), 3600.0 * (1 + (project == "text" and late)))
        for week, late in enumerate(np.arange(N) >= AT)
        for project, usual in (("vision", 80.0), ("text", 40.0))
    ]
    one = whole(rows)
    assert one.kinds == ("mix", "regression") and 34 < one.mix[0].share_pct < 60
    (early, late) = ((80 + 40) / 2, (71 + 2 * 31) / 3)
    assert one.mix[0].share_pct == pytest.approx(100 * (late - early + 9) / (late - early), abs=3)


def test_a_commit_that_changes_every_week_is_marked() -> None:
    rows = [
        run(WEEKS.index(str(row.start)), row.project, row.util_pct or 0.0, commit=f"c{WEEKS.index(str(row.start)):06d}")
        for row in fleet(15.0)
    ]
    (commit,) = whole(rows).factors
    assert commit.often and (commit.before, commit.after) == (f"c{AT - 1:06d}", f"c{AT:06d}")


def test_few_weeks_are_not_judged_and_small_steps_do_not_matter() -> None:
    short = changes_of(fleet(30.0, n=9), week_of)
    assert short.n_series == 0 and short.found == () and short.n_short
    rows = [run(week, "p", 80.0 - 2.0 * (week >= AT) + 0.01 * (week % 3)) for week in range(N)]
    assert changes_of(rows, week_of).found == ()


def test_cost_and_failures_are_looked_at_as_well() -> None:
    rng = np.random.default_rng(5)
    rows = [
        run(week, "p", 80.0, 3600 * (1.6 if week >= AT else 1) * math.exp(rng.normal(0, 0.05)),
            n_failed=4 if week >= AT else week % 2, n_completed=6)
        for week in range(N)
    ]  # fmt: skip
    held = {one.quantity: one for one in changes_of(rows, week_of).found}
    assert set(held) == {"gpu_s", "failed_pct"}
    assert held["gpu_s"].after / held["gpu_s"].before == pytest.approx(1.6, rel=0.1)
    assert (held["failed_pct"].before, held["failed_pct"].after) == (pytest.approx(5.0), pytest.approx(40.0))


@pytest.mark.slow
def test_of_fleets_without_a_change_few_show_one() -> None:
    """All series of a fleet together, at 5 %; benchmarks/fleet_changes.py draws more, with autocorrelation."""
    shown = sum(bool(changes_of(fleet(0.0, seed), week_of).found) for seed in range(150))
    assert shown / 150 <= 0.06


Sides = dict[str, tuple[float, float]]
GROUPS = st.dictionaries(
    st.sampled_from("abcd"), st.tuples(st.floats(0.0, 100.0), st.floats(1.0, 1e4)), min_size=1, max_size=4
)


@pytest.mark.slow
@given(GROUPS, GROUPS)
@settings(max_examples=few_of(80), deadline=None)
def test_the_parts_of_a_difference_add_up(early: Sides, late: Sides) -> None:
    """What is not mix is the change within groups, weighed by their mean share."""
    sides = [[run(0, name, pct, seconds) for name, (pct, seconds) in side.items()] for side in (early, late)]
    part = mix_part(QUANTITIES[0].of, lambda row: row.project, *sides)
    means = [sum(p * s for p, s in side.values()) / sum(s for _, s in side.values()) for side in (early, late)]
    if len({*early, *late}) < 2:
        assert part is None
        return
    if abs(means[1] - means[0]) < 1e-6:
        return
    shares = [{name: side[name][1] / sum(s for _, s in side.values()) for name in side} for side in (early, late)]
    both = set(early) & set(late)
    within = sum((late[n][0] - early[n][0]) * (shares[0][n] + shares[1][n]) / 2 for n in both)
    assert part is not None
    assert part * (means[1] - means[0]) == pytest.approx(means[1] - means[0] - within, abs=1e-6)


def test_gpu_time_of_no_run_is_searched_as_well() -> None:
    """Jobs stay at 80 %; from week AT on as many GPUs that no job has are at 2 %: the chart falls."""
    rng = np.random.default_rng(3)
    jobs = [run(week, "p", 80 + rng.normal(0, 1), n_trials=None, driver="", commit="") for week in range(N)]
    free = [replace(run(week, "", 2 + rng.normal(0, 0.2), user=""), status="unallocated") for week in range(AT, N)]
    changes = FleetTable.of([*jobs, *free]).document.changes
    (one,) = (change for change in changes.found if not change.project)
    assert (one.first_week, one.worse) == (week_of(WEEKS[AT]), True)
    assert one.before == pytest.approx(80, abs=1) and one.after == pytest.approx((80 + 2) / 2, abs=1)
    assert not [change for change in changes.found if change.project], "no project changed"


def test_half_a_sampling_period_is_no_week() -> None:
    """A stub of 30 s at 0 % at the end of a series is in the totals alone."""
    rows = [run(week, "p", 80.0 + 0.01 * (week % 3)) for week in range(N)]
    stub = run(N, "p", 0.0, 30.0, busy_gpu_s=30.0)
    rows = [replace(row, busy_gpu_s=row.gpu_s) for row in rows]
    table = FleetTable.of([*rows, stub])
    assert table.total.gpu_s == N * 3600 + 30 and len(table.by("week")) == N + 1
    assert table._short == {week_of(WEEKS[N])} and list(table._drawn["weeks"].index) == [
        week_of(one) for one in WEEKS[:N]
    ]
    assert "less than 1 %" in str(table.show.weeks)
    assert table.document.changes == FleetTable.of(rows).document.changes


def test_the_report_holds_the_section_and_the_document_its_numbers() -> None:
    table = FleetTable.of(fleet(15.0, driver="570.86"))
    assert "driver: 550.54 → 570.86" in str(table.show.weeks)
    said = str(table.show.verdict)
    assert "used (53 % on average), and less from 2026-W14 on.**" in said
    assert "% in 2026-W14. At the same time: driver: 550.54 → 570.86." in said
    assert table.to_dict()["changes"]["found"][0]["kinds"] == ["hardware"]  # type: ignore[index, call-overload]
    assert "No change that stands out" in str(changes_section(Changes(3, 0, 10, ())))


@pytest.mark.parametrize(("gpu_s", "worse"), [(1800.0, False), (3600.0, True), (7200.0, True)])
def test_less_utilization_is_no_loss_where_a_trial_takes_less_gpu_time(gpu_s: float, worse: bool) -> None:
    rows = fleet(15.0, gpu_s=gpu_s)
    one = whole(rows)
    assert one.worse == worse and one.kinds == (("regression",) if worse else ("improvement",))
    changes = changes_of(rows, week_of)
    said, table = better_or_worse(changes), FleetTable.of(rows)
    assert said.startswith("Worse: utilization" if worse else "Better: GPU time per completed trial")
    assert ("less from" in table.document.headline.verdict) == worse
    assert ("GPU time per completed trial: " in text_of_row(changes)) == (not worse)


def text_of_row(changes: Changes) -> str:
    """The row of the whole fleet's utilization."""
    return next(line for line in str(changes_section(changes)).split("), (") if "'utilization'" in line)
