"""The lines of a remedy are of the framework that the run uses: they compile, and every name in them exists there."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import optuna
import pandas as pd
import pytest

from gpudiag.advice import REMEDIES
from gpudiag.advice._engine.proposal import Proposal
from gpudiag.advice._engine.situation import Situation
from gpudiag.forecast.memory.constraint import Constraint, share_code
from gpudiag.forecast.memory.net import NetGains
from gpudiag.manifest import DataLoader, Settings
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.failure_rates import FailureRatesProfile
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.pruning import PruningProfile
from gpudiag.measures.search import SearchProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.rules import RULES
from gpudiag.statement import Statement
from tests.advice.capacities import levels
from tests.advice.situations import HALF, Told, found, situation, trials, use
from tests.rules.small_profiles import profile

PARAMS = {
    "torch": ["params.lr", "params.batch_size"],
    "lightgbm": ["params.num_leaves"],
    "xgboost": ["params.colsample_bytree", "params.max_depth"],
}
RUNS = [(reader, framework) for reader in ("optuna-sqlite", "task-log") for framework in PARAMS]
SERIOUS = ("loader-slow", "cpu-bound-input", "io-wait", "steps-data", "memory-near-limit", "failures-out-of-memory",
           "failures-after-full-memory", "gpu-unused", "gpu-idle-beside-busy")  # fmt: skip
"""Findings beside which some remedies are not proposed."""
BOUNDS = replace(HALF, startup_pct=30.0, startup_only_pct=12.0, parallel=2.0)
FILLED = {"DATA"}
"""Words in capitals stand for what the reader fills in."""
OWN = {"train", "objective", "args", "tasks", "task", "data", "model", "batch", "optimizer", "step", "path", "params",
       "settings", "devices", "url", "device", "loss", "sys", "os", "gc", "subprocess", "logging", "functools",
       "multiprocessing", "space", "load_data", "epoch", "evaluate"}  # fmt: skip
"""What every training script has under some name, and modules of the standard library."""
BY_FRAMEWORK = {
    "torch": {"torch", "DataLoader", "DistributedDataParallel"},
    "lightgbm": set[str](),
    "xgboost": set[str](),
}
OPTUNA = {"optuna", "study", "trial", "TrialState", "TPESampler"}
TORCH_NAMES = {
    "autocast", "bfloat16", "compile", "save", "device", "set_float32_matmul_precision", "OutOfMemoryError", "cuda",
    "cuda.OutOfMemoryError", "cuda.empty_cache", "cuda.mem_get_info", "cuda.set_per_process_memory_fraction",
    "cuda.device_count", "distributed", "distributed.checkpoint",
    "distributed.checkpoint.async_save", "utils", "utils.data", "utils.data.DistributedSampler",
}  # fmt: skip
"""What is used of PyTorch 2 (docs.pytorch.org/docs/stable): it is not installed here."""
OF_OBJECTS = {
    "trial": [*dir(optuna.trial.Trial), "study"],
    "study": [*dir(optuna.study.Study), "pruner"],
    "model": ["state_dict", "no_sync"],  # a torch.nn.Module, or DistributedDataParallel; get_params is scikit-learn's
    "loss": ["item", "backward"],
    "batch": ["to"],
    "optimizer": ["state_dict"],
}


def everything_found(reader: str, framework: str, *, gridded: bool) -> Any:
    """A run of which each rule found its fault, and of which most is known; ``gridded``: its sampler was a grid."""
    table = pd.DataFrame(index=range(20), columns=PARAMS[framework])
    capacity = SimpleNamespace(
        reason="", limits=False, n_gpus=1, hard_fit_k=3.0, recommended_k=2.0, gains=NetGains(), workers=lambda now: 0,
        overflow=lambda k: SimpleNamespace(high=1.0),
        table=pd.DataFrame({"k": [1, 2, 3], "hard_fit": [True] * 3, "net_day": [1.0] * 3}),
        needed_constraint=lambda: Constraint(2, 400.0, 9, 1, 1, 1, None, share_code(400)),
        room=SimpleNamespace(usable_mib=980.0, total_mib=1000.0),
    )  # fmt: skip
    told = Told(n_trials=20, capacity=capacity)
    told.run.trials = table.assign(study="s")
    loader = DataLoader(num_workers=2, prefetch_factor=2, persistent_workers=False, batch_size=8)
    loader = loader if framework == "torch" else DataLoader()
    settings = Settings(parallel=2, cpu_cores=64, pruner="median(n_warmup_steps=1)", ram_gib=64.0)
    given = (SimpleNamespace(reader=reader),)
    told.run.info = SimpleNamespace(settings=settings, dataloader=loader, inputs=given, incomplete=frozenset())
    repeats = pd.DataFrame({"study": "s", "trial": range(4), "together": True, "why": ["", "seed", "grid", "enqueued"]})
    space = pd.DataFrame({"name": ["a"], "values": [[1, 2]]})
    used, seen = levels({1: 300.0, 2: 600.0, 3: 990.0})
    rows = pd.DataFrame({"from_s": [0.0], "n_workers": [2]})
    given = (
        use(30.0, {"0": {"mean_pct": 30.0}, "1": {"mean_pct": 1.0}}),
        used,
        profile(ParallelismProfile, concurrency=seen.concurrency, levels=seen.levels, workers=rows, configured=3.0,
                effective=1.5, n_timed=20, peak=2),
        trials({"COMPLETE": {"median_s": 60.0, "total_worker_s": 600.0}, "FAIL": {"median_s": 90.0, "n": 5}}, n=20,
               n_running=1, fail_low_pct=5.0, fail_high_pct=9.0, fail_pct=7.0),
        profile(FailuresProfile, n_fail=5, n_told=0),
        profile(FailureRatesProfile, condition=Statement("{name} ≥ {least}", name="batch", least=512.0), n_oom_with=9,
                n_oom_compared=9, n_well_with=0, n_well_compared=20),
        profile(StepsProfile, evaluations_s=60.0, n_evaluations=2, checkpoints_s=60.0, checkpoint_s=5.0,
                checkpoint_every_s=9000.0, n_resumed=2, mttf_s=4000.0),
        profile(CostsProfile, startup_share_pct=30.0, startup_only_pct=12.0),
        profile(PruningProfile, of_decided_pct=90.0, of_decided_low_pct=80.0, median_step=4.0),
        profile(SearchProfile, repeats=repeats, space=space, n_combinations=2.0, n_with_params=20, n_duplicates=9,
                duplicate_pct=45.0, duplicate_worker_h=1.0, n_same_seed=1, n_after_grid=int(gridded), n_enqueued=1),
    )  # fmt: skip
    idle = found("gpu-unused", {"gpu": "1"})
    now = situation(
        *given, rules=[idle, *(one.id for one in RULES if one.id != "gpu-unused")], bounds=BOUNDS, analysis=told
    )
    vars(now)["settings"], vars(now)["dataloader"] = settings, loader
    return now


def proposals(reader: str, framework: str) -> dict[str, Proposal]:
    out = {}
    for kept in (False, True):  # a process a trial, and one that keeps running, of a grid
        with patch.object(Situation, "keeps_processes", property(lambda now, kept=kept: kept)):
            for without in ((), SERIOUS):
                now = everything_found(reader, framework, gridded=kept)
                for rule in without:
                    del now.found[rule]
                out |= {item.id: made for item in REMEDIES if (made := item.propose(now)) is not None}
    return out


def python_of(code: str) -> str | None:
    """The lines as Python; None of a shell."""
    if re.search(r"^(for i in \$|sudo |nvidia-smi|nohup |du -sh|gpudiag |pip |python |py-spy |TORCH_|NCCL_)", code):
        return None
    if re.search(r"^[-+ ]", code):  # a diff: what it leaves
        code = "\n".join(line[1:] for line in code.splitlines() if not line.startswith("-"))
    if code.startswith("pruner="):
        code = f"optuna.create_study({code.partition('  #')[0]})"
    if code.startswith("except "):
        code = f"try:\n    train()\n{code}"
    return code


@pytest.mark.slow
@pytest.mark.parametrize(("reader", "framework"), RUNS)
def test_code_compiles_and_names_only_what_the_framework_of_the_run_has(reader: str, framework: str) -> None:
    made = proposals(reader, framework)
    allowed = {
        *OWN,
        *FILLED,
        *BY_FRAMEWORK[framework],
        *(OPTUNA if reader.startswith("optuna") else ()),
        *dir(builtins),
    }
    assert {"isolate-trials", "log-parameters", "prepare-once", "warm-worker", "more-workers"} <= set(made)
    assert {"evaluate-less", "save-interval"} <= set(made)
    for name, proposal in made.items():
        for change in proposal.changes:
            code = python_of(change.code)
            if code is None:
                continue
            wrapped = "def f():\n" + "\n".join(f"    {line}" for line in code.splitlines())
            tree = ast.parse(wrapped)
            compile(tree, name, "exec")
            _names_exist(tree, allowed, f"{name}: {code}")


def _names_exist(tree: ast.AST, allowed: set[str], where: str) -> None:
    nodes = list(ast.walk(tree))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {a.arg for n in nodes if isinstance(n, ast.arguments) for a in n.args}
    bound |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ExceptHandler) and n.name}
    bound |= {"ProcessPoolExecutor"}  # concurrent.futures
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    assert used <= allowed | bound, (where, used - allowed - bound)
    for node in nodes:
        if isinstance(node, ast.Attribute) and (path := _path(node)):
            first, *rest = path.split(".")
            assert first in bound - {"trial", "study"} or _exists(first, rest), (where, path)


def _path(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *parts[::-1]]) if isinstance(node, ast.Name) else ""


def _exists(first: str, rest: list[str]) -> bool:
    if first == "torch":
        return ".".join(rest) in TORCH_NAMES
    if first in OF_OBJECTS:
        return rest[0] in OF_OBJECTS[first]
    if first in ("args", "error"):
        return True
    held: Any = {"TrialState": optuna.trial.TrialState}.get(first) or importlib.import_module(first)
    for name in rest:
        held = getattr(held, name, None)
    return held is not None


@pytest.mark.slow
def test_tasks_that_are_not_optunas_are_shown_none_of_its_code() -> None:
    for framework in PARAMS:
        code = "\n".join(c.code for one in proposals("task-log", framework).values() for c in one.changes)
        assert not re.search(r"optuna|study\.|trial\.", code)
    trees = "\n".join(c.code for one in proposals("optuna-sqlite", "xgboost").values() for c in one.changes)
    assert "torch" not in trees and "optuna" in trees
