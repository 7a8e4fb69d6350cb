"""Facts are declared once: a handle checks its name, a table its columns, and nobody names a fact by text."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from toyrun import toy_run

from gpudiag import faults
from gpudiag.facts import LABELS, Cell, Column, Declared, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures import MEASURES, PROFILES, TOPICS, fact_named
from gpudiag.measures.base import Profile, facts
from gpudiag.measures.trials import TrialState
from gpudiag.measures.utilization import GpuUtilization, UtilizationProfile, measure_utilization
from gpudiag.schemas import schema

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gpudiag"
USERS = sorted(path for name in ("advice", "rules", "report", "comparison") for path in (PACKAGE / name).rglob("*.py"))
NAME_OF_FACT = re.compile(rf"(?:{'|'.join(TOPICS)})\.[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
START_OF_ONE = re.compile(rf"(?:{'|'.join(TOPICS)})\.(?:[A-Za-z0-9_]+\.)*")


class GpuCracks(Row):
    """A GPU."""

    crack_pct: Column[float] = column("share of it that is cracked")
    first: Column[pd.Timestamp] = column("when it was first seen")
    class_: Column[str] = column("kind of crack")
    seen_by: Column[str] = column("who saw it", optional=True)


class CracksProfile(Profile, topic="cracks"):
    """What is cracked."""

    per_gpu: Rows = table_of(GpuCracks)
    n_cracks: Fact[int] = fact("cracks of all GPUs")
    worst_mib: Fact[float] = fact("size of the worst")


def cracked(**columns: object) -> pd.DataFrame:
    known = {"crack_pct": [2.5], "first": [pd.Timestamp("2026-01-01", tz="UTC")], "class": ["hair"]}
    return pd.DataFrame({**known, **columns}, index=pd.Index(["0"], name="gpu"))


def test_a_handle_on_the_class_and_a_value_on_the_profile() -> None:
    found = CracksProfile(per_gpu=cracked(), n_cracks=3, worst_mib=0.5)
    assert (found.n_cracks, found.worst_mib, found.per_gpu.at["0", "crack_pct"]) == (3, 0.5, 2.5)
    handle = CracksProfile.worst_mib
    assert (handle.key, handle.unit, handle.kind, handle.of(found)) == ("cracks.worst_mib", "MiB", "float", 0.5)
    cell = GpuCracks.crack_pct.at("0")
    assert (cell.key, cell.unit, cell.of(found)) == ("cracks.gpu.0.crack_pct", "%", 2.5)
    assert GpuCracks.crack_pct.at("7").of(found) is None
    assert (GpuCracks.class_.at("0").key, GpuCracks.class_.unit, GpuCracks.first.unit) == (
        "cracks.gpu.0.class", "", "UTC",
    )  # fmt: skip


def test_what_was_not_given_raises() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'worst_mib'"):
        CracksProfile(per_gpu=cracked(), n_cracks=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError, match="CracksProfile was made without n_cracks"):
        CracksProfile.__new__(CracksProfile).n_cracks  # noqa: B018
    with pytest.raises(AttributeError, match="wurst_mib"):
        CracksProfile.wurst_mib  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (cracked(depth_mm=[1.0]), "per_gpu has undeclared depth_mm"),
        (cracked().drop(columns="first"), "per_gpu lacks first"),
        (cracked(crack_pct=["much"]), "per_gpu holds another kind in crack_pct"),
        (cracked(first=["2026"]), "per_gpu holds another kind in first"),
    ],
)
def test_a_table_is_checked_where_faults_are_raised(frame: pd.DataFrame, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        CracksProfile(frame, 1, 1.0)
    with faults.strict(False):
        assert CracksProfile(frame, 1, 1.0).n_cracks == 1


def test_optional_columns_may_be_there_and_unknown_values_are_of_any_kind() -> None:
    CracksProfile(cracked(seen_by=["me"]), 1, 1.0)
    CracksProfile(cracked(crack_pct=[None], first=[pd.NaT]), 1, 1.0)


def test_the_docstring_holds_every_column_with_unit_and_meaning() -> None:
    text = CracksProfile.__doc__ or ""
    assert text.startswith("What is cracked.\n\n``per_gpu`` (index gpu): A GPU.\n")
    assert "    crack_pct (%): share of it that is cracked\n" in text and "    n_cracks: cracks of all GPUs\n" in text


def test_one_name_has_one_label() -> None:
    with pytest.raises(ValueError, match="mean_pct: 'mean of means' is called 'mean utilization' elsewhere"):
        type(
            "Row2", (Row,), {"__annotations__": {"mean_pct": "Column[float]"}, "mean_pct": Column("x", "mean of means")}
        )
    assert LABELS["mean_pct"] == "mean utilization"


def test_facts_are_found_by_the_name_that_they_have_in_documents() -> None:
    assert fact_named("utilization.mean_pct") is UtilizationProfile.mean_pct
    cell = fact_named("trials.state.FAIL.median_s")
    assert isinstance(cell, Cell) and cell.column is TrialState.median_s and cell.row == "FAIL"
    dotted = fact_named("utilization.gpu.node1.gpu0.mean_pct")
    assert isinstance(dotted, Cell) and (dotted.column, dotted.row) == (GpuUtilization.mean_pct, "node1.gpu0")
    for unknown in ("utilization.meen_pct", "nothing.mean_pct", "utilization", "utilization.gpu.0.meen_pct", "",
                    "trials.gpu.0.n", "utilization.gpu.mean_pct", "utilization.series.0.mean_pct"):  # fmt: skip
        assert fact_named(unknown) is None, unknown


def test_every_measure_has_a_declared_profile_of_its_topic() -> None:
    assert list(PROFILES) == list(TOPICS) and len(MEASURES) == len(PROFILES)
    for topic, profile in PROFILES.items():
        assert profile.topic == topic and profile.__doc__
        declared = {*profile.facts(), *profile.tables()}
        assert declared == set(profile.__dataclass_fields__)  # type: ignore[attr-defined]


def test_the_document_holds_what_is_declared_with_its_unit() -> None:
    found = facts(measure_utilization(toy_run()))
    assert found["mean_pct"]["value"] == pytest.approx(40.0)
    for name, entry in found.items():
        handle = fact_named(f"utilization.{name}")
        assert handle is not None and entry["unit"] == handle.unit, name


@pytest.mark.slow
def test_the_schema_of_measures_knows_every_number_and_no_other() -> None:
    whole = schema("diagnosis-4")
    known = whole["properties"]["measures"]["properties"]
    assert list(known) == list(TOPICS)
    topic = {"$defs": whole["$defs"], **known["utilization"]}
    found = facts(measure_utilization(toy_run()))
    jsonschema.validate(found, topic)
    wrong = ({"meen_pct": found["mean_pct"]}, {"mean_pct": {"value": 40.0, "unit": "s"}},
             {"mean_pct": {"value": "40", "unit": "%"}}, {"gpu.0.meen_pct": found["mean_pct"]})  # fmt: skip
    for change in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**found, **change}, topic)
    with pytest.raises(jsonschema.ValidationError, match="'mean_pct' is a required property"):
        jsonschema.validate({name: one for name, one in found.items() if name != "mean_pct"}, topic)


def texts(path: Path) -> Iterator[str]:
    """Literals of a file that are the name of a fact, or the beginning of one that is put together."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME_OF_FACT.fullmatch(node.value):
            yield node.value
        elif isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.Constant):
            start = str(node.values[0].value)
            if START_OF_ONE.fullmatch(start):
                yield start


