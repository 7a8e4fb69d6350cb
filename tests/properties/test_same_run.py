"""What changes nothing about a run changes nothing about its document: order, repeats, clocks, empty columns."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pandas as pd
import pytest
from anyrun import Recipe, made, recipes, whole
from asked import answer
from drawn import few_of
from hypothesis import HealthCheck, Phase, given, settings

from gpudiag.diagnosis import diagnose
from gpudiag.run import Run
from gpudiag.schema import TABLES

RELAXED = list(HealthCheck)
DATE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?|\b\d\d:\d\d(:\d\d(\.\d+)?)?\b|\d{4}-\d\d-\d\d"
)
BY = pd.Timedelta(days=2 * 365 + 1, hours=5, seconds=7)


def document(run: Run) -> Any:
    return answer(lambda: json.loads(diagnose(run).to_json()))


@cache
def document_of(name: str) -> Any:
    return document(whole(name))


def alike(a: Any, b: Any, where: str = "") -> list[str]:
    """Where two documents differ: numbers by more than rounding, the rest at all."""
    if isinstance(a, dict) and isinstance(b, dict):
        missing = [f"{where}.{key} is in one alone" for key in a.keys() ^ b.keys()]
        return missing + [line for key in a.keys() & b.keys() for line in alike(a[key], b[key], f"{where}.{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [line for i, pair in enumerate(zip(a, b, strict=True)) for line in alike(*pair, f"{where}[{i}]")]
    if isinstance(a, float | int) and isinstance(b, float | int):
        return [] if math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) else [f"{where}: {a} and {b}"]
    return [] if a == b else [f"{where}: {str(a)[:200]!r} and {str(b)[:200]!r}"]


def counted_out(document: Any) -> Any:
    """Without the number of samples."""
    run = {key: value for key, value in document["run"].items() if key != "n_samples"} if document else None
    return document and {**document, "run": run}


def undated(document: Any) -> Any:
    """Without dates and times of day."""
    return None if document is None else json.loads(DATE.sub("@", json.dumps(document, ensure_ascii=False)))


def reordered(run: Run) -> Run:
    return run.map_tables(lambda _, table: table.sample(frac=1, random_state=5, ignore_index=True))


def repeated(run: Run) -> Run:
    """Every row twice, as where two files hold the same; of events nobody can tell."""
    return run.map_tables(
        lambda name, table: table if name == "events" else pd.concat([table, table], ignore_index=True)
    )


def later(run: Run) -> Run:
    def shift(_: str, table: pd.DataFrame) -> pd.DataFrame:
        times = [name for name in table if isinstance(table[name].dtype, pd.DatetimeTZDtype)]
        return table.assign(**{name: (table[name] + BY).astype(table[name].dtype) for name in times})

    return run.map_tables(shift)


def same(first: Any, second: Any, *, dated: bool = True) -> None:
    """Two documents are alike: in all but the number of samples, or in all but times."""
    documents = [counted_out(one) if dated else undated(one) for one in (first, second)]
    assert not (found := alike(*documents)), found[:12]


BASE = pytest.mark.parametrize("name", ["healthy", "idle-second-gpu/baseline", "real-h100/three-workers"])
ANY = settings(max_examples=few_of(12), suppress_health_check=RELAXED, phases=[Phase.explicit, Phase.generate])


@pytest.mark.slow
@BASE
def test_order_and_repeats_of_rows(name: str) -> None:
    same(document_of(name), document(repeated(reordered(whole(name)))))


@pytest.mark.slow
@BASE
def test_all_clocks_shifted_alike(name: str) -> None:
    same(document_of(name), document(later(whole(name))), dated=False)


@pytest.mark.slow
@ANY
@given(recipes(1))
def test_order_repeats_and_all_clocks_of_any_run_shifted_alike(recipe: Recipe) -> None:
    run = answer(lambda: made(recipe))
    if run is not None:
        before = document(run)
        same(before, document(repeated(reordered(run))))
        same(before, document(later(run)), dated=False)


@pytest.mark.slow
def test_a_column_that_holds_nothing_is_no_column() -> None:
    blank = without = whole("real-h100/three-workers")
    for table in ("gpu", "trials", "host"):
        held = getattr(blank, table)
        known = [column for column in held.columns if column in TABLES[table].names]
        chosen = [column for column in known if column not in TABLES[table].required]
        empty = held.assign(**{column: held[column].mask(held[column].notna()) for column in chosen})
        blank, without = replace(blank, **{table: empty}), replace(without, **{table: held.drop(columns=chosen)})
    same(document(blank), document(without))


@pytest.mark.parametrize("name", ["healthy", "real-h100/three-workers", "memory-exhaustion"])
@pytest.mark.slow
def test_what_was_not_recorded_has_no_number(name: str) -> None:
    """Utilization alone: no power, energy, temperature, memory or clock frequency; and of no trials, none of theirs."""
    run = whole(name)
    gpu = run.gpu[["time", "gpu", "util_pct"]]
    bare = Run(gpu=gpu, info=replace(run.info, settings=type(run.info.settings)()))
    found = document(bare)
    numbers = [
        (topic, key, one)
        for topic, values in found["measures"].items()
        for key, one in values.items()
        if isinstance(one["value"], float | int) and not isinstance(one["value"], bool)
    ]
    unseen = ("W", "kWh", "J", "°C", "MHz", "MiB", "GiB", "trials/h")
    found_unseen = [(topic, key) for topic, key, one in numbers if one["unit"] in unseen and one["value"] != 0]
    assert {key.rpartition(".")[2] for _, key in found_unseen} <= {"held_mib"}  # from which on memory counts as held
    assert "trials" not in found["measures"] and "parallelism" not in found["measures"]
    assert not found["costs"] and found["run"]["n_trials"] == 0
