from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.faults import Fault
from gpudiag.report._notebook.told_faults import errors_of

RULE = {"part": "rule gpu-idle", "type": "KeyError", "place": "gpudiag/rules/idleness.py:3", "trace": ["a:1 f"]}
FIGURE = {"part": "figure ledger", "type": "ValueError", "place": "gpudiag/plots/ledger.py:9", "trace": []}


def _write(folder: Path, errors: object, metadata: object) -> None:
    """A report whose diagnosis and notebook also hold what is not read."""
    (folder / "diagnosis.json").write_text(json.dumps({"schema": "any", "errors": errors}), encoding="utf-8")
    cells = [{"cell_type": "markdown", "source": "#"}, {"outputs": [{"metadata": metadata, "data": {}}]}]
    (folder / "report.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}), encoding="utf-8")


def test_faults_of_the_diagnosis_come_first_then_those_of_figures(tmp_path: Path) -> None:
    _write(tmp_path, [RULE], {"gpudiag": {"error": FIGURE, "name": "ledger"}, "tags": []})
    assert errors_of(tmp_path) == [
        Fault("rule gpu-idle", "KeyError", "gpudiag/rules/idleness.py:3", ("a:1 f",)),
        Fault("figure ledger", "ValueError", "gpudiag/plots/ledger.py:9"),
    ]


def test_a_folder_without_a_report_tells_of_none(tmp_path: Path) -> None:
    assert errors_of(tmp_path) == []


@pytest.mark.parametrize(("errors", "metadata"), [([{**RULE, "part": 3}], {}), ([], {"gpudiag": {"error": "x"}})])
def test_what_gpudiag_does_not_write_is_one_sentence(errors: object, metadata: object, tmp_path: Path) -> None:
    _write(tmp_path, errors, metadata)
    with pytest.raises(InputError, match=r"is no file of a report as gpudiag .* writes it\.$"):
        errors_of(tmp_path)
