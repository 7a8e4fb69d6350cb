"""memory-exhaustion: two days of crashes while the number of workers is lowered from 4 to 3 to 2."""

from __future__ import annotations

from collections.abc import Iterator

from gpudiag.manifest import DataLoader, Settings
from gpudiag.simulation.cases.case import Case
from gpudiag.simulation.files import log_timestamp
from gpudiag.simulation.life import Life
from gpudiag.simulation.simulator import Simulated, simulate
from gpudiag.simulation.spec import Curve, Faults, Gpu, ModelSpec, Spec, TelemetrySpec, Trial

NAME = "memory-exhaustion"
SEED = 17
HOUR_S = 3600.0

STORY = """
452 trials in two days on one 24 GB GPU, with crashes all along: four workers at first, three after 9 hours, two after
24. A trial typically holds 6 GB, some 8-12 GB, depending on model and batch size, so that four trials fill the GPU,
three sometimes overflow it, and two always fit. Memory stood at 97 % before crashes at three workers. The GPU was to
be reset after 50 trials in a row without a failure, which never came.

Two different faults hide behind "crash". Overflows (out of memory) end with the step from three to two workers.
Device-side asserts, a logic error, do not depend on memory and go on; each poisons its process, so that the next two
trials of the same worker fail within seconds: three FAILs, one event. One worker was killed, which leaves its trial
RUNNING.

All of it comes from the event loop; nothing is scripted. train.log holds what the workers printed.
"""

SPEC = Spec(
    name=NAME,
    study="search",
    start="2025-12-02T18:20:00",
    n_trials=452,
    workers=((0.0, 4), (9 * HOUR_S, 3), (24 * HOUR_S, 2)),
    stagger_s=8.0,
    declares=("worker",),
    gpus=(Gpu(sharing="overlapping", full_w=402.0, overhead_pct=2.0),),
    trial=Trial(
        startup_s=(28.0, 52.0),
        epochs=20,
        epoch_s=(29.5, 47.5),
        dip_s=(1.0, 2.5),
        tail_s=(3.0, 6.0),
        gap_s=(0.5, 2.0),
        gpu_share_pct=(45.0, 45.0),
        models=(
            ModelSpec("small", 2.0, 0.8, 3600.0, 12.0),
            ModelSpec("base", 6.0, 1.0, 4600.0, 18.0),
            ModelSpec("large", 1.3, 1.25, 5200.0, 48.0),
        ),
        batch_sizes=(32, 64, 128),
        context_mib=450.0,
        ramp_s=120.0,
    ),
    curve=Curve(direction="minimize", crossing=0.5),
    telemetry=TelemetrySpec(period_s=10.0),
    faults=Faults(assert_rate=0.035, poisoned=2, abandoned_rate=0.006, oom_kills=True, restart_s=(90.0, 420.0)),
    settings=Settings(cpu_cores=16, ram_gib=64, sampler="TPESampler"),
    dataloader=DataLoader(num_workers=4),
    notes=(
        "4 workers at first, 3 from 03:20 on 3 December, 2 from 18:20 on",
        "reset planned after 50 successes in a row",
    ),
)


def make() -> Case:
    """Simulate the two days."""
    simulated = simulate(SPEC, seed=SEED)
    return Case(NAME, SEED, STORY, {"": simulated}, {"": list(_log(simulated))}, made_by="make samples")


def _log(simulated: Simulated) -> Iterator[str]:
    """What the workers printed, in order of time."""
    lines: list[tuple[float, str, str]] = []
    for life in simulated.history.lives:
        lines.append((life.start_s, "INFO", f"w{life.worker} trial {life.number} started, {_described(life)}"))
        if life.state == "COMPLETE":
            lines.append((life.end_s, "INFO", f"w{life.worker} trial {life.number} finished, value {life.value:.6f}"))
        elif life.state == "FAIL":
            lines.append((life.end_s, "ERROR", f"w{life.worker} trial {life.number} failed: {life.detail}"))
    for at, level, text in sorted(lines):
        yield f"{log_timestamp(simulated.spec, at)} {level} {text}"


def _described(life: Life) -> str:
    return f"model={life.params['model']} batch_size={life.params['batch_size']}"
