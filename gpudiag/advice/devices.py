"""Remedies for a GPU that gets no work."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.advice._engine.gains import NOTHING
from gpudiag.advice._engine.proposal import Change, Gain, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.attribution import AttributionProfile
from gpudiag.measures.balance import BalanceProfile
from gpudiag.measures.ledger import GpuLedger, LedgerProfile
from gpudiag.measures.utilization import GpuUtilization, UtilizationProfile
from gpudiag.report.format import plural, share
from gpudiag.schema import IDLE_PCT

UNUSED = ("gpu-unused", "gpu-idle-beside-busy")
DEVICE = {
    True: 'device = torch.device("cuda", args.device)',
    False: 'params["gpu_device_id"] = args.device   # LightGBM; XGBoost: device = f"cuda:{args.device}"',
}
"""How a worker names its device, by whether PyTorch trains."""


@remedy(
    title="Spread the workers over all GPUs",
    answers=(*UNUSED, "gpu-imbalance"),
    tier=1,
    effort="an hour",
    pros=("uses what is already paid for", "GPUs no longer share memory"),
    cons=("the input side must feed both",),
    refute="Print the devices that each worker sees: if it sees the idle GPU and names it, something else is wrong.",
    rollback="Start the workers without the environment and the argument.",
)
def pin_gpu(now: Situation) -> Proposal | None:
    """The environment must be given to the subprocess before CUDA starts, and the library must be told as well.

    Set in the worker after CUDA was initialized, CUDA_VISIBLE_DEVICES does nothing; a library's own device id
    (gpu_device_id of LightGBM, device of XGBoost) overrides it and counts within what is visible. The same workers wait
    for a GPU only while it is busy, a share u of the time, so the gain is at most 1/(1 - u) of the busiest GPU, and at
    most its utilization over the mean of all: of the number of GPUs over those at work, where these are alike. It needs
    as many trials at once as GPUs, and one GPU with work that others can share. One training has no workers.
    """
    n = _n_gpus(now)
    if n < 2 or now.one_training or now.misses_workers:  # a GPU whose worker is gone needs no other placement
        return None
    where = now.profile(AttributionProfile)
    if where is not None and (where.trials["n_gpus"] > 1).any():  # one trial uses several as it is
        return None
    few = "" if (now.parallel or n) >= n else f"Only {now.parallel} trial runs at once: start {n} workers."
    change = Change("GPU of a worker", _at_work(now), "GPU i mod n", _worker_on_each(now, n))
    return _on_all(now, change, _forecast_gain(now, n), few)


@remedy(
    title="Start the training on all GPUs, or ask for fewer",
    answers=UNUSED,
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("uses what is paid for, or pays for what is used",),
    cons=("more GPUs make a larger batch, unless each takes a part of it", "the input side must feed all"),
    refute="Print torch.cuda.device_count() and the world size: if all GPUs are in use, the record is of others.",
    rollback="Start it on as many GPUs as before.",
)
def train_on_all(now: Situation) -> Proposal | None:
    """One training on some of the GPUs that it holds. On all of them a step takes at best the part of its time that
    falls to each: the gain is at most the number of GPUs over those at work, and at most 1/(1 - u) of the busiest GPU.
    """
    n = _n_gpus(now)
    if n < 2 or not now.one_training:
        return None
    code = f"{_training_on_all(now, n, n - len(idle_gpus(now)))}\n{_fewer(now, n)}"
    change = Change("GPUs of the training", _at_work(now), f"all {n} GPUs, or {n - len(idle_gpus(now))}", code)
    return _on_all(now, change, None, "")


@remedy(
    title="Check the visible GPUs when a worker starts",
    answers=(*UNUSED, "gpu-imbalance"),
    tier=0,
    effort="minutes",
    pros=("a wrong list of devices ends the run in its first second",),
    cons=(),
    refute="The printed list holds every GPU.",
    rollback="Remove the lines.",
)
def check_devices(now: Situation) -> Proposal | None:
    """A device list with one entry, a mask of the scheduler or a container are told apart by one line of log."""
    if now.has("gpu-imbalance") and not now.has(*UNUSED):
        return None  # each GPU was seen, for each had work
    use = now.profile(UtilizationProfile)
    n = len(use.per_gpu) if use is not None else 1
    seen = ", torch.cuda.device_count()" if now.torch else ""
    code = (
        f'print("worker", os.getpid(), "sees", os.environ.get("CUDA_VISIBLE_DEVICES"){seen})\n'
        f"assert len(devices) == {n}, devices  # the list that hands out GPUs"
    )
    changes = (Change("check of the devices", None, f"{n} expected", code),)
    return Proposal(changes, NOTHING, "It shows the cause and speeds nothing up.")


def _n_gpus(now: Situation) -> int:
    """GPUs that were recorded; 0 where none of them has work."""
    use = now.profile(UtilizationProfile)
    n = 0 if use is None else len(use.per_gpu)
    return n if n > len(idle_gpus(now)) else 0


def _at_work(now: Situation) -> str:
    use, idle = now.profile(UtilizationProfile), idle_gpus(now)
    return f"GPU {', '.join(gpu for gpu in ([] if use is None else use.per_gpu.index) if gpu not in idle)}"


def _on_all(now: Situation, change: Change, forecast: Gain | None, few: str) -> Proposal | None:
    """A change after which every GPU works."""
    use, ledger, idle = now.profile(UtilizationProfile), now.profile(LedgerProfile), idle_gpus(now)
    if use is None:
        return None
    of_gpu = GpuUtilization.mean_pct if ledger is None else GpuLedger.mean_util_pct
    verify = [SuccessCheck.of(of_gpu.at(gpu), ">", IDLE_PCT) for gpu in idle]
    means, n = (use if ledger is None else ledger).per_gpu[of_gpu.name], len(use.per_gpu)
    if not idle and means.max() > means.min():  # the least busy one comes halfway to the mean of all, or further
        halfway = round((means.min() + means.mean()) / 2, 1)
        verify = [SuccessCheck.of(of_gpu.at(str(means.idxmin())), ">", halfway)]
    gain = None if _of_several_models(now) else forecast or _spread_gain(now, means, n / (n - len(idle)))
    return Proposal((change,), gain, _spread_limit(now, means), tuple(verify), verify_first=few)


def _worker_on_each(now: Situation, n: int) -> str:
    return (
        f"for i in range({max(now.parallel or n, n)}):\n"
        f'    env = {{**os.environ, "CUDA_VISIBLE_DEVICES": str(i % {n}), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}\n'
        '    subprocess.Popen([sys.executable, "worker.py", "--device", "0"], env=env)  # 0: the one that it can see\n'
        f"# in worker.py: {DEVICE[now.torch]}"
    )


def _training_on_all(now: Situation, n: int, active: int) -> str:
    """How one training is started on all GPUs; its framework may not be known."""
    if now.torch:
        return f"torchrun --standalone --nproc-per-node={n} train.py  # was: {active}; with DistributedDataParallel"
    return f"# start the training on all {n} GPUs, each with its own part of every batch (data parallelism)"


def _fewer(now: Situation, n: int) -> str:
    """How fewer GPUs are asked for."""
    active = n - len(idle_gpus(now))
    return f"# or hold {active} of {n}: sbatch --gpus={active}, or a machine with fewer"


def _of_several_models(now: Situation) -> bool:
    """True where work takes unlike times on the GPUs, so that nothing bounds what spreading it brings."""
    share_of = now.profile(BalanceProfile)
    return share_of is not None and share_of.per_gpu["model"].nunique() > 1


def _forecast_gain(now: Situation, n: int) -> Gain | None:
    """What the forecast says of the same workers spread over all GPUs; None where it says nothing of all of them, or
    has no more than bounds.
    """
    made = None if now.one_training or not now.parallel else now.forecast(now.parallel)
    if made is None or made.spread is None or len(made.spread.placed) < n or made.spread.gain.bounds_only:
        return None
    gain = made.spread.gain
    return Gain(gain.low, gain.high, "x", "devices") if gain.low <= gain.high and made.now == now.parallel else None


def _spread_gain(now: Situation, means: pd.Series, of_equals: float) -> Gain:
    """What the same workers gain where GPUs are alike: the busiest one ends no lower than the mean of all, and no more
    than the time in which it was busy goes. ``of_equals``: all GPUs over those at work, for where not all is known.
    """
    most = float(means.max() / means.mean()) if means.notna().all() and means.max() > 0 else of_equals
    busy = _busiest_pct(now, means)
    return Gain(1.0, min(most, 100 / (100 - busy)) if 0 <= busy < 100 else most, "x", "devices")


def _busiest_pct(now: Situation, means: pd.Series) -> float:
    """Utilization of the busiest GPU, while trials ran where that is more; NaN unknown."""
    return float(np.fmax(now.bounds.busy_pct, means.max()))


def _spread_limit(now: Situation, means: pd.Series) -> str:
    """What bounds the gain of the same workers, and what would bring more."""
    if _of_several_models(now):
        return "The GPUs are of different models, so that the same work takes unlike times on them."
    if now.one_training:
        return (
            "Each step divides its work among all GPUs at best. The rest of the time does not shrink, and GPUs wait "
            "for each other."
        )
    who = f"the same {plural(now.parallel, 'worker')}" if now.parallel else "the same workers"
    busy = _busiest_pct(now, means)
    if not busy >= 0:
        return f"The busy GPU is what {who} wait for. How busy it was is not known."
    return (
        f"With {who} only the {share(busy)} of the time in which the busiest GPU worked can shrink. More would come "
        "from more workers: spread, they no longer share one GPU."
    )


def idle_gpus(now: Situation) -> list[str]:
    """The GPUs that a finding calls unused or idle, in its order."""
    named = [str(now.found[rule].where.get("gpu", "")).split(", ") for rule in UNUSED if now.has(rule)]
    return list(dict.fromkeys(gpu for gpus in named for gpu in gpus if gpu))
