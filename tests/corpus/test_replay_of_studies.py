"""Replays on every real study with intermediate values: none fails, and a pruner's own log lies within its bounds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from test_optuna import read

import gpudiag as gd
from gpudiag.errors import GpudiagError
from gpudiag.forecast.pruning.play import as_recorded, backtest
from gpudiag.forecast.pruning.pruner import quiet, resolve_pruner
from gpudiag.forecast.pruning.recorded import recorded_studies
from gpudiag.forecast.pruning.stage import Stage
from gpudiag.run import Run

pytestmark = [pytest.mark.corpus, pytest.mark.slow]

FAMILIES = ("median()", "hyperband()")
MOST_TRIALS = 30


def studies(corpus: Path) -> list[tuple[str, Run]]:
    """Each study of one objective with curves of decided trials, as a run; large ones by their first trials."""
    found = []
    seen: set[int] = set()  # the same study at two commits is one
    for path in sorted((corpus / "optuna").glob("*/*")):
        if path.suffix in (".csv", ".json"):
            continue
        found_in = read(path)
        directions = dict(zip(found_in.studies["study"], found_in.studies["directions"], strict=True))
        for name in found_in.reports["study"].unique():
            run = _run(found_in, name)
            decided = run.trials[run.trials["state"].isin(["COMPLETE", "PRUNED"])]["trial"]
            content = int(pd.util.hash_pandas_object(run.reports[["trial", "step", "value"]]).sum())
            if "," not in directions[name] and run.reports["trial"].isin(decided).any() and content not in seen:
                seen.add(content)
                found.append((f"{path.name}: {name}", run))
    return found


def _run(study_file: object, name: str) -> Run:
    tables: dict[str, pd.DataFrame] = {}
    for table in ("trials", "reports", "studies"):
        frame = getattr(study_file, table)
        tables[table] = frame[frame["study"] == name].reset_index(drop=True)
    trials = tables["trials"].head(MOST_TRIALS)
    reports = tables["reports"]
    return Run(trials=trials, reports=reports[reports["trial"].isin(trials["trial"])], studies=tables["studies"])


def test_every_study_is_replayed_and_holds_the_outcome_of_its_own_pruner(corpus: Path) -> None:
    """The corpus does not say which pruner ran. Where Optuna's, with its defaults, repeats every prune of a log and
    prunes nowhere else, it is taken for the one that ran, and what was logged must lie within the bounds of its replay.
    """
    runs = studies(corpus)
    owned = 0
    for where, run in runs:
        for text in FAMILIES:
            try:
                found = gd.replay_pruner(run, text)
            except GpudiagError as error:
                pytest.fail(f"{where}: {text}: {error}")
            assert found.steps.low <= found.steps.high, where
            assert 0 <= found.pruned_pct.low <= found.pruned_pct.high <= 100, where
            assert repr(found), where
            if not (run.trials["state"] == "PRUNED").any():
                continue
            with quiet():
                record = recorded_studies(run)[0]
                pruner, _ = resolve_pruner(text)
                test = backtest(as_recorded(record), Stage(pruner, record.study, record.direction), text)
            if test.prunes and test.exact:
                owned += 1
                assert found.steps.low <= found.logged_steps <= found.steps.high, (where, text)
                assert found.pruned_pct.low <= found.logged_pruned_pct <= found.pruned_pct.high, (where, text)
    assert len(runs) >= 15
    assert owned >= 4
