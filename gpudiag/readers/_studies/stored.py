"""A study as every Optuna storage keeps it: long tables, keyed by the storage's own ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gpudiag.errors import StudyNotFound, nearest

COLUMNS = {
    "studies": ("study_id", "study", "directions"),
    "trials": ("trial_id", "study_id", "number", "state", "start", "end"),
    "values": ("trial_id", "objective", "value"),
    "params": ("trial_id", "name", "value", "distribution"),
    "reports": ("trial_id", "step", "value"),
    "user_attrs": ("trial_id", "key", "value_json"),
    "system_attrs": ("trial_id", "key", "value_json"),
    "heartbeats": ("trial_id", "heartbeat"),
}

RUSTUNA = "Rustuna"
"""Optuna's relative in Rust, which keeps Optuna's schema."""


def no_stored(name: str) -> pd.DataFrame:
    """The long table of that name without a row."""
    return pd.DataFrame({column: [] for column in COLUMNS[name]})


@dataclass(frozen=True, eq=False)
class Stored:
    """One storage, raw.

    ``studies.directions`` is text such as ``MINIMIZE,MAXIMIZE``. ``trials`` may carry ``worker``.
    ``start`` and ``end`` are naive datetime64[us] as they stand in the storage; or UTC, where ``clocks``
    says by study_id what clock they were written in and why. ``params.value`` is the stored number,
    ``params.distribution`` JSON text.
    ``created_by`` is the Optuna version that created the storage, or RUSTUNA, empty if unknown.
    """

    studies: pd.DataFrame
    trials: pd.DataFrame
    values: pd.DataFrame
    params: pd.DataFrame
    reports: pd.DataFrame
    user_attrs: pd.DataFrame
    system_attrs: pd.DataFrame
    heartbeats: pd.DataFrame
    created_by: str = ""
    clocks: Mapping[Any, tuple[str, str]] | None = None


def pick_study(wanted: str | None, present: Iterable[str], where: object) -> None:
    """Raise StudyNotFound where ``wanted`` is not among the studies present."""
    names = list(dict.fromkeys(present))
    if wanted is None or wanted in names:
        return
    if not names:
        raise StudyNotFound(f"{where}: has no study '{wanted}'; it holds no study at all.")
    listed = ", ".join(f"'{name}'" for name in names[:20]) + (" ..." if len(names) > 20 else "")
    hint = nearest(wanted, names)
    guess = f" ({hint})" if hint.startswith("did") else ""
    raise StudyNotFound(f"{where}: has no study '{wanted}'{guess}; it has {listed}.")


def named_studies(studies: Sequence[str]) -> str:
    """'Study 'a'', 'Studies 'a', 'b', 'c' and 2 more'."""
    names = ", ".join(f"'{name}'" for name in studies[:3]) + (f" and {len(studies) - 3} more" if studies[3:] else "")
    return f"{'Study' if len(studies) == 1 else 'Studies'} {names}"
