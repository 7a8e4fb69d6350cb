"""Replaying a pruner: exact on its own log, bounds that hold the truth, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from replayruns import SPECS, curve, hand_run, optuna_study, run_of, with_times

import gpudiag as gd
from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.forecast.pruning.play import NOT_CUT, carried_on
from gpudiag.forecast.pruning.recorded import recorded_studies
from gpudiag.forecast.pruning.result import PrunerReplay
from gpudiag.run import Run
from gpudiag.schema import TRIALS, conform


def full_run(n: int = 40, epochs: int = 16, direction: str = "minimize", seed: int = 3) -> Run:
    """A study that nothing pruned: every curve is known to its end."""
    curves = {i: curve(seed, i, epochs, direction) for i in range(n)}
    return hand_run(curves, dict.fromkeys(curves, "COMPLETE"), directions=direction.upper(), pruner="nop()")


def cut_by_optuna(pruner: str, n: int, epochs: int, direction: str, seed: int) -> dict[int, int]:
    """Reports of each trial where Optuna itself prunes, one trial after the other."""
    study, told = optuna_study(pruner, seed=seed, n=n, epochs=epochs, direction=direction)
    del study
    return told.groupby("trial").size().to_dict()


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("pruner", SPECS)
def test_every_prune_of_one_process_is_repeated(pruner: str, direction: str) -> None:
    study, _ = optuna_study(pruner, direction=direction)
    found = gd.replay_pruner(run_of(study, pruner), pruner)
    test = found.backtests[0]
    n_pruned = sum(t.state is optuna.trial.TrialState.PRUNED for t in study.trials)
    assert test.exact
    assert test.prunes == n_pruned
    assert found.logged_steps == sum(len(t.intermediate_values) for t in study.trials)
    assert found.level == "exact"
    assert found.identified_pct == 100
    assert found.steps.low == found.steps.value == found.steps.high == found.logged_steps
    assert found.pruned_pct.value == pytest.approx(100 * n_pruned / len(study.trials))
    assert found.best_killed is False
    assert (found.regret.low, found.regret.high) == (0, 0)


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("pruner", SPECS)
def test_every_prune_of_several_workers_is_repeated_where_reports_have_times(pruner: str) -> None:
    study, told = optuna_study(pruner, n=40, jobs=4)
    timed = gd.replay_pruner(with_times(run_of(study, pruner), told), pruner)
    assert timed.ordered
    assert timed.backtests[0].exact
    plain = gd.replay_pruner(run_of(study, pruner), pruner)
    assert not plain.ordered
    test = plain.backtests[0]
    assert test.repeated >= 0.9 * test.prunes
    assert plain.steps.low <= plain.logged_steps <= plain.steps.high


@pytest.mark.parametrize(("pruner", "direction"), list(zip(SPECS, cycle(["minimize", "maximize"]), strict=False)))
def test_full_curves_give_the_truth(pruner: str, direction: str) -> None:
    run = full_run(direction=direction)
    truth = cut_by_optuna(pruner, 40, 16, direction, 3)
    shifted = replace(run, reports=run.reports.assign(step=run.reports["step"] - 1))  # the study counts from 0
    shifted = replace(shifted, studies=shifted.studies.assign(study="curves"))
    shifted = replace(shifted, trials=run.trials.assign(study="curves"), reports=shifted.reports.assign(study="curves"))
    found = gd.replay_pruner(shifted, pruner)
    assert found.level == "exact"
    assert found.steps.value == sum(truth.values())
    assert found.saved_steps.value == 40 * 16 - sum(truth.values())
    assert found.trials.set_index("trial")["steps_low"].to_dict() == truth
    kept = [n for n, steps in truth.items() if steps == 16]
    loss = {n: (1 if direction == "minimize" else -1) * curve(3, n, 16, direction)[-1] for n in truth}
    if kept:
        assert found.regret.value == pytest.approx(min(loss[n] for n in kept) - min(loss.values()))
    assert found.best_trial == min(loss, key=lambda n: loss[n])


def test_a_laxer_pruner_gives_bounds_only_and_says_why() -> None:
    study, _ = optuna_study("median()")
    found = gd.replay_pruner(run_of(study, "median()", max_steps=20), "nop()")
    n_pruned = sum(t.state is optuna.trial.TrialState.PRUNED for t in study.trials)
    cut_early = sum(t.state is optuna.trial.TrialState.PRUNED and len(t.intermediate_values) < 20 for t in study.trials)
    assert found.level == "bounds"
    assert math.isnan(found.steps.value)
    assert found.steps.low <= found.logged_steps
    assert found.steps.high == 50 * 20
    assert found.saved_steps.low == found.logged_steps - 1000
    assert found.identified_pct == pytest.approx(100 - 100 * cut_early / 50)
    assert found.pruned_pct.low == 0
    assert found.pruned_pct.high == 0, "whatever would have followed, it prunes nothing"
    assert "would have run beyond what was recorded" in found.reason
    assert found.reason in found.notes
    assert any("run 15 trials or more of the next study to the end" in note for note in found.notes)
    assert n_pruned >= cut_early > 5


def test_a_stricter_pruner_is_exact() -> None:
    """A threshold needs no other trial: what it cuts within the records is known for certain."""
    study, _ = optuna_study("threshold(upper=1.2)")
    found = gd.replay_pruner(run_of(study, "threshold(upper=1.2)"), "threshold(upper=0.8)")
    expected = 0
    for trial in study.trials:
        values = [v for _, v in sorted(trial.intermediate_values.items())]
        over = [k for k, v in enumerate(values) if v > 0.8]
        expected += over[0] + 1 if over else len(values)
    assert found.level == "exact"
    assert found.steps.value == expected


def test_the_hours_follow_the_steps() -> None:
    """A minute a report after ten seconds: cutting trial 1 at its second of four reports saves two minutes."""
    run = hand_run({0: [0.5, 0.4, 0.3, 0.2], 1: [0.5, 0.9, 0.3, 0.2]}, {0: "COMPLETE", 1: "COMPLETE"})
    found = gd.replay_pruner(run, "threshold(upper=0.8)")
    assert found.saved_steps.value == 2
    # Two trials of one length do not tell the start-up: it is anything, and the saving lies below that without one.
    hours = found.saved_worker_h
    assert not hours.known and "same number of reports" in hours.reason
    assert 0 < hours.low < 120 / 3600 < hours.high < 250 * 3 / 4 / 3600
    assert not found.saved_gpu_h.known
    assert found.saved_gpu_h.reason


def test_the_best_trial_can_be_killed_and_costs_regret() -> None:
    curves = {0: [0.5, 0.4, 0.3], 1: [0.9, 0.5, 0.1], 2: [0.6, 0.5, 0.4]}
    found = gd.replay_pruner(hand_run(curves, dict.fromkeys(curves, "COMPLETE")), "threshold(upper=0.8)")
    assert found.best_trial == 1
    assert found.best_killed is True
    assert found.best_cut_step == 1
    assert found.regret.value == pytest.approx(0.2)
    assert found.trials["outcome"].tolist() == ["kept", "pruned", "kept"]
    assert found.trials["cut_step"].tolist()[1] == 1
    all_gone = gd.replay_pruner(hand_run(curves, dict.fromkeys(curves, "COMPLETE")), "threshold(upper=0.01)")
    assert not all_gone.regret.known
    assert "every trial that completed" in all_gone.regret.reason


def test_the_best_trial_of_a_replay_broke_no_constraint() -> None:
    """As the test before, but the best value is of a trial that is infeasible: pruning it costs nothing."""
    curves = {0: [0.5, 0.4, 0.3], 1: [0.9, 0.5, 0.1], 2: [0.6, 0.5, 0.4]}
    log = hand_run(curves, dict.fromkeys(curves, "COMPLETE"))
    log.trials["system_attrs.constraints"] = ["[-1.0]", "[0.5]", "[0.0]"]
    found = gd.replay_pruner(log, "threshold(upper=0.8)")
    assert (found.best_trial, found.best_killed, found.regret.value) == (0, False, 0.0)
    log.trials["system_attrs.constraints"] = "[0.5]"
    none = gd.replay_pruner(log, "threshold(upper=0.8)")
    assert none.best_trial is None and "Every trial that completed broke a constraint" in none.regret.reason


def test_failed_and_running_trials_compete_but_are_not_decided() -> None:
    curves = {0: [0.5, 0.4], 1: [0.9], 2: [0.4, 0.3], 3: [0.4], 4: []}
    states = {0: "COMPLETE", 1: "FAIL", 2: "PRUNED", 3: "RUNNING", 4: "COMPLETE"}
    found = gd.replay_pruner(hand_run(curves, states, max_steps=3), "threshold(upper=0.8)")
    assert found.n_trials == 2  # 0 and 2: the others were not decided, or reported nothing
    assert found.n_left_out == 1
    assert found.logged_steps == 6
    outcomes = found.trials.set_index("trial")["outcome"].to_dict()
    # 1 failed at the report that the candidate prunes: nobody knows whether it would have been asked first.
    assert outcomes == {0: "kept", 1: "unknown", 2: "unknown", 3: "unknown"}
    assert (found.steps.low, found.steps.high) == (6, 2 + 1 + 3 + 3)
    assert found.identified_pct == 50


def test_a_trial_pruned_at_its_last_step_is_not_cut_off() -> None:
    run = hand_run({0: [0.5, 0.4], 1: [0.6, 0.5]}, {0: "COMPLETE", 1: "PRUNED"}, max_steps=2)
    found = gd.replay_pruner(run, "nop()")
    assert found.level == "exact"
    assert found.steps.value == 4


@pytest.mark.parametrize("kept", [(4, 9, 14), (5, 9, 13), (1, 2, 8)])
def test_a_trial_goes_on_at_its_own_stride_and_pace(kept: tuple[int, ...]) -> None:
    """Beside one that reports at each of 20 steps, one that did at three and was pruned: regular ones go on so."""
    run = hand_run({0: [0.5] * 20, 1: [0.6] * 15}, {0: "COMPLETE", 1: "PRUNED"})
    seldom = (run.reports["trial"] == 0) | run.reports["step"].isin(kept)
    (record,) = recorded_studies(replace(run, reports=run.reports[seldom].reset_index(drop=True)))
    held = carried_on(record, np.full(2, NOT_CUT))
    stride = np.median(np.diff(kept))
    every = round((kept[-1] - kept[0]) / 2)
    assert held.steps[1] == [*kept, *range(kept[-1] + every, 21, every)]
    spent_s = record.end_s[1] - record.start_s[1] - record.startup.typical_s[1]
    after_s = np.array(held.times_s[1][3:]) - record.end_s[1]
    assert after_s == pytest.approx((np.array(held.steps[1][3:]) - kept[-1]) / stride * spent_s / 3)


def test_nan_and_repeated_steps_are_taken_as_optuna_does() -> None:
    """NaN is pruned by a threshold; of a step reported twice the first value counts."""
    run = hand_run({0: [0.5, 0.4, 0.3], 1: [0.5, math.nan, 0.3]}, {0: "COMPLETE", 1: "COMPLETE"})
    twice = pd.concat([run.reports, run.reports.iloc[[0]].assign(value=0.99)], ignore_index=True)
    found = gd.replay_pruner(replace(run, reports=twice), "threshold(upper=0.8)")
    assert found.trials["outcome"].tolist() == ["kept", "pruned"]
    assert found.trials["cut_step"].tolist()[1] == 2


@pytest.mark.slow
def test_number_and_name_decide_on_the_bracket() -> None:
    """The same curves under another study name, or with other numbers, fall into other brackets of Hyperband."""
    curves = {i: curve(5, i, 27, "minimize") for i in range(60)}
    states = dict.fromkeys(curves, "COMPLETE")
    pruner = "hyperband(max_resource=27)"
    cut = [
        gd.replay_pruner(hand_run(numbered, dict.fromkeys(numbered, "COMPLETE"), study=name), pruner)
        for name, numbered in (
            ("s", curves),
            ("other", curves),
            ("s", {i + 16: values for i, values in curves.items()}),
        )
    ]
    told = [tuple(found.trials["steps_low"]) for found in cut]
    assert len(set(told)) == 3
    assert told[0] == tuple(gd.replay_pruner(hand_run(curves, states), pruner).trials["steps_low"])


def test_several_studies_are_replayed_apart_and_summed() -> None:
    a, b = full_run(seed=1), full_run(seed=2)
    b = replace(
        b, trials=b.trials.assign(study="t"), reports=b.reports.assign(study="t"), studies=b.studies.assign(study="t")
    )
    both = replace(
        a,
        trials=pd.concat([a.trials, b.trials], ignore_index=True),
        reports=pd.concat([a.reports, b.reports], ignore_index=True),
        studies=pd.concat([a.studies, b.studies], ignore_index=True),
    )
    found = gd.replay_pruner(both, "sha()")
    parts = [gd.replay_pruner(run, "sha()").steps.value for run in (a, b)]
    assert found.studies == ("s", "t")
    assert found.steps.value == sum(parts)
    assert gd.replay_pruner(both, "sha()", study="t").steps.value == parts[1]


def test_an_object_gives_the_same_as_its_words_and_is_left_as_it_was() -> None:
    run = full_run()
    pruner = optuna.pruners.HyperbandPruner()
    before = dict(vars(pruner))
    found = gd.replay_pruner(run, pruner)
    assert vars(pruner) == before
    assert found.to_dict() == gd.replay_pruner(run, "hyperband()").to_dict()


def test_a_pruner_of_ones_own_is_asked_too() -> None:
    class Odd(optuna.pruners.BasePruner):
        def prune(self, study: Any, trial: Any) -> bool:
            return bool(trial.number % 2 and trial.last_step == 3)

    found = gd.replay_pruner(full_run(), Odd())
    assert found.pruner == "Odd"
    assert found.steps.value == 20 * 16 + 20 * 3


def test_a_wrong_statement_of_the_pruner_fails_the_backtest() -> None:
    study, _ = optuna_study("median()")
    found = gd.replay_pruner(run_of(study, "patient(nop(),patience=9)"), "median()")
    assert found.level == "bounds"
    assert "of its own log" in found.reason
    assert any("not the pruner that ran" in note for note in found.notes)


def test_large_studies_are_judged_by_rules_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpudiag.forecast.pruning import judge as replay_judge

    study, _ = optuna_study("median()")
    run = run_of(study, "median()")
    with_optuna = gd.replay_pruner(run, "hyperband()").to_dict()
    monkeypatch.setattr(replay_judge, "SMALL", 0)
    assert gd.replay_pruner(run, "hyperband()").to_dict() == with_optuna


def test_progress_is_told_and_can_stop_it() -> None:
    told: list[tuple[int, int]] = []
    gd.replay_pruner(full_run(), "median()", progress=lambda done, total: told.append((done, total)))
    assert told
    assert all(0 <= done < total for done, total in told)

    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    with pytest.raises(Stop):
        gd.replay_pruner(full_run(), "median()", progress=stop)


def test_what_cannot_be_replayed_is_refused() -> None:
    run = full_run(4)
    with pytest.raises(NotMeasurable, match="no curve to replay"):
        gd.replay_pruner(replace(run, reports=run.reports.iloc[:0]), "median()")
    with pytest.raises(NotMeasurable, match="several objectives"):
        gd.replay_pruner(replace(run, studies=run.studies.assign(directions="MINIMIZE,MAXIMIZE")), "median()")
    unknown = replace(run, studies=run.studies.assign(directions=""))
    with pytest.raises(NotMeasurable, match="minimizes or maximizes"):
        gd.replay_pruner(unknown, "median()")
    assert gd.replay_pruner(unknown, "nop()", direction="minimize").steps.value == 64
    with pytest.raises(ConfigError, match="no study 'x' in this run; its studies are: s"):
        gd.replay_pruner(run, "median()", study="x")
    with pytest.raises(ConfigError, match="did you mean 'median'"):
        gd.replay_pruner(run, "medain()")


def test_without_timestamps_the_numbers_are_the_order() -> None:
    study, _ = optuna_study("hyperband()")
    run = run_of(study, "hyperband()")
    bare = replace(run, trials=conform(run.trials.drop(columns=["start", "end"]), TRIALS))
    assert gd.replay_pruner(bare, "hyperband()").backtests[0].exact


@pytest.fixture(scope="module")
def shown() -> PrunerReplay:
    study, _ = optuna_study("median()")
    return gd.replay_pruner(run_of(study, "median()"), "hyperband(min_resource=2)")


@pytest.mark.slow
def test_it_shows_itself(shown: PrunerReplay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = repr(shown)
    assert max(map(len, text.splitlines())) <= 80
    for words in (text, shown._repr_markdown_(), shown._repr_html_()):
        assert "hyperband(min" in words
        assert "Back-test" in words
        assert "nan" not in words.lower().replace("finance", "")
    assert shown.to_frame()["quantity"].tolist()[0] == "pruned, of decided"
    document = json.loads(json.dumps(shown.to_dict(), allow_nan=False))
    assert document["steps"]["low"] <= document["steps"]["high"]


def test_nothing_in_the_run_changes() -> None:
    run = full_run()
    before = [pd.util.hash_pandas_object(t).sum() for t in (run.trials, run.reports, run.studies)]
    gd.replay_pruner(run, "median()")
    assert before == [pd.util.hash_pandas_object(t).sum() for t in (run.trials, run.reports, run.studies)]


def test_rank_agreement_is_spearmans_and_needs_fifteen() -> None:
    from scipy.stats import spearmanr

    run = full_run(30)
    rank = gd.replay_pruner(run, "median()").rank.set_index("step")
    wide = run.reports.pivot(index="trial", columns="step", values="value")
    for step in (1, 3, 9):
        row = rank.loc[step]
        assert row["spearman"] == pytest.approx(spearmanr(wide[step], wide[16]).statistic)
        assert row["spearman_low"] <= row["spearman"] <= row["spearman_high"]
        pairs = [
            np.sign(wide.loc[i, step] - wide.loc[j, step]) * np.sign(wide.loc[i, 16] - wide.loc[j, 16])
            for i in wide.index for j in wide.index if i < j
        ]  # fmt: skip
        assert row["concordance"] == pytest.approx(float(np.mean(pairs)))
        assert row["depth"] == 16
    few = gd.replay_pruner(full_run(14), "median()").rank
    assert few["spearman"].isna().all()
    assert (few["reading"] == "too few trials").all()
