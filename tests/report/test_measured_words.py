"""What a recommendation calls the measures by which it worked."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import gpudiag
from gpudiag.advice._engine.proposal import Prediction
from gpudiag.facts import LABELS
from gpudiag.report._sections.measured import ALONE, criterion, measured
from gpudiag.report.kinds.recommendations import _limits

ADVICE = Path(gpudiag.__file__).parent / "advice"


@pytest.mark.parametrize(
    ("key", "op", "value", "unit", "text"),
    [
        ("pruning.of_decided_pct", "<=", 91.6, "%", "pruning rate at most 91.6 %"),
        ("ledger.gpu.0.mean_util_pct", ">", 10.0, "%", "mean GPU utilization of GPU 0 above 10 %"),
        ("trials.state.COMPLETE.median_s", "<", 90.0, "s", "median duration of COMPLETE below 1 min 30 s"),
        ("trials.abandoned", "<=", 0.0, "1", "no dead trials marked RUNNING"),
        ("steps.pauses_pct", "<", 10.0, "%", "time outside of steps below 10 %"),
        ("parallelism.effective", ">=", 4.27, "1", "trials at once on average at least 4.27"),
    ],
)
def test_a_criterion_is_said_in_words(key: str, op: str, value: float, unit: str, text: str) -> None:
    assert criterion(key, op, value, unit) == text


def test_every_measure_that_advice_is_judged_by_has_words_of_its_own() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ADVICE.rglob("*.py")))
    names = {
        ast.unparse(call.args[0]).rpartition(".")[2]
        for call in ast.walk(ast.parse(text.replace("from __future__ import annotations", "")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("SuccessCheck.of", "Prediction.of")
    }
    named = {name for name in names if re.fullmatch(r"[a-z_]+_(s|pct|mib|h)|[a-z]+", name)} - {"of", "low", "share"}
    named -= {"less", "wait", "usual"}  # variables
    assert len(named) > 8
    assert {name for name in named if name not in ALONE and name not in LABELS} == set()
    assert all("_" not in measured(f"x.{name}") for name in named)


def test_a_note_that_all_predictions_share_is_said_once() -> None:
    one, other = (
        Prediction(key, 1.0, 1.0, None, "%", "Unknown.") for key in ("trials.fail_pct", "pruning.of_decided_pct")
    )
    third = Prediction("memory.max_used_pct", 1.0, 1.0, 2.0, "%", "Seen.")
    assert _limits([one, other]) == "Unknown."
    assert _limits([one, other, third]) == "For failure rate and pruning rate: Unknown. For peak GPU memory: Seen."
