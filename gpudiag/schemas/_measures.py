"""The JSON Schema of ``measures``, out of the declarations of the profiles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from gpudiag import measures
from gpudiag.facts import Named
from gpudiag.measures.base import Profile
from gpudiag.plain_data import JsonObject
from gpudiag.units import UNITS, unit_of

TYPES = {"float": "number", "int": "integer", "bool": "boolean", "text": "string", "time": "string"}


@dataclass
class _Kind:
    """A kind of fact: the type of its values in JSON, and the units seen with it."""

    type: str
    units: set[str] = field(default_factory=set)

    def schema(self) -> JsonObject:
        return _entry({"type": [self.type, "null"]}, {"enum": sorted(self.units)})


def measures_schema() -> tuple[JsonObject, JsonObject]:
    """The schema of ``measures`` and the definitions that it refers to. A measure of a user's own rule may stand
    beside those of gpudiag.
    """
    profiles: dict[str, type[Profile]] = measures.PROFILES
    kinds: dict[str, _Kind] = {}
    any_value: JsonObject = {"type": ["number", "string", "boolean", "null"]}
    own: JsonObject = {"type": "object", "additionalProperties": _entry(any_value, {})}
    topics = {topic: _topic(profile, kinds) for topic, profile in profiles.items()}
    made: JsonObject = {"type": "object", "description": "by topic, then by name", "properties": topics}
    return {**made, "additionalProperties": own}, {name: kind.schema() for name, kind in sorted(kinds.items())}


def _topic(profile: type[Profile], kinds: dict[str, _Kind]) -> JsonObject:
    """Scalars by name, all of them there; cells of tables with a row a GPU or a state by the form of their names."""
    scalars = {name: _reference(fact, kinds) for name, fact in profile.facts().items()}
    cells = {
        rf"^{row.index}\.[\s\S]*\.{re.escape(name)}$": _reference(column, kinds)
        for row in profile.tables().values()
        if row.index
        for name, column in row.declared().items()
    }
    head = {"type": "object", "description": (profile.__doc__ or "").partition("\n\n")[0].replace("\n", " ")}
    families = {"patternProperties": cells} if cells else {}
    return {**head, "properties": scalars, **families, "required": list(scalars), "additionalProperties": False}


def _reference(named: Named[Any], kinds: dict[str, _Kind]) -> JsonObject:
    """What one fact is: its kind and unit by reference, its meaning beside it."""
    suffix = next((end for end in sorted(UNITS, key=len, reverse=True) if named.name.endswith(end)), "")
    name = f"{named.kind}{suffix if named.kind in ('float', 'int') else ''}"
    # Of what is unknown the document holds the unit that the name carries, whatever its kind.
    kinds.setdefault(name, _Kind(TYPES[named.kind])).units.update((named.unit, unit_of(named.name)))
    return {"$ref": f"#/$defs/{name}", "description": named.meaning}


def _entry(value: JsonObject, unit: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {"value": value, "unit": {"type": "string", **unit}},
        "required": ["value", "unit"],
        "additionalProperties": False,
    }
