"""Pruner specifications in words: ``patient(hyperband(min_resource=1,max_resource=100),patience=2)``.

    pruner   = name [ "(" [ item { "," item } ] ")" ]
    item     = pruner | value | key "=" ( pruner | value )
    value    = number | "auto" | none | true | false | quoted text

Names are Optuna's class names in any of their spellings (``sha``, ``successive_halving``,
``SuccessiveHalvingPruner``); keys and their order are those of Optuna's constructors. The text is
parsed as a Python expression and the tree is walked: nothing is evaluated.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gpudiag._run.tables import RunTables
from gpudiag.errors import ConfigError, nearest
from gpudiag.values import is_number

REQUIRED = object()
MOST_CHARACTERS = 2_000
"""Of a specification: what is longer is not a pruner, and Python's parser nests no deeper than it can then."""

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
_DOTTED = re.compile(r"[A-Za-z_][\w.]*")
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
    return _SpecParser(text).read()


def stated_pruner(run: RunTables) -> PrunerSpec | None:
    """The pruner that run.toml states; None where it states none. Raises ConfigError that names file and key."""
    text = run.info.settings.pruner
    if not text:
        return None
    try:
        return parse_pruner(text)
    except ConfigError as error:
        where = "" if run.info.folder is None else f"{run.info.folder}: "
        raise ConfigError(f"{where}key 'settings.pruner' of run.toml: {error}") from error


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


class _SpecParser:
    """The walk over the syntax tree of one specification: names, calls and plain values, all else is refused."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> PrunerSpec:
        if not self.text.strip():
            raise self._error("expected the name of a pruner, but got nothing")
        if len(self.text) > MOST_CHARACTERS:
            raise ConfigError(f"pruner '{self.text[:40]}...': longer than {MOST_CHARACTERS:,} characters.")
        try:
            tree = ast.parse(self.text.strip(), mode="eval")
        except SyntaxError as error:
            place = (error.offset or 1) + len(self.text) - len(self.text.lstrip())
            raise self._error(f"not of the form name(key=value, ...): {error.msg} at character {place}") from None
        except (ValueError, RecursionError, MemoryError):  # characters that no source has; nested too deep to parse
            raise self._error("not of the form name(key=value, ...)") from None
        try:
            return self._pruner(tree.body)
        except RecursionError:
            raise self._error("nested too deep") from None

    def _pruner(self, node: ast.expr) -> PrunerSpec:
        call = node if isinstance(node, ast.Call) else None
        word = ast.unparse(call.func if call else node)
        if not _DOTTED.fullmatch(word):
            raise self._error(f"expected the name of a pruner, but got '{word}'")
        name = _short_name(word)
        if name not in PARAMETERS:
            raise self._error(f"there is no pruner '{word}'; {nearest(name, PARAMETERS)}")
        given = self._arguments(name, call) if call else {}
        missing = [key for key, default in PARAMETERS[name].items() if default is REQUIRED and key not in given]
        if missing:
            raise self._error(f"{name} needs {' and '.join(missing)}")
        return PrunerSpec(name, MappingProxyType({**PARAMETERS[name], **given}))

    def _arguments(self, name: str, call: ast.Call) -> dict[str, Any]:
        legal = PARAMETERS[name]
        if len(call.args) > len(legal):
            raise self._error(f"{name} takes {len(legal)} parameters, but got more")
        pairs = [*zip(legal, call.args, strict=False), *((item.arg or "**", item.value) for item in call.keywords)]
        given: dict[str, Any] = {}
        for word, node in pairs:
            key = "wrapped_pruner" if word == "wrapped" else word
            if key not in legal:
                raise self._error(f"{name} has no parameter '{key}'; {nearest(key, legal)}")
            if key in given:
                raise self._error(f"{name} got '{key}' twice")
            given[key] = self._value(name, key, node)
        return given

    def _value(self, name: str, key: str, node: ast.expr) -> Any:
        value = _plain(node)
        if key == "wrapped_pruner":
            named = isinstance(node, ast.Name) and value == node.id
            if named or isinstance(node, ast.Call | ast.Attribute):
                return self._pruner(node)
            fits, wanted = value is None, "a pruner or none"
        elif key in ("lower", "upper"):
            fits, wanted = value is None or is_number(value), "a number or none"
        elif key in ("min_resource", "max_resource"):
            fits, wanted = value == "auto" or (_is_count(value) and value >= 1), "a whole number of at least 1, or auto"
        elif key in ("percentile", "p_threshold", "min_delta"):
            fits, wanted = is_number(value) and value >= 0, "a number of at least 0"
        else:
            least = {"reduction_factor": 2, "interval_steps": 1, "n_min_trials": 1}.get(key, 0)
            fits, wanted = _is_count(value) and value >= least, f"a whole number of at least {least}"
        if not fits:
            raise self._error(f"{name}.{key} must be {wanted}, but got {value!r}")
        return value

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"pruner '{self.text}': {what}{'' if what.endswith(('.', '?')) else '.'}")


def _plain(node: ast.expr) -> Any:
    """The value that was written; of what is no plain value its text, which no parameter takes but ``auto``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
        return node.value
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id.lower(), node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _plain(node.operand)
        if is_number(number):
            return -number if isinstance(node.op, ast.USub) else number
    return ast.unparse(node)


def _short_name(word: str) -> str:
    """``SuccessiveHalvingPruner`` and ``optuna.pruners.successive_halving`` are both ``sha``."""
    name = word.rsplit(".", 1)[-1].lower().replace("_", "").removesuffix("pruner")
    return _ALIASES.get(name, name)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
