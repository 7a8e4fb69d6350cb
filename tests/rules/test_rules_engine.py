from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from gpudiag.analysis import Analysis
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.judging import judge_all
from gpudiag.rules._engine.rule import check_thresholds, rule
from gpudiag.rules._engine.verdict import Severity, Status, Verdict, Verdicts, worst_of
from gpudiag.run import Run


@dataclass(frozen=True)
class Load:
    load_pct: float
    coverage_pct: float = 100.0


CALLS: list[Run] = []


def measure_load(run: Run) -> Load:
    CALLS.append(run)
    raise NotMeasurable("There is no load.", "Record it.")


@rule(measure=measure_load, severity="warning", title="The load is high", remedy="Carry less.")
def load_high(load: Load, *, max_pct: float = 50.0, max_s: float = 5.0) -> Evidence | None:
    """Heavy loads break. Source: a bridge."""
    if math.isinf(load.load_pct):
        raise NotApplicable("Nothing is carried.")
    if load.load_pct > max_pct:
        return Evidence("It is.", {"load_pct": load.load_pct}, {"gpu": "0"}, 1.5, 2.0, Severity.CRITICAL)
    return None


@rule(measure=measure_load, severity="note", title="Always", remedy="None.")
def no_limits(load: Load) -> Evidence | None:
    """No threshold."""
    return None


def judge(load: Load, **thresholds: float):
    chosen = check_thresholds((load_high,), {"load-high": thresholds})
    return judge_all((load_high,), Analysis(Run(), {measure_load: load}), chosen)[0]


def test_a_rule_is_read_from_its_function() -> None:
    assert (load_high.id, load_high.topic, load_high.severity) == ("load-high", "test_rules_engine", Severity.WARNING)
    assert load_high.thresholds == {"max_pct": 50.0, "max_s": 5.0}
    assert load_high.why == "Heavy loads break. Source: a bridge."


def test_found_carries_the_evidence() -> None:
    found = judge(Load(51))
    assert (found.status, found.severity, found.summary) == (Status.FOUND, Severity.CRITICAL, "It is.")
    assert (found.evidence, found.where, found.lost_gpu_h, found.margin) == ({"load_pct": 51}, {"gpu": "0"}, 1.5, 2.0)
    assert found.thresholds == {"max_pct": 50.0, "max_s": 5.0} and found.remedy == "Carry less."


def test_thresholds_are_overridden_by_name() -> None:
    assert judge(Load(51), max_pct=60).status is Status.OK
    assert judge(Load(51), max_pct=60).thresholds["max_pct"] == 60


@pytest.mark.parametrize(
    ("coverage", "status"), [(80, Status.OK), (79.9, Status.NOT_ASSESSED), (math.nan, Status.NOT_ASSESSED)]
)
def test_clear_needs_coverage(coverage: float, status: Status) -> None:
    verdict = judge(Load(10, coverage))
    assert verdict.status is status
    if status is Status.NOT_ASSESSED:
        assert "observed" in verdict.reason and "nan" not in verdict.reason and verdict.remedy


def test_a_fault_needs_no_coverage() -> None:
    assert judge(Load(51, 1)).status is Status.FOUND


def test_nan_does_not_fire() -> None:
    assert judge(Load(math.nan)).status is Status.OK


def test_a_question_that_does_not_arise() -> None:
    verdict = judge(Load(math.inf))
    assert (verdict.status, verdict.reason) == (Status.NOT_APPLICABLE, "Nothing is carried.")


