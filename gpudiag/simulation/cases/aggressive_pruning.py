"""hpo-aggressive-pruning: most trials are cut after a few epochs, abandoned ones stay RUNNING, the GPU is 83 % busy."""

from __future__ import annotations

import heapq

import numpy as np

from gpudiag.manifest import DataLoader, Settings
from gpudiag.simulation.cases.case import Case, later
from gpudiag.simulation.life import Life
from gpudiag.simulation.script import live, replay
from gpudiag.simulation.simulator import observe
from gpudiag.simulation.spec import Curve, Gpu, ModelSpec, Spec, TelemetrySpec, Trial
from gpudiag.simulation.trial_plan import draw_plan

NAME = "hpo-aggressive-pruning"
SEED = 1
FIRST = 16
ENQUEUED = 211
DRAINED_S = -4.0
BEYOND_S = 2160.0
DIP_S = 2.5
TAIL_S = 6.0

STORY = """
A hyper-parameter search by four workers on one 24 GB GPU: 200 trials, of which 8 COMPLETE, 173 PRUNED, 15 FAIL and 4
RUNNING. Pruned trials stop after 2-4 epochs and 1-4 minutes, complete ones take 9 minutes, one trial is pruned only
after 33 minutes. The GPU is busy 82-84 % of the time and half its memory is used. It stands for an investigation that
blamed start-up time, which overlapping trials hide: look at the ledger before believing it.

The trial table is scripted so that the counts and the last half hour are exactly those of the situation; GPU and
telemetry follow from it by the model that all simulated runs use. Scripted are the start, end, state and number of
epochs of every trial. Numbers run from 16 to 215: the first 16 were a smoke test, deleted from the database.

The last half hour, local time. The study was relaunched at 19:40, when trials 206-209 started. 207 was killed at
19:43:52 and its worker relaunched at 19:44:29; 208 was killed at 19:49:30 and its worker stayed away. Neither is
recorded as ended, so that from 19:44:29 five trials seem to run where four workers were asked for. 211 had been
enqueued by hand and waited for a free worker until 19:53:40, when the worker of 212 stopped. 214 and 215 were really
running when the database was copied at 20:14:30.

The settings state `PatientPruner(HyperbandPruner, patience=2)`, which cannot prune before the fourth report. Trials
pruned at epochs 2 and 3 contradict it, as they did in the situation: what was stated is not what ran. run.toml
repeats under `[stated]` the count of complete trials that was written down by hand, which is wrong too.
"""

SPEC = Spec(
    name=NAME,
    study="hpo",
    start="2025-10-24T19:40:00",
    n_trials=200,
    declares=(),
    gpus=(Gpu(sharing="overlapping", full_w=388.0),),
    trial=Trial(
        startup_s=(30.0, 60.0),
        epochs=60,
        epoch_s=(0.94, 1.06),
        gpu_share_pct=(58.0, 58.0),
        models=(
            ModelSpec("small", 1.0, 11.0, 2900.0, 3.0),
            ModelSpec("base", 2.0, 30.0, 3250.0, 4.0),
            ModelSpec("large", 2.0, 46.0, 3600.0, 5.0),
        ),
        batch_sizes=(32, 64, 128),
        context_mib=430.0,
    ),
    curve=Curve(direction="minimize", floor=(0.12, 0.40), height=0.6, rate=(0.5, 0.9), noise=0.012, crossing=0.4),
    telemetry=TelemetrySpec(lead_s=20.0, lag_s=39.0, util_noise_pct=4.0),
    settings=Settings(
        parallel=4,
        n_trials=200,
        cpu_cores=12,
        sampler="TPESampler(constant_liar=True)",
        pruner="patient(hyperband(min_resource=1,max_resource=100,reduction_factor=3),patience=2)",
        max_steps=100,
    ),
    dataloader=DataLoader(num_workers=2, prefetch_factor=2, persistent_workers=False),
    stated={"COMPLETE": 10},
    notes=("the hand-written summary of this study speaks of 10 complete trials",),
)

