"""JSON Schemas out of the classes of documents: closed, with every key of a dataclass required."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from gpudiag._load.inspection import Inspected
from gpudiag.advice._engine.plan import Plan
from gpudiag.forecast.document import ForecastDocument
from gpudiag.plain_data import JsonObject
from gpudiag.readers._traces.breakdown import TraceBreakdown
from gpudiag.report.comparison.document import ComparisonDocument
from gpudiag.report.document import Document
from gpudiag.report.fleet.document import FleetDocument
from gpudiag.report.fleet.history import History
from gpudiag.schemas._measures import measures_schema

DRAFT = "https://json-schema.org/draft/2020-12/schema"
CLASSES: dict[str, Any] = {
    "diagnosis-4": Document,
    "comparison-1": ComparisonDocument,
    "fleet-1": FleetDocument,
    "history-1": History,
    "forecast-2": ForecastDocument,
    "plan-1": Plan,
    "inspect-1": list[Inspected],
    "trace-1": TraceBreakdown,
}


class _Closed(GenerateJsonSchema):
    """What is written holds every field of a dataclass, and nothing else."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        made = super().dataclass_schema(schema)
        return made | {"additionalProperties": False} if "properties" in made else made

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        return field["type"] == "dataclass-field" or super().field_is_required(field, total)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def derive(name: str) -> JsonObject:
    """The schema of a document by its name."""
    kind, _, number = name.rpartition("-")
    made = TypeAdapter(CLASSES[name]).json_schema(mode="serialization", schema_generator=_Closed)
    if name == "diagnosis-4":
        made["properties"]["measures"], kinds = measures_schema()
        made["$defs"] = {name: one for name, one in made["$defs"].items() if name != "Measured"} | kinds
    return {"$schema": DRAFT, "$id": f"gpudiag.{kind}/{number}", **made}