@pytest.mark.slow
def test_nobody_names_a_fact_by_text() -> None:
    named = {str(path.relative_to(PACKAGE)): found for path in USERS if (found := list(texts(path)))}
    assert named == {}, "name a fact by its handle, such as UtilizationProfile.mean_pct"


def test_text_in_place_of_a_handle_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "advice.py"
    path.write_text(
        'a = now.fact("trials.fail_hi_pct")\nb = f"trials.state.{s}.median_s"\nc = "trials ran"\nd = f"{x}"\n'
    )
    assert sorted(texts(path)) == ["trials.fail_hi_pct", "trials.state."]


def misspelt(path: Path) -> list[str]:
    """Attributes that a file asks of a profile or a row class it imports, and that are not declared there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpudiag.measures"):
            module = importlib.import_module(node.module or "")
            classes |= {alias.asname or alias.name: getattr(module, alias.name) for alias in node.names}
    return [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if isinstance(made := classes.get(node.value.id), type) and issubclass(made, Declared | Row)
        if not hasattr(made, node.attr)
    ]


@pytest.mark.slow
def test_every_handle_is_declared() -> None:
    assert {str(path.relative_to(PACKAGE)): found for path in USERS if (found := misspelt(path))} == {}


@pytest.mark.parametrize(
    ("file", "good", "bad"),
    [
        ("advice/_engine/situation.py", "TrialsProfile.fail_high_pct", "TrialsProfile.fail_hi_pct"),
        ("advice/parallelism.py", "TrialsProfile.fail_low_pct", "TrialsProfile.fail_lo_pct"),
        ("advice/devices.py", "GpuUtilization.mean_pct", "GpuUtilization.meen_pct"),
    ],
)
def test_a_misspelt_handle_is_seen(tmp_path: Path, file: str, good: str, bad: str) -> None:
    text = (PACKAGE / file).read_text(encoding="utf-8")
    assert good in text
    path = tmp_path / "mutant.py"
    path.write_text(text.replace(good, bad))
    assert set(misspelt(path)) == {bad}


SNIPPET = """
from gpudiag.advice._engine.proposal import (SuccessCheck)
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.pruning import PruningProfile

def good(now: Situation, made: TrialsProfile) -> None:
    reveal_type(made.fail_pct)
    reveal_type(made.n_fail)
    reveal_type(TrialsProfile.fail_pct)
    reveal_type(TrialState.median_s.at("FAIL"))
    now.fact(TrialsProfile.n_fail)

def bad(now: Situation) -> None:
    now.fact(TrialsProfile.fail_hi_pct)
    now.fact("trials.fail_high_pct")
    now.fact(PruningProfile.pruner)
    now.fact(TrialState.median_s)
    SuccessCheck("trials.fail_pct", "<", 1.0, "%")
    TrialsProfile(n=1)
"""
EXPECTED = [
    'note: Revealed type is "float"',
    'note: Revealed type is "int"',
    'note: Revealed type is "gpudiag.facts.Fact[float]"',
    'note: Revealed type is "gpudiag.facts.Fact[float]"',
    'error: "type[TrialsProfile]" has no attribute "fail_hi_pct"',
    'error: Argument 1 to "fact" of "Situation" has incompatible type "str"',
    'error: Argument 1 to "fact" of "Situation" has incompatible type "Fact[str]"',
    'error: Argument 1 to "fact" of "Situation" has incompatible type "Column[float]"',
    'error: Argument 1 to "SuccessCheck" has incompatible type "str"; expected "Key"',
    "error: Missing positional arguments",
]


@pytest.mark.slow
def test_mypy_sees_the_types_of_facts_and_what_is_misspelt(tmp_path: Path) -> None:
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(path)]
    out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False).stdout
    found = [line for line in out.splitlines() if "snippet.py" in line]
    assert len(found) == len(EXPECTED), out
    for line, expected in zip(found, EXPECTED, strict=True):
        assert expected in line
