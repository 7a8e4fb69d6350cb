"""Pruners in words and as objects."""

from __future__ import annotations

import optuna
import pytest
from replayruns import SPECS

from gpudiag.errors import ConfigError
from gpudiag.forecast.pruning.pruner import build_pruner, in_words, quiet, resolve_pruner, spec_of
from gpudiag.measures._trials.pruner_spec import parse_pruner


@pytest.mark.parametrize("text", SPECS)
def test_words_make_the_object_that_makes_the_words(text: str) -> None:
    spec = parse_pruner(text)
    again = spec_of(build_pruner(spec))
    assert again is not None
    assert str(again) == str(spec)
    assert str(parse_pruner(in_words(spec))) == str(spec)


def test_objects_are_told_by_their_class() -> None:
    with quiet():
        pruner = optuna.pruners.PatientPruner(optuna.pruners.HyperbandPruner(min_resource=3), patience=4)
    made, spec = resolve_pruner(pruner)
    assert made is pruner
    assert spec is not None
    assert in_words(spec) == "patient(hyperband(min_resource=3), patience=4)"


def test_a_class_of_ones_own_has_no_words() -> None:
    class Mine(optuna.pruners.MedianPruner):
        pass

    assert resolve_pruner(Mine())[1] is None
    with quiet():
        assert spec_of(optuna.pruners.PatientPruner(Mine(), patience=1)) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hyperbend()", "did you mean 'hyperband'"),
        ("median(startup=3)", "median has no parameter 'startup'"),
        ("threshold()", "Optuna refuses it"),
        ("percentile(120)", "Optuna refuses it"),
        ("hyperband(min_resource=auto)", "must be a whole number"),
        ("__import__('os').system('true')", "expected the name of a pruner, but got '__import__('os').system'"),
        (3, "but got int"),
    ],
)
def test_what_is_no_pruner_is_refused_in_one_sentence(text: object, said: str) -> None:
    with pytest.raises(ConfigError, match="pruner") as error:
        resolve_pruner(text)
    assert said in str(error.value)


def test_quiet_restores_the_verbosity() -> None:
    before = optuna.logging.get_verbosity()
    with quiet():
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR
    assert optuna.logging.get_verbosity() == before
