"""Studies of which no trial ended well, beside others of which some did."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.measures.trials import measure_trials


def loaded(folder: Path, **states: str) -> gd.Run:
    """A run of a table: by study the states of its trials, a minute each, by their first letters."""
    words, at = {"C": "COMPLETE", "F": "FAIL", "P": "PRUNED", "R": "RUNNING"}, 0
    rows = ["study_name,number,value,state,datetime_start,datetime_complete"]
    for study, letters in states.items():
        for number, letter in enumerate(letters):
            end = "" if letter == "R" else f"2026-03-02 {9 + at // 60:02}:{at % 60:02}:50"
            value = "0.5" if letter == "C" else ""
            rows.append(f"{study},{number},{value},{words[letter]},2026-03-02 {9 + at // 60:02}:{at % 60:02}:00,{end}")
            at += 1
    (folder / "t.csv").write_text("\n".join(rows) + "\n")
    return gd.load_run(folder / "t.csv", timezone="UTC")


def told(run: gd.Run) -> gd.Finding | None:
    return next((one for one in gd.diagnose(run).findings if one.rule == "failure-rate-high"), None)


@pytest.mark.slow
def test_a_study_that_failed_whole_is_named_though_few_trials_fail(tmp_path: Path) -> None:
    found = told(loaded(tmp_path, good="C" * 100, bad="F", worse="FFR"))
    assert found is not None and found.severity.name == "NOTE" and found.title == "All trials of a study failed"
    assert "3 of 103 finished trials failed" in found.summary
    assert " In 2 of 3 studies every finished trial failed: bad, worse." in found.summary


@pytest.mark.slow
def test_of_many_the_first_three_are_named_and_the_others_counted(tmp_path: Path) -> None:
    found = told(loaded(tmp_path, a="F", b="F", good="C" * 5, c="F", d="F", e="F"))
    assert found is not None and found.severity.name == "WARNING" and found.title == "Too many trials fail"
    assert "In 5 of 6 studies every finished trial failed: a, b, c and 2 more." in found.summary


@pytest.mark.slow
def test_one_success_or_none_at_all_names_no_study(tmp_path: Path) -> None:
    assert told(loaded(tmp_path, good="C" * 100, bad="FC")) is None
    assert told(loaded(tmp_path, good="C" * 100, bad="PF", open="R")) is None
    for states in ({"a": "FFF", "b": "FF"}, {"a": "FFF"}):
        assert measure_trials(loaded(tmp_path, **states)).n_failed_studies == 0
