"""The rules for large studies give Optuna's own answer at every report."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replayruns import SPECS

from gpudiag.forecast.pruning.judge import FastStage, has_rule, judge_for
from gpudiag.forecast.pruning.pruner import build_pruner, quiet
from gpudiag.forecast.pruning.recorded import recorded_studies
from gpudiag.forecast.pruning.stage import Stage
from gpudiag.measures._trials.pruner_spec import parse_pruner

RULED = [text for text in SPECS if has_rule(parse_pruner(text))]


@pytest.mark.slow
@pytest.mark.parametrize("text", RULED)
@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), direction=st.sampled_from(["minimize", "maximize"]))
def test_the_same_answers_as_optuna(text: str, direction: str, seed: int) -> None:
    """Several trials at once, steps left out, values equal, NaN or infinite, trials that fail."""
    rng = np.random.default_rng(seed)
    spec = parse_pruner(text)
    with quiet():
        judges = (Stage(build_pruner(spec), "s", direction), FastStage(spec, "s", direction))
        live: dict[int, list[int]] = {}
        n = 0
        for _ in range(500):
            if len(live) < 3:
                for judge in judges:
                    judge.start(7 + 2 * n)
                live[n] = rng.permutation(26).tolist() if rng.random() < 0.1 else sorted(rng.choice(26, 20, False))
                n += 1
            trial = int(rng.choice(list(live)))
            step = int(live[trial].pop(0))
            level = np.random.default_rng([seed, trial]).uniform(0, 0.5)
            value = round(
                float(level + (step + 1) ** -0.5 + 0.1 * rng.standard_normal()), 1 if rng.random() < 0.5 else 6
            )
            value = float(rng.choice([value, np.nan, np.inf], p=[0.95, 0.04, 0.01]))
            said = [judge.prunes(trial, step, value) for judge in judges]
            assert said[0] == said[1], (trial, step, value)
            if said[0] or not live[trial]:
                state = "PRUNED" if said[0] else str(rng.choice(["COMPLETE", "COMPLETE", "FAIL"]))
                del live[trial]
                for judge in judges:
                    judge.end(trial, state, 0.0 if np.isnan(value) else value)


def test_optuna_itself_judges_small_studies_and_what_has_no_rule() -> None:
    from replayruns import hand_run

    record = recorded_studies(hand_run({0: [0.5]}, {0: "COMPLETE"}))[0]
    for text in ("median()", "wilcoxon()"):
        spec = parse_pruner(text)
        with quiet():
            assert isinstance(judge_for(build_pruner(spec), spec, record), Stage)
    assert not has_rule(parse_pruner("patient(wilcoxon(),patience=2)"))


@pytest.mark.parametrize("excess", [1.0, -1.0])
def test_a_trial_that_broke_a_constraint_is_no_best_to_compare_with(excess: float) -> None:
    """Wilcoxon compares with the best trial: asked of Optuna, in a study whose lowest trial is infeasible or not."""
    levels, steps = {0: 0.1, 1: 0.9}, range(8)
    with quiet():
        study = optuna.create_study(pruner=optuna.pruners.WilcoxonPruner())
        for number, level in levels.items():
            study.add_trial(
                optuna.trial.create_trial(
                    value=level, intermediate_values={step: level + 0.01 * step for step in steps},
                    system_attrs={"constraints": [excess if number == 0 else -1.0]},
                )
            )  # fmt: skip
        trial = study.ask()
        for step in steps:
            trial.report(0.5 + 0.01 * step, step)
        expected = trial.should_prune()
        spec = parse_pruner("wilcoxon()")
        stage = Stage(build_pruner(spec), "s", "minimize", frozenset({0} if excess > 0 else ()))
        for number, level in levels.items():
            stage.start(number)
            for step in steps:
                stage.prunes(number, step, level + 0.01 * step)
            stage.end(number, "COMPLETE", level)
        stage.start(2)
        said = [stage.prunes(2, step, 0.5 + 0.01 * step) for step in steps]
    assert expected == (excess < 0)
    assert said[-1] == expected
