"""plan.json: which remedies were chosen for a run, and what they were predicted to do.

``gpudiag compare before after --plan plan.json`` can then say which predictions came true. The same run and
choice give the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ConfigDict, TypeAdapter, ValidationError

from gpudiag import __version__
from gpudiag.advice._engine.advise import Advice
from gpudiag.advice._engine.proposal import Change, Prediction, SuccessCheck
from gpudiag.errors import InputError, InputNotFound
from gpudiag.plain_data import Scalar, plain_object
from gpudiag.run import Run
from gpudiag.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "gpudiag.plan/1"
CLOSED = ConfigDict(extra="forbid")
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class PlannedGain:
    """Interval of a gain, in 'x' or 'GPU-h'."""

    __pydantic_config__ = CLOSED
    low: float
    high: float
    unit: str


@dataclass(frozen=True)
class PlanInput:
    """An input of the run that the plan was made for."""

    __pydantic_config__ = CLOSED
    path: str
    sha256: str


@dataclass(frozen=True)
class PlannedRemedy:
    """One chosen remedy: what to change, what was predicted and how to verify it."""

    __pydantic_config__ = CLOSED
    id: str
    title: str
    safety: str
    tier: int
    apply: str
    gain: PlannedGain | None
    assumption: str
    verify_first: str
    changes: tuple[Change, ...]
    predictions: tuple[Prediction, ...]
    verify: tuple[SuccessCheck, ...]
    rollback: str


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """The chosen remedies in the order of their rank, and their gain together, clipped at ``ceiling``."""

    __pydantic_config__ = CLOSED
    schema: str = field(metadata={"json_schema_extra": {"const": SCHEMA}})
    version: str
    run: str
    inputs: tuple[PlanInput, ...]
    remedies: tuple[PlannedRemedy, ...]
    combined: PlannedGain | None
    ceiling: float | None
    saved_gpu_h: float | None

    def to_frame(self) -> pd.DataFrame:
        """A row a remedy: remedy (id), change, apply, safety, tier, gain_low, gain_high, gain_unit."""
        import pandas as pd

        rows = []
        for one in self.remedies:
            first = one.changes[0]
            gain = (nan, nan, "") if one.gain is None else (one.gain.low, one.gain.high, one.gain.unit)
            rows.append((one.id, first.text or one.title, one.apply, one.safety, one.tier, *gain))
        names = ["remedy", "change", "apply", "safety", "tier", "gain_low", "gain_high", "gain_unit"]
        return pd.DataFrame(rows, columns=names)


_ADAPTER = TypeAdapter(Plan)


def make_plan(run: Run, advice: Advice, ids: Iterable[str] | None = None) -> Plan:
    """The plan of these remedies, by default of all that need no verification first. Raises ConfigError."""
    chosen = advice.choose(ids)
    combined = advice.combined(chosen)
    entries = [plain_object(one) for one in chosen]
    names = PlannedRemedy.__dataclass_fields__
    return _ADAPTER.validate_python(
        {
            "schema": SCHEMA,
            "version": __version__,
            "run": run.info.name,
            "inputs": [{"path": record.path, "sha256": record.sha256} for record in run.info.inputs],
            "remedies": [{name: entry[name] for name in names} for entry in entries],
            "combined": {"low": combined.low, "high": combined.high, "unit": "x"}
            if chosen and combined and combined.is_bounded
            else None,
            "ceiling": combined.ceiling if combined else None,
            "saved_gpu_h": combined.saved_gpu_h if combined else None,
        }
    )


def plan_json(plan: Plan) -> str:
    """The plan as text."""
    document = _ADAPTER.dump_python(plan, mode="json")
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def load_plan(path: str | Path) -> Plan:
    """Read a plan. Raises InputNotFound, or InputError that says what is wrong where."""
    path = Path(path)
    if not path.is_file():
        raise InputNotFound(f"{path}: no such file; expected a plan.json as diagnosis.save_plan() writes it.")
    try:
        plan = _ADAPTER.validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise InputError(f"{path}: is no plan of the form {SCHEMA}: {where}: {first['msg']}.") from error
    if plan.schema != SCHEMA:
        raise InputError(f"{path}: expected a plan of the form {SCHEMA}, but it says {plan.schema!r}.")
    return plan


def holds(check: SuccessCheck, value: Scalar) -> bool | None:
    """Whether a check holds on the value of its fact in a run; None where that is no number."""
    return OPERATORS[check.op](value, check.value) if isinstance(value, int | float) else None
