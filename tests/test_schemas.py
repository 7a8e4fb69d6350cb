"""The shipped JSON Schemas are those of the classes; ``make docs-texts`` writes them."""

from __future__ import annotations

from typing import Any

import jsonschema
import pydantic
import pytest

from gpudiag.schemas import NAMES, derived, schema


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_schema_is_that_of_the_classes(name: str) -> None:
    shipped, made = schema(name), derived(name)
    jsonschema.Draft202012Validator.check_schema(shipped)
    if tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 14):  # earlier ones say less
        shipped, made = map(_said_by_all, (shipped, made))
    assert shipped == made, "the classes have changed: run make docs-texts, and count the schema id up if a key went"


def _said_by_all(node: Any) -> Any:
    if isinstance(node, list):
        return [_said_by_all(one) for one in node]
    if not isinstance(node, dict):
        return node
    said = {k: _said_by_all(v) for k, v in node.items() if not (k == "description" and isinstance(v, str))}
    return {k: v for k, v in said.items() if (k, v) != ("additionalProperties", True)}


@pytest.mark.parametrize("name", NAMES)
def test_every_object_of_a_class_is_closed_and_all_its_keys_are_required(name: str) -> None:
    """Rows of GPUs are the one exception: what no input tells is absent there."""
    made = schema(name)
    kept = {**made.get("$defs", {}), "": made}
    named = {title: one for title, one in kept.items() if "properties" in one and title != "GpuEntry"}
    assert named
    for title, one in named.items():
        assert one["additionalProperties"] is False and one["required"] == list(one["properties"]), title