def test_missing_data_is_measured_once_and_said_each_time() -> None:
    CALLS.clear()
    profiles = Analysis(Run())
    verdicts = judge_all((load_high, no_limits), profiles, check_thresholds((load_high, no_limits), {}))
    assert [(v.status, v.reason, v.remedy) for v in verdicts] == [
        (Status.NOT_ASSESSED, "There is no load.", "Record it.")
    ] * 2
    assert len(CALLS) == 1 and profiles.get(measure_load) is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"load-hihg": {}}, "there is no rule 'load-hihg'; did you mean 'load-high'"),
        ({"load-high": {"max_pc": 3}}, "no threshold 'max_pc'; did you mean 'max_pct'"),
        ({"no-limits": {"max_pct": 3}}, "'no-limits' has no thresholds, but got max_pct"),
        ({"load-high": {"max_pct": 101}}, "'load-high.max_pct' must be between 0 and 100, but got 101"),
        ({"load-high": {"max_pct": -1}}, "between 0 and 100"),
        ({"load-high": {"max_pct": math.nan}}, "between 0 and 100, but got nan"),
        ({"load-high": {"max_pct": "50"}}, "between 0 and 100, but got '50'"),
        ({"load-high": {"max_pct": True}}, "between 0 and 100, but got True"),
        ({"load-high": {"max_s": math.inf}}, "a finite number of at least 0, but got inf"),
        ({"load-high": {"max_s": -0.1}}, "a finite number of at least 0"),
    ],
)
def test_wrong_thresholds_are_refused_before_anything_is_measured(overrides: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_thresholds((load_high, no_limits), overrides)


def test_zero_and_hundred_are_legal() -> None:
    assert check_thresholds((load_high,), {"load-high": {"max_pct": 0, "max_s": 0}})["load-high"]["max_pct"] == 0
    assert check_thresholds((load_high,), {"load-high": {"max_pct": 100}})["load-high"]["max_pct"] == 100


@rule(measure=measure_load, severity="warning", title="It creaks", remedy="Oil it.", explained_by=("load-high",))
def creaks(load: Load, *, max_pct: float = 40.0) -> Evidence | None:
    """A symptom of load."""
    return Evidence("It does.", {}, {"gpu": "0, 1"}) if load.load_pct > max_pct else None


@rule(measure=measure_load, severity="warning", title="Other creaks", remedy="Oil it.", explained_by=("load-high",))
def other_creaks(load: Load) -> Evidence | None:
    """Elsewhere."""
    return Evidence("It does.", {}, {"gpu": "7"})


def test_a_symptom_names_its_cause_where_both_were_found_at_one_place() -> None:
    rules = (creaks, load_high, other_creaks)

    def causes(load: Load) -> list[str | None]:
        return [
            v.caused_by for v in judge_all(rules, Analysis(Run(), {measure_load: load}), check_thresholds(rules, {}))
        ]

    assert causes(Load(51)) == ["load-high", None, None]
    assert causes(Load(45)) == [None, None, None]


@rule(measure=measure_load, severity="note", title="A draught", remedy="Close it.")
def draught(load: Load) -> Evidence | None:
    """A cause of a size: GPU-hours lost below 10, only seen from there on."""
    if load.load_pct < 10:
        return Evidence("It is.", {}, {"gpu": "1"}, lost_gpu_h=load.load_pct)
    return Evidence("It is.", {}, {"gpu": "1"}, held_gpu_h=load.load_pct / 10)


@rule(measure=measure_load, severity="warning", title="It is cold", remedy="Heat.", explained_by=("draught",))
def cold(load: Load) -> Evidence | None:
    """A symptom that cost 4 GPU-hours."""
    return Evidence("It is.", {}, {"gpu": "1, 2"}, lost_gpu_h=4.0)


@pytest.mark.parametrize(
    ("load", "cause"), [(2.0, "draught"), (1.9, None), (0.03, None), (20.0, "draught"), (19.0, None)]
)
def test_a_cause_is_large_enough_for_half_of_what_its_symptom_lost(load: float, cause: str | None) -> None:
    verdicts = judge_all(
        (cold, draught), Analysis(Run(), {measure_load: Load(load)}), check_thresholds((cold, draught), {})
    )
    assert [v.caused_by for v in verdicts] == [cause, None]


@pytest.mark.parametrize(
    ("listed", "place"),
    [
        ([], None),
        ([("a", "note", None)], 0),
        ([("a", "note", None), ("b", "warning", None), ("c", "critical", None)], 1),
        ([("a", "note", None), ("b", "warning", "c"), ("c", "note", None)], 2),
        ([("a", "warning", "b"), ("b", "warning", "a")], 0),
        ([("a", "warning", "absent")], 0),
    ],
)
def test_what_is_told_first_is_the_cause_of_the_first_serious_finding(listed: list, place: int | None) -> None:
    assert worst_of(listed) == place


def test_verdicts_are_found_by_rule_by_place_and_by_slice() -> None:
    one, other = (Verdict(name, "title", Status.FOUND, Severity.WARNING) for name in ("gpu-idle", "memory-full"))
    verdicts = Verdicts((one, other))
    assert verdicts["memory-full"] is other and verdicts[0] is one
    assert verdicts[1:] == (other,) and isinstance(verdicts[1:], Verdicts)
    with pytest.raises(KeyError, match="did you mean 'gpu-idle'"):
        verdicts["gpu-idel"]
    with pytest.raises(KeyError, match="there is none"):
        Verdicts(())["gpu-idle"]
