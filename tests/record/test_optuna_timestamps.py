"""Timestamps on real Optuna trials: threads, processes, failures; and what the readers make of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.measures.attribution import measure_attribution
from gpudiag.record import visible_gpu as seen
from gpudiag.record.optuna_timestamps import PREFIX, StampingSampler
from gpudiag.record.readings import Device

optuna.logging.set_verbosity(optuna.logging.ERROR)


def attrs(trial: Any) -> dict[str, Any]:
    return {key.removeprefix(PREFIX): value for key, value in trial.user_attrs.items() if key.startswith(PREFIX)}


def moment(text: str) -> float:
    timestamp = datetime.fromisoformat(text)
    assert timestamp.utcoffset() is not None, "a timestamp carries its zone"
    return timestamp.timestamp()


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1, 1)
    time.sleep(0.02)
    for step in range(3):
        trial.report(x * x + 1 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    if x > 0.9:
        raise MemoryError("CUDA out of memory")
    return x * x


def test_every_trial_is_stamped_in_utc() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    began = time.time()
    study.optimize(gd.TrialTimestamps(objective), n_trials=20, n_jobs=4, catch=MemoryError)
    ended = time.time()
    for trial in study.trials:
        told = attrs(trial)
        assert (told["host"], told["pid"]) == (socket.gethostname(), os.getpid())
        start, first, end = (moment(told[name]) for name in ("start_utc", "first_step_utc", "end_utc"))
        assert began <= start <= start + 0.019 <= first <= end <= ended
        assert "gpu_uuid" not in told and "energy_j" not in told and "peak_mem_mib" not in told, "unknown is absent"
        assert trial.intermediate_values, "the report went through"
    assert {attrs(t).get("exception") for t in study.trials if t.state.name == "PRUNED"} == {"TrialPruned"}
    assert {attrs(t).get("exception") for t in study.trials if t.state.name == "COMPLETE"} == {None}


def test_the_class_of_an_exception_is_kept() -> None:
    def fails(trial: Any) -> float:
        raise MemoryError("CUDA out of memory")

    study = optuna.create_study()
    study.optimize(gd.TrialTimestamps(fails), n_trials=1, catch=MemoryError)
    assert attrs(study.trials[0])["exception"] == "MemoryError: CUDA out of memory"
    assert attrs(study.trials[0])["end_utc"]


def test_the_callback_timestamps_an_objective_that_knows_nothing_of_it() -> None:
    sampler = optuna.samplers.TPESampler(seed=3, n_startup_trials=3)
    plain = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=3, n_startup_trials=3))
    plain.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=8)
    study = optuna.create_study(sampler=sampler)
    study.optimize(
        lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=8, callbacks=[gd.optuna_callback(study)]
    )
    assert [t.params for t in study.trials] == [t.params for t in plain.trials], "it samples as before"
    for trial in study.trials:
        told = attrs(trial)
        assert {"start_utc", "end_utc", "host", "pid", "zone"} <= set(told)
    assert isinstance(study.sampler, StampingSampler) and study.sampler.inner is sampler
    gd.optuna_callback(study)
    assert study.sampler.inner is sampler, "installed once"


def test_the_callback_without_the_study_misses_the_first_trial_only() -> None:
    study = optuna.create_study()
    study.optimize(lambda trial: 1.0, n_trials=4, callbacks=[gd.optuna_callback()])
    assert ["start_utc" in attrs(trial) for trial in study.trials] == [False, True, True, True]


def test_a_storage_that_refuses_costs_no_trial() -> None:
    class Refuses:
        def __init__(self) -> None:
            self.report = lambda value, step: None

        def set_user_attr(self, key: str, value: Any) -> None:
            raise RuntimeError("database is locked")

    assert gd.TrialTimestamps(lambda trial: trial.report(1, 1) or 2.0)(Refuses()) == 2.0


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Two GPUs whose energy counters show what the list holds, GPU 1's a thousand more."""
    energy = [100.0]

    class Adapter:
        def read(self, device: Device, *, pcie: bool) -> dict[str, float]:
            return {"energy_j": energy[0] + 1000 * int(device.gpu)}

    devices = (Device("0", "GPU-aaaaaaaa"), Device("1", "GPU-bbbbbbbb"))
    monkeypatch.setattr(seen, "known_devices", lambda: (Adapter(), devices))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return energy


