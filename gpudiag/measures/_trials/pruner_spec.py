"""Pruner specifications in words: ``patient(hyperband(min_resource=1,max_resource=100),patience=2)``.

    pruner   = name [ "(" [ item { "," item } ] ")" ]
    item     = pruner | value | key "=" ( pruner | value )
    value    = number | "auto" | none | true | false | quoted text

Names are Optuna's class names in any of their spellings (``sha``, ``successive_halving``,
``SuccessiveHalvingPruner``); keys and their order are those of Optuna's constructors. Nothing is evaluated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gpudiag.errors import ConfigError, nearest

REQUIRED = object()

PARAMETERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "median": {"n_startup_trials": 5, "n_warmup_steps": 0, "interval_steps": 1, "n_min_trials": 1},
        "percentile": {
            "percentile": REQUIRED, "n_startup_trials": 5, "n_warmup_steps": 0, "interval_steps": 1, "n_min_trials": 1,
        },
        "sha": {"min_resource": "auto", "reduction_factor": 4, "min_early_stopping_rate": 0, "bootstrap_count": 0},
        "hyperband": {"min_resource": 1, "max_resource": "auto", "reduction_factor": 3, "bootstrap_count": 0},
        "patient": {"wrapped_pruner": REQUIRED, "patience": REQUIRED, "min_delta": 0.0},
        "threshold": {"lower": None, "upper": None, "n_warmup_steps": 0, "interval_steps": 1},
        "wilcoxon": {"p_threshold": 0.1, "n_startup_steps": 2},
        "nop": {},
    }
)  # fmt: skip
"""Parameters and defaults of Optuna's pruners, in the order of their constructors (4.2 to 5.0)."""

_ALIASES = {"successivehalving": "sha"}
_TOKEN = re.compile(r"\s*(?:(?P<word>[A-Za-z_][\w.]*)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
                    r"|(?P<text>'[^']*'|\"[^\"]*\")|(?P<mark>[(),=]))")  # fmt: skip
_WORDS: Mapping[str, Any] = {"none": None, "true": True, "false": False, "auto": "auto"}


