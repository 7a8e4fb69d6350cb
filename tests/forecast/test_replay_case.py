"""The pruner options of the sample hpo-aggressive-pruning: what the log can and cannot say of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sampleruns import sample

import gpudiag as gd
from gpudiag.errors import ConfigError
from gpudiag.run import Run

BASE = "hyperband(min_resource={},max_resource=100)"
OPTIONS = {
    "patience 5": f"patient({BASE.format(1)},patience=5)",
    "min_resource 5": f"patient({BASE.format(5)},patience=2)",
    "patience 4, min_resource 3": f"patient({BASE.format(3)},patience=4)",
}


@pytest.fixture(scope="module")
def run(samples: Path) -> Run:
    return sample("hpo-aggressive-pruning")


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS)
def test_the_pruning_rate_that_was_promised_is_not_in_the_log(run: Run, option: str) -> None:
    """'From 86.5 % to 60-70 %' was a guess: all but the COMPLETE trials were cut before these pruners may decide."""
    found = gd.replay_pruner(run, OPTIONS[option])
    assert found.level == "bounds"
    assert found.n_trials == 8 + 173
    assert found.identified_pct == pytest.approx(100 * 8 / 181)
    assert found.logged_pruned_pct == pytest.approx(100 * 173 / 181)
    assert found.pruned_pct.low == 0
    assert found.pruned_pct.high >= 95
    assert found.saved_steps.high < 0.06 * found.logged_steps  # it cannot save: it only lets trials live longer
    assert found.saved_gpu_h.low < 0
    assert "96 % of the trials would have run beyond what was recorded" in found.reason


@pytest.mark.slow
def test_the_traps_are_named(run: Run) -> None:
    found = gd.replay_pruner(run, OPTIONS["patience 5"])
    text = " ".join(found.notes)
    assert "repeats 0 of 173 prunes" in text  # a patience of 2 can't prune before the fourth report
    assert "It is not the pruner that ran." in text
    assert "no COMPLETE trial went beyond 43" in text  # though 100 steps were stated
    assert "8 trials completed with reports, 15 are needed" in text
    assert "survived the logging pruner" in text
    assert "run 15 trials or more of the next study to the end" in text
    assert found.workers == 4  # an abandoned trial makes it look like five
    assert found.rank["spearman"].isna().all()


def test_a_study_that_is_not_there_is_refused_with_those_that_are(run: gd.Run) -> None:
    (name,) = run.trials["study"].unique()
    with pytest.raises(ConfigError, match=f"no study 'other' in this run; its studies are: {name}"):
        gd.replay_pruner(run, "median()", study="other")
