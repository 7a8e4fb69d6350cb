"""The JSON documents: what each is, its schema to download, and its fields as tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpudiag.report._render.markdown import inline
from gpudiag.schemas import NAMES, schema

MADE_BY = {
    "diagnosis-4": "`gpudiag diagnose --format json`, `diagnosis.json` of a report, `Diagnosis.to_dict()`",
    "comparison-1": "`gpudiag compare --format json`, `comparison.json` of a comparison",
    "fleet-1": "`fleet.json` of `gpudiag fleet`",
    "history-1": "`gpudiag history --format json`",
    "forecast-2": "`gpudiag whatif --format json`",
    "plan-1": "`gpudiag diagnose --plan-out`, `Diagnosis.save_plan()`",
    "inspect-1": "`gpudiag inspect --format json`",
    "trace-1": "`gpudiag trace --format json`",
}
HEAD = """# JSON documents

Each document names its schema in `schema`, such as `gpudiag.diagnosis/4`. The schemas are in the package
(`gpudiag/schemas/`). Unknown numbers are null, times are ISO 8601 in UTC, and names carry their unit. The number behind
the slash changes where a key goes or changes its meaning; new keys come without."""


def schemas_page() -> str:
    """The page, a section a document."""
    return "\n\n".join([HEAD, *(part for name in NAMES for part in _document(name))]) + "\n"


def _document(name: str) -> Iterator[str]:
    held: Mapping[str, Any] = schema(name)
    yield f"## {name.partition('-')[0].capitalize()}"
    file = f"{{download}}`{name}.json <../../gpudiag/schemas/{name}.json>`"
    yield f"`{held['$id']}`, from {MADE_BY[name]}. Schema: {file}."
    if held.get("description"):
        yield _words(held["description"])
    if "properties" in held:
        yield _table(held)
    parts = [(title, one) for title, one in held.get("$defs", {}).items() if "properties" in one and title[0].isupper()]
    for title, one in parts:
        yield f"### {title}"
        if one.get("description"):
            yield _words(one["description"])
        yield _table(one)


def _table(held: Mapping[str, Any]) -> str:
    needed = held.get("required", ())
    rows = []
    for key, one in held["properties"].items():
        absent = "" if key in needed else " (may be absent)"
        rows.append(f"| `{key}`{absent} | {_kind(one)} | {_words(one.get('description', ''))} |")
    return "\n".join(["| Key | Type | Meaning |", "|---|---|---|", *rows])


def _kind(one: Mapping[str, Any]) -> str:
    """The type in a word or two: of a list that of its items, of an object with any keys that of its values."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return name if name[0].isupper() else name.partition("_")[0]
    if "const" in one:
        return f"`{one['const']}`"
    if "enum" in one:
        return ", ".join(f"`{value}`" for value in one["enum"])
    if "anyOf" in one:
        return " or ".join(dict.fromkeys(map(_kind, one["anyOf"])))
    if one.get("type") == "array":
        return f"list of {_kind(one['items'])}" if isinstance(one.get("items"), Mapping) else "list"
    inner = one.get("additionalProperties")
    if one.get("type") == "object":
        return f"object of {_kind(inner)}" if isinstance(inner, Mapping) else "object"
    return str(one.get("type", "any"))


def _words(text: str) -> str:
    plain = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.replace("``", "`"))
    return inline(" ".join(plain.split()))
