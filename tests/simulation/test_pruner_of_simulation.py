"""The simulated pruner is Optuna's."""

from __future__ import annotations

import warnings

import optuna
import pytest

import gpudiag as gd
from gpudiag.errors import ConfigError
from gpudiag.simulation.pruner import build_pruner

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    PRUNERS = {
        "median(n_startup_trials=4, n_warmup_steps=2)": optuna.pruners.MedianPruner(4, 2),
        "hyperband(1, 27, reduction_factor=3)": optuna.pruners.HyperbandPruner(1, 27, 3),
        "successive_halving(min_resource=2)": optuna.pruners.SuccessiveHalvingPruner(2),
        "patient(hyperband(1,27,3), patience=2)": optuna.pruners.PatientPruner(
            optuna.pruners.HyperbandPruner(1, 27, 3), 2
        ),
    }


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("text", PRUNERS)
def test_every_prune_is_reproduced_by_optuna_from_the_reports(text: str, direction: str) -> None:
    done = gd.simulate(
        seed=3,
        n_trials=50,
        epochs=27,
        epoch_s=(4.0, 9.0),
        pruner=text,
        direction=direction,
        crossing=0.7,
        fail_rate=0.1,
    )
    lives = done.history.lives
    assert sum(life.state == "PRUNED" for life in lives) >= 5
    assert sum(life.state == "COMPLETE" for life in lives) >= 2
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name="simulated", direction=direction, pruner=PRUNERS[text], sampler=optuna.samplers.RandomSampler()
    )
    trials = {life.number: study.ask() for life in lives}
    moments = [(at, life.number, step, value) for life in lives for step, value, at in life.reports]
    ends = [(life.end_s, life.number, None, life.value) for life in lives]
    state = {life.number: life.state for life in lives}
    last = {life.number: life.reports[-1][0] for life in lives if life.reports}
    for _, number, step, value in sorted(moments + ends, key=lambda moment: (moment[0], moment[2] is None)):
        if step is None:
            told = value if state[number] == "COMPLETE" else None
            study.tell(trials[number], told, state=optuna.trial.TrialState[state[number]])
        else:
            trials[number].report(value, step)
            pruned = state[number] == "PRUNED" and step == last[number]
            assert bool(trials[number].should_prune()) is pruned, (number, step)


def test_hyperband_leaves_its_rungs_in_the_record() -> None:
    done = gd.simulate(seed=3, n_trials=20, epochs=9, pruner="hyperband(1,9,3)")
    assert any("completed_rung_0" in life.system_attrs for life in done.history.lives)


def test_the_settings_state_the_pruner() -> None:
    settings = gd.simulate(n_trials=3, epochs=7, pruner="median()").run.info.settings
    assert (settings.pruner, settings.max_steps) == ("median()", 7)


def test_percentile_and_threshold_can_be_built() -> None:
    assert isinstance(build_pruner("percentile(25.0)"), optuna.pruners.PercentilePruner)
    assert isinstance(build_pruner("threshold(upper=3)"), optuna.pruners.ThresholdPruner)
    assert isinstance(build_pruner("nop"), optuna.pruners.NopPruner)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("medium()", "there is no pruner 'medium'; did you mean 'median'"),
        ("median(", "cannot be built"),
        ("median(n_startup=3)", "cannot be built .*n_startup"),
        ("__import__('os')", "there is no pruner '__import__'"),
        ("median(n_startup_trials=open('x'))", "there is no pruner 'open'"),
        ("1 + 1", "cannot be built"),
    ],
)
def test_what_is_no_pruner_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_pruner(text)


def test_verbosity_is_left_as_it_was() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    gd.simulate(n_trials=3, epochs=2, pruner="median()")
    assert optuna.logging.get_verbosity() == optuna.logging.WARNING
