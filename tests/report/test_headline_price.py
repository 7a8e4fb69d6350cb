"""What the headline says of the price of what it advises."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpudiag.advice._engine.proposal import Gain
from gpudiag.report._sections import headline
from gpudiag.report.document import Document


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (Gain(0.3, 2.0), " Its gain is unknown: test this first."),
        (Gain(0.6, 0.9), " It makes the run 0.6–0.9× as fast."),
        (Gain(0.3, 2.0, "x", "failures"), " Fewer fail; good trials: gain unknown: test this first."),
        (Gain(0.998, 1.001), ""),
        (None, ""),
    ],
)
def test_an_unknown_gain_makes_no_run_unknown(monkeypatch: pytest.MonkeyPatch, gain: Gain | None, said: str) -> None:
    one = SimpleNamespace(gain=gain, is_the_rules_own=False, verify_first="", is_bounded=False)
    monkeypatch.setattr(headline, "recommended", lambda document, rule: cast(Any, one))
    assert headline._price(cast(Document, None), "memory-near-limit") == said
