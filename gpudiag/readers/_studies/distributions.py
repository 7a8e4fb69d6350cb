"""What an Optuna parameter's stored number means, told from its ``distribution_json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from gpudiag.readers._io.surrogates import without_halves

DistributionKind = Literal["float", "int", "choice"]

_KINDS: dict[str, DistributionKind] = {
    "FloatDistribution": "float",
    "UniformDistribution": "float",
    "LogUniformDistribution": "float",
    "DiscreteUniformDistribution": "float",
    "IntDistribution": "int",
    "IntUniformDistribution": "int",
    "IntLogUniformDistribution": "int",
    "CategoricalDistribution": "choice",
    # Short form, as in `optuna ask --search-space`.
    "float": "float",
    "int": "int",
    "categorical": "choice",
}


@dataclass(frozen=True)
class Distribution:
    """``choices`` is what the stored number of a ``choice`` indexes; empty for the others."""

    kind: DistributionKind
    choices: tuple[Any, ...] = ()


def parse_distribution(text: str) -> Distribution | None:
    """The distribution that the JSON text describes; None where it is damaged or unknown."""
    try:
        stored = json.loads(without_halves(text))
        kind = _KINDS.get(stored.get("name", stored.get("type")))
        if kind != "choice":
            return Distribution(kind) if kind else None
        choices = stored["attributes"]["choices"] if "attributes" in stored else stored["choices"]
        return Distribution("choice", tuple(choices))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
