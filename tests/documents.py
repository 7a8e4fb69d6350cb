"""Whether a document fits its schema; tests/test_schemas.py looks at the schemas themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema

from gpudiag.schemas import schema


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema(name))


def fits(document: Any, name: str) -> None:
    """Fails with what is wrong where it does not."""
    validator(name).validate(document)
