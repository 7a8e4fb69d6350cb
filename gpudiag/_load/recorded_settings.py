"""What a recording states of the input pipeline, in place of run.toml."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from pydantic import ValidationError

from gpudiag.manifest import DataLoader
from gpudiag.readers._io.record_format import SETTINGS_KIND


def with_recorded(stated: DataLoader, events: pd.DataFrame) -> DataLoader:
    """What run.toml states; else, setting by setting, what the last session that tells it was given."""
    known: dict[str, Any] = {}
    for detail in events.loc[events["kind"] == SETTINGS_KIND, "detail"].dropna():
        known |= _possible(detail)
    return DataLoader(**known | stated.model_dump(exclude_unset=True))


def _possible(detail: str) -> dict[str, Any]:
    """The settings of one event; what can be none of them is left out."""
    try:
        given = json.loads(detail)
    except ValueError:
        return {}
    out: dict[str, Any] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        try:
            out |= DataLoader.model_validate({name: value}).model_dump(exclude_unset=True)
        except ValidationError:
            continue
    return out
