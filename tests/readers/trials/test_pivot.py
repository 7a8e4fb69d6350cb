"""Long tables to columns: kinds of columns, gaps, damage; and what a stored number means."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.distributions import Distribution, parse_distribution
from gpudiag.readers._studies.pivot import decode_all, pivot_attributes, pivot_params

FLOAT = distribution_to_json(FloatDistribution(0, 1))
INT = distribution_to_json(IntDistribution(0, 9))


def params(*rows: tuple[int, str, float, str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["row", "name", "value", "distribution"])


def attributes(*rows: tuple[int, str, str | None]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["row", "key", "value_json"])


def test_integers_stay_integers_unless_there_is_a_gap() -> None:
    out = pivot_params(params((0, "a", 3.0, INT), (1, "a", 4.0, INT), (1, "b", 5.0, INT)), 2, ProblemLog())
    assert out["params.a"].dtype == "int64" and out["params.a"].tolist() == [3, 4]
    np.testing.assert_array_equal(out["params.b"], [np.nan, 5.0])


def test_choices_may_change_and_be_of_any_kind() -> None:
    one = distribution_to_json(CategoricalDistribution(("a", "b")))
    other = '{"name": "CategoricalDistribution", "attributes": {"choices": ["b", null, [1, 2]]}}'
    out = pivot_params(params((0, "c", 1.0, one), (1, "c", 0.0, other), (2, "c", 2.0, other)), 3, ProblemLog())
    assert out["params.c"].tolist() == ["b", "b", "[1, 2]"]
    numbers = distribution_to_json(CategoricalDistribution((16, 32)))
    assert pivot_params(params((0, "n", 1.0, numbers)), 1, ProblemLog())["params.n"].tolist() == [32]


def test_a_choice_out_of_range_is_unknown() -> None:
    text = distribution_to_json(CategoricalDistribution(("a", "b")))
    out = pivot_params(params((0, "c", 7.0, text), (1, "c", 0.0, text)), 2, ProblemLog())
    assert pd.isna(out["params.c"][0]) and out["params.c"][1] == "a"


def test_unknown_distributions_are_counted_and_left_out() -> None:
    problems = ProblemLog()
    out = pivot_params(params((0, "a", 1.0, "{"), (0, "b", 1.0, FLOAT), (1, "a", 0.5, FLOAT)), 2, problems)
    np.testing.assert_array_equal(out["params.a"], [np.nan, 0.5])
    assert [(p.kind, p.count, p.lost) for p in problems.all] == [("parameter of unknown distribution", 1, True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "LogUniformDistribution", "attributes": {"low": 1, "high": 2}}', Distribution("float")),
        ('{"name": "DiscreteUniformDistribution", "attributes": {"low": 1, "high": 2, "q": 1}}', Distribution("float")),
        ('{"name": "IntLogUniformDistribution", "attributes": {"low": 1, "high": 2}}', Distribution("int")),
        ('{"type": "categorical", "choices": ["a", null]}', Distribution("choice", ("a", None))),
        ('{"type": "int", "low": 1, "high": 2}', Distribution("int")),
        ('{"name": "QuantumDistribution", "attributes": {}}', None),
        ('{"name": "CategoricalDistribution", "attributes": {}}', None),
        ("[1]", None),
        ("", None),
    ],
)
def test_every_name_a_distribution_ever_had(text: str, expected: Distribution | None) -> None:
    assert parse_distribution(text) == expected


SPACES = st.sampled_from(
    [
        FloatDistribution(-5, 5),
        FloatDistribution(1e-5, 1, log=True),
        IntDistribution(-3, 3),
        IntDistribution(1, 64, log=True),
    ]
    + [CategoricalDistribution(choices) for choices in (("a", "b"), (1, 2.5, None, "x", True), (False, True))]
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data(), SPACES, st.integers(1, 6))
def test_every_cell_is_what_optuna_says(data: st.DataObject, space: BaseDistribution, rows: int) -> None:
    text = distribution_to_json(space)
    highest = len(space.choices) - 1 if isinstance(space, CategoricalDistribution) else None
    if highest is not None:
        stored = [float(data.draw(st.integers(0, highest))) for _ in range(rows)]
    elif isinstance(space, IntDistribution):
        stored = [float(data.draw(st.integers(space.low, space.high))) for _ in range(rows)]
    else:
        stored = [data.draw(st.floats(space.low, space.high)) for _ in range(rows)]  # type: ignore[attr-defined]
    out = pivot_params(params(*((i, "p", value, text) for i, value in enumerate(stored))), rows, ProblemLog())[
        "params.p"
    ]
    for ours, value in zip(out, stored, strict=True):
        theirs = space.to_external_repr(value)
        assert pd.isna(ours) if theirs is None else ours == theirs


def test_attributes_by_kind() -> None:
    long = attributes(
        (0, "x", "0.5"),
        (1, "x", "2"),
        (0, "b", "true"),
        (1, "b", "false"),
        (0, "n", "7"),
        (0, "t", '"a"'),
        (1, "t", "null"),
    )
    out = pivot_attributes(long, 2, "user_attrs.", ProblemLog())
    assert out["user_attrs.x"].tolist() == [0.5, 2.0]
    assert out["user_attrs.b"].dtype == bool
    np.testing.assert_array_equal(out["user_attrs.n"], [7.0, np.nan])
    assert out["user_attrs.t"][0] == "a" and pd.isna(out["user_attrs.t"][1])


def test_a_text_that_is_no_json_does_not_spoil_its_column() -> None:
    problems = ProblemLog()
    texts = ['{"a": 1}', "secret", None, "1], [2"]
    assert decode_all(texts, problems) == ['{"a": 1}', "secret", None, "1], [2"]
    assert [(p.kind, p.count, p.example) for p in problems.all] == [("attribute that is not JSON, kept as text", 2, "")]


@pytest.mark.slow
@given(
    st.lists(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=3))
)
def test_decoding_in_one_pass_equals_decoding_one_by_one(values: list[object]) -> None:
    texts = [json.dumps(value) for value in values]
    expected = [text if isinstance(json.loads(text), list) else json.loads(text) for text in texts]
    assert repr(decode_all(list(texts), ProblemLog())) == repr(expected)
