from __future__ import annotations

import inspect
import math
from contextlib import suppress

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.errors import ConfigError
from gpudiag.measures._trials.pruner_spec import PARAMETERS, REQUIRED, earliest_prune, parse_pruner

CLASSES = {
    "median": optuna.pruners.MedianPruner, "percentile": optuna.pruners.PercentilePruner,
    "sha": optuna.pruners.SuccessiveHalvingPruner, "hyperband": optuna.pruners.HyperbandPruner,
    "patient": optuna.pruners.PatientPruner, "threshold": optuna.pruners.ThresholdPruner,
    "wilcoxon": optuna.pruners.WilcoxonPruner,
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_are_those_of_optuna(name: str) -> None:
    signature = [p for p in inspect.signature(CLASSES[name]).parameters.values() if p.name != "self"]
    assert [p.name for p in signature] == list(PARAMETERS[name])
    for p in signature:
        assert PARAMETERS[name][p.name] == (REQUIRED if p.default is p.empty else p.default)


def test_nested() -> None:
    spec = parse_pruner(" patient( hyperband(min_resource=1, max_resource=100,reduction_factor=3) , patience=2 ) ")
    assert spec.name == "patient" and spec.params["patience"] == 2 and spec.params["min_delta"] == 0
    inner = spec.params["wrapped_pruner"]
    assert (inner.name, inner.params["max_resource"], inner.params["bootstrap_count"]) == ("hyperband", 100, 0)
    assert parse_pruner(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("median", "median"),
        ("MedianPruner()", "median"),
        ("optuna.pruners.SuccessiveHalvingPruner(min_resource='auto')", "sha"),
        ("successive_halving(4)", "sha"),
        ("percentile(25.0, n_warmup_steps=3)", "percentile"),
        ("PatientPruner(wrapped=none, patience=3)", "patient"),
        ("threshold(upper=-1e-3)", "threshold"),
        ("nop", "nop"),
        ("threshold(lower=+2,)", "threshold"),
        ("patient(None, 3)", "patient"),
        ("  hyperband(1,\n  AUTO)", "hyperband"),
        ("NopPruner()", "nop"),
    ],
)
def test_spellings(text: str, name: str) -> None:
    assert parse_pruner(text).name == name


@pytest.mark.parametrize(
    ("text", "report", "step"),
    [
        ("patient(hyperband(),patience=2)", 4, 1),
        ("patient(median(n_warmup_steps=6),2)", 4, 6),
        ("patient(none,0)", 2, 0),
        ("patient(patient(median(),5),1)", 7, 0),
        ("median(n_warmup_steps=3)", 1, 3),
        ("sha(min_resource=2,reduction_factor=3,min_early_stopping_rate=2)", 1, 18),
        ("sha()", 1, 1),
        ("hyperband(min_resource=3)", 1, 3),
        ("wilcoxon(n_startup_steps=0)", 2, 0),
        ("threshold(lower=0)", 1, 0),
        ("nop", math.inf, math.inf),
    ],
)
def test_earliest(text: str, report: float, step: float) -> None:
    found = earliest_prune(parse_pruner(text))
    assert (found.report, found.step) == (report, step)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    "text",
    ["patient(none,patience=2)", "patient(hyperband(min_resource=1,max_resource=9),patience=1)",
     "median(n_startup_trials=1,n_warmup_steps=3)", "sha(min_resource=2,reduction_factor=2)"],
)  # fmt: skip
def test_no_real_pruner_is_earlier(text: str) -> None:
    """Against Optuna itself: a trial that gets worse with every step, after trials that were good."""

    def build(spec):
        params = {k: build(v) if hasattr(v, "params") else v for k, v in spec.params.items()}
        return CLASSES[spec.name](**params)

    spec = parse_pruner(text)
    study = optuna.create_study(pruner=build(spec), sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(6):
        good = study.ask()
        for step in range(1, 13):
            good.report(-100.0 - step, step)
            good.should_prune()
        study.tell(good, -100.0)
    first = math.inf
    for badness in range(1, 13):  # pruners that let trials compete only cut what is worse than others
        bad = study.ask()
        for step in range(1, 13):
            bad.report(float(step * badness), step)
            if bad.should_prune():
                first = min(first, step)
                break
        study.tell(bad, state=optuna.trial.TrialState.PRUNED)
    earliest = earliest_prune(spec)
    assert first == max(earliest.report, earliest.step)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("meidan()", "did you mean 'median'"),
        ("median(n_warmup=3)", "did you mean 'n_warmup_steps'"),
        ("median(n_warmup_steps=3", r"name\(key=value, ...\): '\(' was never closed at character 7"),
        ("median)", "unmatched '\\)' at character 7"),
        ("median(n_warmup_steps=)", "name\\(key=value, ...\\): .* at character (8|2[23])"),
        ("median(n_warmup_steps=-1)", "whole number of at least 0, but got -1"),
        ("median(n_warmup_steps=1,n_warmup_steps=2)", "twice"),
        ("median(1,2,3,4,5)", "takes 4 parameters"),
        ("patient(median())", "needs patience"),
        ("patient(3,3)", "must be a pruner or none"),
        ("percentile()", "needs percentile"),
        ("hyperband(max_resource=lots)", "a whole number of at least 1, or auto, but got 'lots'"),
        ("sha(reduction_factor=1)", "at least 2"),
        ("__import__('os')", "there is no pruner"),
        ("median(n_startup_trials=__import__('os'))", "whole number"),
        ("", "expected the name of a pruner, but got nothing"),
        ("median()()", "expected the name of a pruner, but got 'median\\(\\)'"),
        ("median(**{})", "no parameter '\\*\\*'"),
        ("median(n_warmup_steps=3-1)", "at least 0, but got '3 - 1'"),
        ("sha(True)", "at least 1, or auto, but got True"),
        ("patient('median', 2)", "must be a pruner or none, but got 'median'"),
        ("a." * 900 + "a", "no pruner|too deep"),
        ("median(" * 250 + ")" * 250, "name\\(key=value, ...\\)"),
        ("median(" + "-" * 1900 + "1)", "whole number|name\\(key=value, ...\\)|too deep"),
        ("median(" + "9" * 5000 + ")", "longer than 2,000 characters"),
        ("median(\0)", "name\\(key=value, ...\\)"),
        ("median(\ud800)", "name\\(key=value, ...\\)"),
        ("median;", "invalid syntax at character 7"),
    ],
)
def test_messages(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_pruner(text)


@given(st.text(alphabet="median(),=0123.- _sha'\"patientautonone", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ConfigError):
        assert parse_pruner(text).name in PARAMETERS
