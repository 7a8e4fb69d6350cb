"""A small run whose every number can be worked out by hand, for tests of everything that shows a run.

Two GPUs for an hour at 10 s: GPU 0 at 80 %, GPU 1 never used. Twelve trials in two workers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.manifest import Settings
from gpudiag.readers._io.problems import Problem
from gpudiag.report.document import Document
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import Rule, rule
from gpudiag.run import ClockRecord, InputRecord, Run, RunInfo
from gpudiag.schema import GPU, GPUS, TRIALS, conform
from gpudiag.statement import Statement

START = pd.Timestamp("2026-03-01 10:00:00", tz="UTC")
STATES = ("COMPLETE", "PRUNED", "PRUNED", "PRUNED", "FAIL", "PRUNED") * 2


def toy_run(name: str = "toy", *, samples: int = 361, trials: int = 12) -> Run:
    """The run described above; fewer samples or trials where told."""
    return Run(
        gpu=_gpu(samples),
        gpus=conform(_gpus(), GPUS),
        trials=conform(_trials(trials), TRIALS),
        info=RunInfo(
            name=name,
            timezone="Asia/Taipei",
            settings=Settings(parallel=2),
            inputs=(_input("gpu.csv", "telemetry"), _input("optuna.db", "trials")),
            clock=ClockRecord(confidence="strong", method="given", evidence=Statement("Stated in run.toml.")),
            notes=("written by hand",),
        ),
    )


def _gpu(samples: int) -> pd.DataFrame:
    time = START + pd.to_timedelta(np.arange(samples) * 10.0, unit="s")
    frames = [
        pd.DataFrame({"time": time, "gpu": gpu, "util_pct": util, "mem_used_mib": used, "mem_total_mib": 24564.0,
                      "power_w": watt, "power_limit_w": 450.0})
        for gpu, util, used, watt in (("0", 80.0, 12000.0, 300.0), ("1", 0.0, 18.0, 20.0))
    ]  # fmt: skip
    return conform(pd.concat(frames), GPU)


def _gpus() -> pd.DataFrame:
    return pd.DataFrame({"gpu": ["0", "1"], "name": "NVIDIA GeForce RTX 4090", "mem_total_mib": 24564.0})


def _trials(n: int) -> pd.DataFrame:
    """Two workers, each trial 10 minutes after the one before it on its worker; the last one never ends."""
    begin = START + pd.to_timedelta((np.arange(n) // 2) * 600.0, unit="s")
    end = pd.Series(begin + pd.to_timedelta(590.0, unit="s"))
    state = list(STATES[:n])
    if n:
        state[-1], end.iloc[-1] = "RUNNING", pd.NaT
    return pd.DataFrame(
        {"study": "s", "trial": np.arange(n), "state": state, "start": begin, "end": end, "user_attrs.token": "hunter2"}
    )


def _input(path: str, kind: str) -> InputRecord:
    problems = (Problem("torn line", 2, 17, "2026/03/01 1", True),) if kind == "telemetry" else ()
    return InputRecord(
        path, kind, "toy", "ab" * 32, 722, start=START.isoformat(), end=START.isoformat(), problems=problems
    )


def renamed(run: Run, name: str) -> Run:
    return replace(run, info=replace(run.info, name=name))


@dataclass(frozen=True)
class ToyProfile:
    """``cracks``, and a number that nobody knows."""

    cracks: int = 7
    unknown_pct: float = float("nan")


def measure_toy(run: Run) -> ToyProfile:
    """A measure that works on every run."""
    return ToyProfile()


@rule(
    measure=measure_toy,
    severity="critical",
    title="The toy is broken",
    remedy="Mend `it` with glue.",
    refuted_by="It runs.",
)
def toy_broken(toy: ToyProfile, *, max_cracks: float = 3.0) -> Evidence | None:
    """A broken toy is no fun. Source: experience."""
    return Evidence(
        "7 cracks were seen.", {"n_cracks": 7, "crack_pct": 12.34}, {"gpu": "1"}, lost_gpu_h=0.5, margin=4.0
    )


@rule(measure=measure_toy, severity="note", title="The toy is dear", remedy="Buy another.")
def toy_dear(toy: ToyProfile) -> Evidence | None:
    """Prices matter."""
    return Evidence("It cost more than it should.", lost_gpu_h=2.0)


@rule(measure=measure_toy, severity="warning", title="The toy is old", checks="Age of the toy", remedy="")
def toy_old(toy: ToyProfile) -> Evidence | None:
    """Old toys break."""
    return None


@rule(measure=measure_toy, severity="warning", title="The toys quarrel", remedy="")
def toys_quarrel(toy: ToyProfile) -> Evidence | None:
    """Needs two."""
    raise NotApplicable("There is one toy.")


TOY_RULES: tuple[Rule, ...] = (toy_broken, toy_dear, toy_old, toys_quarrel)


@cache
def toy_diagnosis() -> Diagnosis:
    """Of the toy run by the toy rules, made once a process, to be looked at; its ``to_dict()`` is anew each time."""
    return diagnose(toy_run(), rules=TOY_RULES)


@cache
def whole_toy_diagnosis() -> Diagnosis:
    """The same by the rules of gpudiag."""
    return diagnose(toy_run())


def typed(document: dict[str, Any]) -> Document:
    """A document as JSON holds it, perhaps changed for a test, as the renderers take it."""
    return _adapter().validate_python(document)


def with_only(**parts: Any) -> Document:
    """The document of a run without data, and these parts of it."""
    return typed({**diagnose(Run(), rules=()).to_dict(), **parts})


@cache
def _adapter() -> TypeAdapter[Document]:
    return TypeAdapter(Document)
