"""A pruner given as an Optuna object or in words, as an object to replay and as words to print."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpudiag.errors import ConfigError
from gpudiag.measures._trials.pruner_spec import PARAMETERS, REQUIRED, PrunerSpec, parse_pruner

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

CLASSES = {
    "median": "MedianPruner", "percentile": "PercentilePruner", "sha": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner", "patient": "PatientPruner", "threshold": "ThresholdPruner",
    "wilcoxon": "WilcoxonPruner", "nop": "NopPruner",
}  # fmt: skip
_NAMES = {title: name for name, title in CLASSES.items()}


def build_pruner(spec: PrunerSpec) -> BasePruner:
    """A fresh Optuna pruner. Raises ConfigError where Optuna refuses the parameters."""
    pruners = _optuna().pruners
    if spec.name == "hyperband" and spec.params["min_resource"] == "auto":
        raise ConfigError(f"pruner '{spec}': hyperband.min_resource must be a whole number; Optuna has no auto for it.")
    params = {key: build_pruner(p) if isinstance(p, PrunerSpec) else p for key, p in spec.params.items()}
    try:
        with quiet():
            made: BasePruner = getattr(pruners, CLASSES[spec.name])(**params)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"pruner '{spec}': Optuna refuses it: {error}") from error
    return made


def resolve_pruner(pruner: object) -> tuple[BasePruner, PrunerSpec | None]:
    """The object to replay, and its specification; None for a class that is not Optuna's own.

    Raises ConfigError for what is neither text nor an Optuna pruner, or for text that names no pruner.
    """
    from optuna.pruners import BasePruner

    if isinstance(pruner, str):
        spec = parse_pruner(pruner)
        return build_pruner(spec), spec
    if isinstance(pruner, PrunerSpec):
        return build_pruner(pruner), pruner
    if isinstance(pruner, BasePruner):
        return pruner, spec_of(pruner)
    raise ConfigError(
        "pruner must be an Optuna pruner or text such as 'median(n_startup_trials=5)', "
        f"but got {type(pruner).__name__}."
    )


def spec_of(pruner: BasePruner) -> PrunerSpec | None:
    """The specification of one of Optuna's own pruners, as it was constructed; None for any other class.

    Optuna keeps each parameter under its name with a leading underscore (4.2 to 5.0).
    """
    name = _NAMES.get(type(pruner).__name__)
    if name is None or not type(pruner).__module__.startswith("optuna.pruners"):
        return None
    params: dict[str, Any] = {}
    for key, default in PARAMETERS[name].items():
        value = getattr(pruner, f"_{key}", default)
        if key == "wrapped_pruner" and value is not None:
            value = spec_of(value)
            if value is None:
                return None
        if value is None and key == "min_resource":
            value = "auto"
        if key in ("lower", "upper") and isinstance(value, float) and math.isinf(value):
            value = None
        if value is REQUIRED:
            return None
        params[key] = value
    return PrunerSpec(name, params)


def in_words(spec: PrunerSpec) -> str:
    """The shortest specification that means the same: parameters at their defaults are left out."""
    parts = []
    for key, value in spec.params.items():
        if isinstance(value, PrunerSpec):
            parts.append(in_words(value))
        elif value != PARAMETERS[spec.name][key]:
            parts.append(f"{key}={value}")
    return f"{spec.name}({', '.join(parts)})"


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings (experimental classes, NaN among values) and no log lines of Optuna."""
    optuna = _optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


def _optuna() -> Any:
    """Optuna, whose progress bar would warn in a notebook where ipywidgets is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import optuna
    return optuna