# number, worker, start, true end (None: still running), state, epochs
LAST_HALF_HOUR = (
    (206, 0, "19:40:06", "19:44:28", "PRUNED", 4),
    (207, 1, "19:40:07", "19:43:52", "RUNNING", 3),
    (208, 2, "19:40:07", "19:49:30", "RUNNING", 11),
    (209, 3, "19:40:07", "20:13:51", "PRUNED", 43),
    (210, 0, "19:44:29", "19:53:40", "COMPLETE", 11),
    (211, 0, "19:53:40", "19:56:08", "PRUNED", 3),
    (212, 1, "19:44:29", "19:53:40", "COMPLETE", 11),
    (213, 0, "19:56:09", "20:05:22", "COMPLETE", 11),
    (214, 0, "20:05:23", None, "RUNNING", 12),
    (215, 3, "20:13:52", None, "RUNNING", 1),
)


def make(seed: int | None = None) -> Case:
    """Script the trials, then let GPU and telemetry follow. Another seed draws other trials before the last half hour,
    and the study begins that many days later.
    """
    drawn, spec = SEED if seed is None else seed, later(SPEC, seed)
    lives = _earlier(np.random.default_rng([drawn, 7]), drawn) + [_late(*row, seed=drawn) for row in LAST_HALF_HOUR]
    return Case(NAME, drawn, STORY, {"": observe(spec, replay(spec, lives), drawn)}, seeded=seed is not None)


def _earlier(rng: np.random.Generator, seed: int) -> list[Life]:
    """Trials 16-205: whoever is free takes the next one, and all have ended when the study is relaunched."""
    states = ["COMPLETE"] * 5 + ["PRUNED"] * 170 + ["FAIL"] * 15
    rng.shuffle(states)
    lives: list[Life] = []
    free = [(0.7 * worker, worker) for worker in range(4)]
    courses = []
    for number, state in enumerate(states, start=FIRST):
        start, worker = heapq.heappop(free)
        length, epochs = _course(number, state, rng, seed)
        courses.append((number, worker, start, start + length, state, epochs))
        heapq.heappush(free, (start + length + float(rng.uniform(0.1, 0.9)), worker))
    shift = DRAINED_S - max(end for _, _, _, end, _, _ in courses)
    for number, worker, start, end, state, epochs in courses:
        lives.append(_life(number, worker, start + shift, end + shift, state, epochs, seed))
    return lives


def _course(number: int, state: str, rng: np.random.Generator, seed: int) -> tuple[float, int]:
    """Duration in seconds and number of epochs begun; the trial's model decides how long an epoch takes."""
    plan = draw_plan(SPEC, seed, number)
    epoch_s = plan.segments[0][0]
    if state == "COMPLETE":
        length = float(rng.uniform(541.0, 597.0))
        return length, round((length - plan.startup_s - TAIL_S) / epoch_s)
    if state == "FAIL" and rng.random() < 0.4:
        return float(rng.uniform(0.8, 20.0)), 0
    epochs = int(rng.choice((1, 2) if state == "FAIL" else (2, 3, 4)))
    return plan.startup_s + epochs * epoch_s, epochs


def _late(number: int, worker: int, start: str, end: str | None, state: str, epochs: int, *, seed: int) -> Life:
    until = None if end is None else _clock(end)
    life = _life(number, worker, _clock(start), until, state, epochs, seed)
    if number == ENQUEUED:
        life.system_attrs["fixed_params"] = life.params
    return life


def _life(number: int, worker: int, start: float, end: float | None, state: str, epochs: int, seed: int) -> Life:
    """One trial with the course that its row of the script asks for."""
    plan = draw_plan(SPEC, seed, number)
    life = Life(number, worker, 0, start, dict(plan.params), plan.share, state=state)
    better = {"COMPLETE": -0.08, "PRUNED": 0.03}.get(state, 0.0)
    finished_epochs = epochs - 1 if state in ("FAIL", "RUNNING") else epochs
    live(
        life,
        SPEC.trial,
        until_s=BEYOND_S if end is None else end,
        startup_s=plan.startup_s,
        epochs=epochs,
        dip_s=DIP_S,
        tail_s=TAIL_S if state == "COMPLETE" else 0.0,
        values=[round(value + better, 6) for value in plan.values[:finished_epochs]],
        peak_mib=plan.peak_mib,
    )
    if end is not None:
        life.end_s = end
    return life


def _clock(text: str) -> float:
    """Seconds since 19:40:00 of a local time of that evening."""
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    return float((hours - 19) * 3600 + (minutes - 40) * 60 + seconds)