@pytest.mark.parametrize(
    ("mask", "order", "uuid"),
    [
        (None, None, ""),
        ("GPU-bbbbbbbb", None, "GPU-bbbbbbbb"),
        ("1", "PCI_BUS_ID", "GPU-bbbbbbbb"),
        ("1", None, ""),  # CUDA's own order, fastest first, may not be NVML's
        ("0,1", "PCI_BUS_ID", ""),
        ("", None, ""),
        ("7", "PCI_BUS_ID", ""),
    ],
)
def test_the_gpu_of_a_process(
    mask: str | None, order: str | None, uuid: str, two_gpus: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    if mask is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    if order is not None:
        monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    assert seen.visible_gpu() == uuid


def test_torch_in_use_tells_gpu_and_peak(two_gpus: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torch.cuda: no GPU is needed to see what is asked of it."""
    peak = [0]
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        current_device=lambda: 1,
        get_device_properties=lambda index: SimpleNamespace(uuid="bbbbbbbb"),
        reset_peak_memory_stats=lambda: peak.__setitem__(0, 0),
        max_memory_reserved=lambda: peak[0],
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))

    def uses(trial: Any) -> float:
        peak[0] = (trial.number + 1) * 2**20
        two_gpus[0] += 50.5
        return 1.0

    study = optuna.create_study()
    study.optimize(gd.TrialTimestamps(uses), n_trials=2)
    assert [attrs(trial)["peak_mem_mib"] for trial in study.trials] == [1.0, 2.0]
    assert [attrs(trial)["energy_j"] for trial in study.trials] == [50.5, 50.5]
    assert {attrs(trial)["gpu_uuid"] for trial in study.trials} == {"GPU-bbbbbbbb"}


@pytest.mark.slow
def test_the_readers_take_the_timestamps(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(study_name="s", storage=url)
    study.optimize(gd.TrialTimestamps(objective, gpu="GPU-cccccccc"), n_trials=3, catch=MemoryError)
    for zone in ("UTC", "Asia/Taipei"):
        out = gd.read_trials(tmp_path / "study.db", timezone=zone)
        told = [attrs(trial) for trial in study.trials]
        assert out.trials["start"].tolist() == [pd.Timestamp(one["start_utc"]) for one in told]
        assert out.trials["end"].tolist() == [pd.Timestamp(one["end_utc"]) for one in told]
        assert out.studies["clock"].tolist() == ["utc"]
        assert set(out.trials["gpu"]) == {"GPU-cccccccc"} and set(out.trials["pid"]) == {os.getpid()}
        assert set(out.trials["host"]) == {socket.gethostname()}
        (note,) = out.notes  # and no word of a clock that was assumed
        assert "3 of 3 trials carry gpudiag's timestamps" in note and "its clock is exact" in note


SEARCH = """
import sys, optuna, gpudiag as gd
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(
    study_name="search", storage=sys.argv[1],
    sampler=optuna.samplers.RandomSampler(seed=int(sys.argv[2])), pruner=optuna.pruners.HyperbandPruner(1, 8),
)
def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    for step in range(8):
        sum(i * i for i in range(20_000))
        trial.report(x * x + 1 / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x * x
study.optimize(objective, n_trials=6, n_jobs=2, callbacks=[gd.optuna_callback(study)])
"""


@pytest.mark.slow
def test_a_search_of_several_processes_recorded_and_loaded(tmp_path: Path) -> None:
    """Two processes with two threads each, recorded by the command line, then read as one run."""
    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(study_name="search", storage=url)
    script = tmp_path.parent / f"{tmp_path.name}-search.py"
    script.write_text(SEARCH)
    pids = tmp_path.parent / f"{tmp_path.name}-pids"
    shell = "".join(f"{sys.executable} {script} {url} {seed} & echo $! >> {pids}; " for seed in range(2))
    recording = [sys.executable, "-m", "gpudiag", "record", "--host", "--interval", "0.2", "-o"]
    began = datetime.now(UTC)
    subprocess.run(
        [*recording, str(tmp_path / "metrics.csv"), "--", "sh", "-c", shell + "wait"],
        check=True,
        env=os.environ | {"TZ": "America/New_York"},
        timeout=240,
    )
    ended = datetime.now(UTC)
    run = gd.load_run(tmp_path, timezone="Asia/Taipei")
    assert len(run.trials) == 12 and set(run.trials["state"]) <= {"COMPLETE", "PRUNED"}
    assert run.studies["clock"].tolist() == ["utc"]
    assert {record.clock for record in run.info.inputs if record.kind == "telemetry"} == {"utc"}
    assert run.trials["start"].ge(began).all() and run.trials["end"].le(ended).all()
    assert set(run.trials["pid"]) == {int(pid) for pid in pids.read_text().split()}
    assert set(run.trials["host"]) == {socket.gethostname()}
    slack = pd.Timedelta(seconds=5)  # a busy machine leaves ticks out
    assert (
        run.host["time"].iloc[0] <= run.trials["start"].min() + slack
        and run.trials["end"].max() <= run.host["time"].iloc[-1] + slack
    )
    assert measure_attribution(run).n_trials == 12
    assert {"command_start", "command_end"} <= set(run.events["kind"])
    text = gd.diagnose(run).to_markdown()
    assert "12 of 12 trials carry gpudiag's timestamps" in text and "(assumed" not in text


def test_threads_keep_their_trials_apart() -> None:
    names: dict[int, str] = {}

    def slow(trial: optuna.Trial) -> float:
        names[trial.number] = threading.current_thread().name
        time.sleep(0.01 * (trial.number % 3))
        return 1.0

    study = optuna.create_study()
    study.optimize(slow, n_trials=12, n_jobs=4, callbacks=[gd.optuna_callback(study)])
    assert len(set(names.values())) > 1
    for trial in study.trials:
        told = attrs(trial)
        spent = moment(told["end_utc"]) - moment(told["start_utc"])
        assert spent >= 0.01 * (trial.number % 3)
    assert study.sampler._open == {}