@dataclass(frozen=True)
class PrunerSpec:
    """One pruner: its short name and every parameter, defaults filled in; a wrapped pruner is a PrunerSpec."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({','.join(f'{key}={value}' for key, value in self.params.items())})"


@dataclass(frozen=True)
class EarliestPrune:
    """A pruner cannot cut a trial before its report number ``report`` (1 = first) nor before step ``step``."""

    report: float
    step: float


def parse_pruner(text: str) -> PrunerSpec:
    """Read a specification. Raises ConfigError that says where and what was expected."""
    parser = _Parser(text)
    found = parser.pruner()
    if parser.kind:
        raise parser.error("nothing more")
    return found


def earliest_prune(spec: PrunerSpec) -> EarliestPrune:
    """The earliest moment in a trial's life at which that pruner can cut it, from optuna/pruners.

    Median, percentile and threshold wait for step ``n_warmup_steps``; successive halving for its first rung,
    ``min_resource * reduction_factor ** min_early_stopping_rate``; Hyperband's first bracket for ``min_resource``;
    patient for more than ``patience + 1`` reports, then asks the wrapped one; Wilcoxon for two reports or more.
    """
    p = spec.params
    if spec.name in ("median", "percentile", "threshold"):
        return EarliestPrune(1, p["n_warmup_steps"])
    if spec.name == "sha":
        least = 1 if p["min_resource"] == "auto" else p["min_resource"]
        return EarliestPrune(1, least * p["reduction_factor"] ** p["min_early_stopping_rate"])
    if spec.name == "hyperband":
        return EarliestPrune(1, p["min_resource"])
    if spec.name == "wilcoxon":
        return EarliestPrune(max(2, p["n_startup_steps"]), 0)
    if spec.name == "patient":
        inner = earliest_prune(p["wrapped_pruner"]) if p["wrapped_pruner"] else EarliestPrune(1, 0)
        return EarliestPrune(max(p["patience"] + 2, inner.report), inner.step)
    return EarliestPrune(math.inf, math.inf)


class _Parser:
    """A cursor over the tokens of one specification."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = self.token = ""
        self._advance()

    def pruner(self) -> PrunerSpec:
        word = self._take("word", "the name of a pruner")
        name = _short_name(word)
        if name not in PARAMETERS:
            raise ConfigError(f"pruner '{self.text}': there is no pruner '{word}'; {nearest(name, PARAMETERS)}")
        given: dict[str, Any] = {}
        if self.token == "(":
            self._advance()
            while self.token != ")":
                self._item(name, given)
                if self.token != ")":
                    self._take_mark(",")
            self._take_mark(")")
        return PrunerSpec(name, MappingProxyType(self._complete(name, given)))

    def _item(self, name: str, given: dict[str, Any]) -> None:
        """One argument, by key or by position."""
        legal = PARAMETERS[name]
        key = self.token if self.kind == "word" and self.text[self.at :].lstrip().startswith("=") else ""
        if key:
            self._advance()
            self._take_mark("=")
        elif len(given) < len(legal):
            key = list(legal)[len(given)]
        else:
            raise ConfigError(f"pruner '{self.text}': {name} takes {len(legal)} parameters, but got more.")
        if key == "wrapped":
            key = "wrapped_pruner"
        if key not in legal:
            raise ConfigError(f"pruner '{self.text}': {name} has no parameter '{key}'; {nearest(key, legal)}")
        if key in given:
            raise ConfigError(f"pruner '{self.text}': {name} got '{key}' twice.")
        given[key] = self._value(name, key)

    def _value(self, name: str, key: str) -> Any:
        wants_pruner = key == "wrapped_pruner"
        if self.kind == "word" and self.token.lower() not in _WORDS:
            value: Any = self.pruner() if wants_pruner else self.token
        elif self.kind == "word":
            value = _WORDS[self._take("word", "a value").lower()]
        elif self.kind == "text":
            value = self._take("text", "a value")[1:-1]
        else:
            number = self._take("number", "a value")
            value = float(number) if re.search(r"[.eE]", number) else int(number)
        self._check(name, key, value)
        return value

    def _check(self, name: str, key: str, value: Any) -> None:
        if key == "wrapped_pruner":
            fits, wanted = value is None or isinstance(value, PrunerSpec), "a pruner or none"
        elif key in ("lower", "upper"):
            fits, wanted = value is None or _is_number(value), "a number or none"
        elif key in ("min_resource", "max_resource"):
            fits, wanted = value == "auto" or (_is_count(value) and value >= 1), "a whole number of at least 1, or auto"
        elif key in ("percentile", "p_threshold", "min_delta"):
            fits, wanted = _is_number(value) and value >= 0, "a number of at least 0"
        else:
            least = {"reduction_factor": 2, "interval_steps": 1, "n_min_trials": 1}.get(key, 0)
            fits, wanted = _is_count(value) and value >= least, f"a whole number of at least {least}"
        if not fits:
            raise ConfigError(f"pruner '{self.text}': {name}.{key} must be {wanted}, but got {value!r}.")

    def _complete(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        missing = [key for key, default in PARAMETERS[name].items() if default is REQUIRED and key not in given]
        if missing:
            raise ConfigError(f"pruner '{self.text}': {name} needs {' and '.join(missing)}.")
        return {**PARAMETERS[name], **given}

    def _take(self, kind: str, wanted: str) -> str:
        if self.kind != kind:
            raise self.error(wanted)
        token = self.token
        self._advance()
        return token

    def _take_mark(self, mark: str) -> None:
        if self.token != mark or self.kind != "mark":
            raise self.error(f"'{mark}'")
        self._advance()

    def _advance(self) -> None:
        found = _TOKEN.match(self.text, self.at)
        if found:
            self.kind, self.token, self.at = str(found.lastgroup), found.group(found.lastgroup or 0), found.end()
        elif self.text[self.at :].strip():
            self.kind, self.token = "unknown", self.text[self.at :].strip()[0]
        else:
            self.kind = self.token = ""

    def error(self, wanted: str) -> ConfigError:
        place = self.at - len(self.token) + 1
        got = f"'{self.token}' at character {place}" if self.kind else "its end"
        return ConfigError(f"pruner '{self.text}': expected {wanted}, but got {got}.")


def _short_name(word: str) -> str:
    """``SuccessiveHalvingPruner`` and ``optuna.pruners.successive_halving`` are both ``sha``."""
    name = word.rsplit(".", 1)[-1].lower().replace("_", "").removesuffix("pruner")
    return _ALIASES.get(name, name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
