"""The JSON Schema of ``measures``, out of the declarations of the profiles."""

from __future__ import annotations

import re
from typing import Any

from gpudiag import measures
from gpudiag.facts import Named
from gpudiag.measures.base import Profile
from gpudiag.units import UNITS, unit_of

TYPES = {"float": "number", "int": "integer", "bool": "boolean", "text": "string", "time": "string"}


def measures_schema() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of ``measures`` and the definitions that it refers to. A measure of a user's own rule may stand
    beside those of gpudiag.
    """
    profiles: dict[str, type[Profile]] = measures.PROFILES
    kinds: dict[str, Any] = {}
    own = {"type": "object", "additionalProperties": _entry({"type": ["number", "string", "boolean", "null"]}, {})}
    topics = {topic: _topic(profile, kinds) for topic, profile in profiles.items()}
    made = {"type": "object", "description": "by topic, then by name", "properties": topics}
    return made | {"additionalProperties": own}, dict(sorted(kinds.items()))


def _topic(profile: type[Profile], kinds: dict[str, Any]) -> dict[str, Any]:
    """Scalars by name, all of them there; cells of tables with a row a GPU or a state by the form of their names."""
    scalars = {name: _reference(fact, kinds) for name, fact in profile.facts().items()}
    cells = {
        rf"^{row.index}\..+\.{re.escape(name)}$": _reference(column, kinds)
        for row in profile.tables().values()
        if row.index
        for name, column in row.declared().items()
    }
    head = {"type": "object", "description": (profile.__doc__ or "").partition("\n\n")[0].replace("\n", " ")}
    families = {"patternProperties": cells} if cells else {}
    return {**head, "properties": scalars, **families, "required": list(scalars), "additionalProperties": False}


def _reference(named: Named[Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """What one fact is: its kind and unit by reference, its meaning beside it."""
    suffix = next((end for end in sorted(UNITS, key=len, reverse=True) if named.name.endswith(end)), "")
    name = f"{named.kind}{suffix if named.kind in ('float', 'int') else ''}"
    # Of what is unknown the document holds the unit that the name carries, whatever its kind.
    units = sorted({named.unit, unit_of(named.name)})
    if name in kinds:
        units = sorted({*units, *kinds[name]["properties"]["unit"]["enum"]})
    kinds[name] = _entry({"type": [TYPES[named.kind], "null"]}, {"enum": units})
    return {"$ref": f"#/$defs/{name}", "description": named.meaning}


def _entry(value: dict[str, Any], unit: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"value": value, "unit": {"type": "string", **unit}},
        "required": ["value", "unit"],
        "additionalProperties": False,
    }
