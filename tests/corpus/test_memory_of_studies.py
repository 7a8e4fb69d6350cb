"""Memory capacity of every real study, and of real studies laid over real memory logs: answers or clear refusals."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import GpudiagError, NotMeasurable
from gpudiag.forecast.memory.capacity import MemoryCapacity
from gpudiag.forecast.memory.peaks import NO_MEMORY
from gpudiag.run import Run

pytestmark = [pytest.mark.corpus, pytest.mark.slow]

LOGS = (
    "homemade-csv/UdonsiKalu__logs__gpu_monitor.prose.log",
    "nvidia-smi-query-csv/AkramMoustafa__MetaMotion-Net__gpu_usage.log",
    "nvidia-smi-query-csv/beam11221__plato__gpu_log.noheader.csv",
    "nvidia-smi-query-csv/eobo0530__vlm_optimization__gpu_log.csv",
    "nvidia-smi-table/internationalJoke__aucurriculum__gpu_monitor_G_-5dB.log",
    "wandb/0-KaiKai-0__stanford_alpaca__run-20240313-8gpu.stats-only.wandb",
    "wandb/tkjunsei__OpenAD__run-20241123_154046-te9fbzz8.stats-only.wandb",
)
STUDIES = (
    "sqlite/lucasmrdt__sailboat-drl__optuna@c6f52094.db",
    "sqlite/Mahdi-gohari__DeepLearning__optuna_itransformer_fixed_cv_study_v3@86541e21.db",
    "journal/Alkem0s__Genetic-AI-Detector__optuna_journal@8022cfb2.log",
)
FEW = 6
"""Of the studies alone every sixth: nothing in them differs to who only looks for memory."""
NO_GPU_LOG = (NO_MEMORY, "No trial has a start and an end.")


def identities(found: MemoryCapacity) -> str:
    """All that a person or a program sees, and it is whole."""
    json.dumps(found.to_dict(), allow_nan=False)
    text = repr(found)
    assert found._repr_html_() and found._repr_markdown_()
    assert "nan" not in text.replace(found.run, "").lower().split(), text
    return " ".join(text.split())


def laid_over(trials: Run, log: Run) -> Run:
    """The study as if it had run from the first reading of the log to the last."""
    first, last = trials.trials["start"].min(), trials.trials["end"].max()
    start, end = log.gpu["time"].min(), log.gpu["time"].max()
    scale = (end - start) / (last - first)
    moved = {
        name: (start + (trials.trials[name] - first) * scale).astype(trials.trials[name].dtype)
        for name in ("start", "end")
    }
    info = replace(log.info, clock=replace(log.info.clock, joined=True))
    return replace(log, info=info, trials=trials.trials.assign(**moved), studies=trials.studies, reports=trials.reports)


def test_every_study_alone(corpus: Path) -> None:
    """Without memory of a GPU: one sentence, no number at once that fits, and crashes as they were."""
    told = 0
    for path in sorted((corpus / "optuna").glob("*/*"))[::FEW]:
        try:
            run = gd.Run.from_files(trials=str(path), timezone="UTC")
            found = gd.memory_capacity(run)
        except NotMeasurable as refusal:
            assert str(refusal).endswith(".") and "no trials table" in str(refusal), path.name
            continue
        except GpudiagError as error:
            pytest.fail(f"{path.name}: {error}")
        told += 1
        text = identities(found)
        assert found.reason in NO_GPU_LOG and found.reason in text, path.name
        assert math.isnan(found.hard_fit_k) and math.isnan(found.recommended_k), path.name
        assert found.table[["typical_mib", "p_overflow_pct"]].isna().all(axis=None), path.name
        assert "No number of trials at once is recommended" in text, path.name
        failed = int((run.trials["state"] == "FAIL").sum())
        assert found.crashes.by_class.query("kind != 'lost'")["n_trials"].sum() <= failed, path.name
    assert told >= 80 // FEW


@pytest.mark.many
@pytest.mark.parametrize("log", LOGS)
def test_studies_over_the_memory_of_another_job(corpus: Path, log: str) -> None:
    """Nothing in such a log moves with the trials: that is found out, but for one study by chance; no trial is given
    more than was ever in use, and no number lies outside its interval.
    """
    telemetry = gd.Run.from_files(telemetry=[str(corpus / "telemetry" / log)], timezone="UTC")
    most = float(telemetry.gpu["mem_used_mib"].max())
    told = 0
    for study in STUDIES:
        trials = gd.Run.from_files(trials=str(corpus / "optuna" / study), timezone="UTC")
        found = gd.memory_capacity(laid_over(trials, telemetry))
        text = identities(found)
        if found.reason:
            assert found.reason.endswith(".") and found.reason in text, study
            assert math.isnan(found.hard_fit_k), study
        told += not found.reason
        table = found.table.set_index("k")
        peaks = found.trials["peak_mib"].dropna()
        assert (peaks >= 0).all() and (peaks <= 1.1 * most).all(), (study, peaks.max(), most)
        for low, value, high in (
            ("p_low_pct", "p_overflow_pct", "p_high_pct"),
            ("crash_low_pct", "crash_pct", "crash_high_pct"),
            ("rate_day_low", "rate_day", "rate_day_high"),
            ("net_day_low", "net_day", "net_day_high"),
        ):
            known = table[[low, value, high]].dropna()
            assert (np.diff(known.to_numpy(float), axis=1) >= -1e-9).all(), (study, known)
        seen = table["seen_max_mib"].dropna()
        assert (seen <= most).all() and pd.notna(found.n_trials), study
    assert told <= 1
