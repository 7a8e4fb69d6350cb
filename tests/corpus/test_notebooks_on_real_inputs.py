"""The notebooks of single inputs on real files of every kind: studies without telemetry, telemetry without trials."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from notebookchain import complaints, run_chain

from gpudiag.diagnosis import diagnose
from gpudiag.load import load_run
from gpudiag.report._notebook import pages

pytestmark = [pytest.mark.corpus, pytest.mark.slow]

STUDIES = (
    "optuna/sqlite/optuna__optuna__3.2.0.a.db",
    "optuna/sqlite/izzak98__dist-pred__LSTM@fbeef35d.db",
    "optuna/journal/Alkem0s__Genetic-AI-Detector__optuna_journal@8022cfb2.log",
    "optuna/csv/AAI-510__AAI-510-final-project__xgboost_trials@6fd68279.csv",
    "optuna/json/DERIVED_optuna5cli__Mahdi__tcn.json",
)
TELEMETRY = (
    "telemetry/nvidia-smi-query-csv/eobo0530__vlm_optimization__gpu_log.csv",
    "telemetry/nvidia-smi-dmon/samisena__MyBiome__gpu_usage.alldash.log",
    "telemetry/nvidia-smi-table/X-yang03__hstu-jagged-dense-optimize-research__gpu_log.txt",
    "telemetry/homemade-csv/karpathy__nanoGPT__gpu_metrics.8gpu-baseline.csv",
    "telemetry/wandb/541Jack__LLaMA-Factory__run-20240621-2gpu.stats-only.wandb",
    "telemetry/rocm-smi/influxdata__telegraf__mi100_rocm571.json",
)
BOTH = (STUDIES[1], TELEMETRY[3], "artifacts/slurm_sacct/SteampunkIslande__slurm-usage-report-rs__sacct.csv")
INPUTS = {"hpo_report": STUDIES, "gpu_report": TELEMETRY, "run_report": BOTH}
RUN = [("hpo_report", STUDIES[0])]
"""What is run in a kernel, with its figures; of the others the words are looked at."""


def test_a_notebook_says_something_about_every_input(corpus: Path, tmp_path: Path) -> None:
    asked = {name: {"run": _alone(corpus / path, tmp_path / name)} for name, path in RUN}
    said = run_chain(asked, tmp_path)
    assert list(said) == [(name, "run") for name in asked]
    for about, case in said.items():
        assert case.complaints == [] and case.stderr == "", about
        assert len(case.text) > 2000, about


@pytest.mark.parametrize(
    ("name", "path"), [(name, path) for name, paths in INPUTS.items() for path in paths if (name, path) not in RUN]
)
def test_the_words_of_a_notebook_about_every_input(name: str, path: str, corpus: Path, tmp_path: Path) -> None:
    diagnosis = diagnose(load_run(_alone(corpus / path, tmp_path / "run")))
    text = pages.markdown_page(pages.filled(name, replace(diagnosis.show, draw=lambda _: None)), full=True).text
    assert complaints(text) == [] and len(text) > 2000


def _alone(path: Path, folder: Path) -> Path:
    """A run folder that holds nothing but a copy of this file."""
    folder.mkdir()
    shutil.copy(path, folder)
    return folder
