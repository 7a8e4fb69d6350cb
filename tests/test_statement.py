"""A statement keeps its typed values, and is words where somebody reads it."""

from __future__ import annotations

import pytest

from gpudiag.plain_data import plain
from gpudiag.report.sentence import render
from gpudiag.statement import NOTHING, Statement


def test_values_stay_numbers_until_they_are_read() -> None:
    why = Statement("No telemetry lies within {reach_s} of {gpus}.", reach_s=51_300.0, gpus=["0", "2"])
    assert why.values["reach_s"] == 51_300.0
    assert str(why) == "No telemetry lies within 14 h 15 min of GPUs 0 and 2."


def test_a_statement_within_a_statement_is_said_where_it_stands() -> None:
    inner = Statement("by {gap_s}", gap_s=7200)
    assert str(Statement("They lie apart {how}.", how=inner)) == "They lie apart by 2 h."
    assert render("{first}; {second}", {"first": inner, "second": NOTHING}) == "by 2 h; "


def test_json_holds_the_words() -> None:
    assert plain({"why": [Statement("{n:trial}", n=1)]}) == {"why": ["1 trial"]}


def test_without_values_braces_are_text_and_without_text_it_is_false() -> None:
    assert str(Statement("a {b}")) == "a {b}" and Statement("a")
    assert not NOTHING and str(NOTHING) == ""


def test_equal_by_template_and_values() -> None:
    assert Statement("{n}", n=1) == Statement("{n}", n=1) != Statement("{n}", n=2)
    assert len({Statement("{n}", n=[1]), Statement("{n}", n=[1])}) == 1


def test_a_value_that_the_template_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match="m"):
        str(Statement("{m}", n=1))
