"""What is read again of plans and comparisons that were written as JSON; whatever else they hold is passed over."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ValidationError

from gpudiag.errors import InputError
from gpudiag.plain_data import JsonObject, json_text
from gpudiag.report.comparison.document import InputEntry, PlanOf, PlanOutcomeEntry

PlanKey = tuple[str, tuple[str, ...], tuple[str, ...]]


class WrittenRemedy(BaseModel):
    """A remedy of a plan."""

    id: str


class WrittenPlan(BaseModel):
    """A plan: its run, the inputs of that run, and its remedies."""

    run: str
    inputs: tuple[InputEntry, ...]
    remedies: tuple[WrittenRemedy, ...]

    @property
    def key(self) -> PlanKey:
        """The same for the same plan."""
        return _key(self.run, self.inputs, (remedy.id for remedy in self.remedies))


class WrittenComparison(BaseModel):
    """A comparison; ``plan`` is empty where it was made without one."""

    baseline: JsonObject
    experiment: JsonObject
    plan_of: PlanOf | None = None
    plan: tuple[PlanOutcomeEntry, ...] = ()

    @property
    def key(self) -> str:
        """The same for a comparison that was written twice."""
        return json_text([self.baseline, self.experiment, self.plan])

    @property
    def plan_key(self) -> PlanKey | None:
        """The key of the plan that it was made with."""
        of = self.plan_of
        return None if of is None else _key(of.run, of.inputs, of.remedies)


class WrittenComparisons(BaseModel):
    """Comparisons of several experiments with one baseline."""

    comparisons: tuple[WrittenComparison, ...]


Written = WrittenPlan | WrittenComparison | WrittenComparisons
FORMS: dict[str, type[Written]] = {
    "gpudiag.plan/1": WrittenPlan,
    "gpudiag.comparison/1": WrittenComparison,
    "gpudiag.comparisons/1": WrittenComparisons,
}


def read_written(path: Path) -> Written | None:
    """What a file holds, None where it does not say that it is of one of these forms.

    Raises InputError where it says so and is not.
    """
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # no JSON, or no text
        return None
    schema = held.get("schema") if isinstance(held, dict) else None
    form = FORMS.get(schema) if isinstance(schema, str) else None
    if form is None:
        return None
    try:
        return form.model_validate(held)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: is not of the form {schema}, as it says: {where}: {first['msg']}.") from error


def _key(run: str, inputs: Iterable[InputEntry], remedies: Iterable[str]) -> PlanKey:
    """What tells one plan from another: its run, the contents of its inputs and its remedies."""
    return run, tuple(sorted(one.sha256 for one in inputs)), tuple(remedies)
