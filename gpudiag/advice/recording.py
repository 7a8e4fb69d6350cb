"""Remedies for missing data."""

from __future__ import annotations

import json
import shlex

import pandas as pd

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag._run.gpu_names import NAMED, VISIBLE
from gpudiag.advice._engine.gains import NOTHING
from gpudiag.advice._engine.proposal import Change, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import INPUT_WAITS, Situation
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures.base import NVIDIA_SMI
from gpudiag.measures.feed import FeedProfile
from gpudiag.measures.sampling import SamplingProfile
from gpudiag.report.format import duration
from gpudiag.rules._engine.judging import MIN_COVERAGE_PCT, RECORD_COMMAND
from gpudiag.rules.sampling import MOSTLY_GAP_PCT
from gpudiag.spans import SILENCE_S

MIN_HOST_S = 60.0
OF_A_GPU = ("gpu-imbalance", "gpu-idle-beside-busy")
OF_SETTINGS = ("failure-rate-high", *OF_A_GPU, "pruned-before-possible")
GPU_NAMES = NAMED | VISIBLE
WAITING = ("gpu-low-utilization", "gpu-fluctuating", "stalls-aperiodic", "batch-or-kernels-small")
"""Findings on a GPU that waits for something, or has too little to do."""
SHOWS = "It shows the cause and speeds nothing up."


@remedy(
    title="Record the whole run without gaps",
    answers=("sampling-coverage", "sampling-gaps"),
    tier=0,
    effort="minutes",
    pros=("settles every check that lacked data",),
    cons=("a few MB a day",),
    refute="The record is complete, and run.toml names only a part of it.",
    rollback="Stop the recorder.",
)
def record_run(now: Situation) -> Proposal | None:
    """What was not observed can't be judged: start the recorder before the first trial, stop it after the last."""
    sampling = now.profile(SamplingProfile)
    if sampling is not None and (sampling.gaps["share_pct"] > MOSTLY_GAP_PCT).any():
        return None  # one timestamp is wrong, or two recordings lie years apart: more recording does not mend it
    if len(_sessions(now)) > 1 or _recorded_study(now):
        return None
    return Proposal(
        (Change("recorder", None, "the whole run", _recorder(now)),),
        NOTHING,
        SHOWS,
        (SuccessCheck.of(SamplingProfile.coverage_pct, ">=", MIN_COVERAGE_PCT),),
    )


@remedy(
    title="Judge the sessions in this record one by one",
    answers=("sampling-coverage", "sampling-gaps"),
    tier=0,
    effort="minutes",
    pros=("what is said of a session holds for it", "the time between them no longer counts"),
    cons=(),
    refute="It was one run, which went on while the recorder stood still.",
    rollback="",
)
def judge_sessions(now: Situation) -> Proposal | None:
    """A record with hours of silence of all GPUs is one of several sessions, where no trials hold it together."""
    sessions = _sessions(now)
    if len(sessions) < 2:
        return None
    begin, end = max(sessions, key=lambda one: one[1] - one[0])
    ends = (begin, end + pd.Timedelta("1s"))  # the end of a span is not in it
    span = ",".join(one.isoformat(timespec="seconds") for one in ends)
    zone = now.analysis.run.info.timezone
    code = (
        "gpudiag fleet RUN   # a line for each session\n"
        f'gpudiag report RUN --timezone {zone} --between "{span}"   # the longest'
    )
    return Proposal(
        (Change("sessions judged together", len(sessions), "each by itself", code),),
        NOTHING,
        f"No GPU was sampled for more than {duration(SILENCE_S)} between one and the next. {SHOWS}",
        (SuccessCheck.of(SamplingProfile.coverage_pct, ">=", MIN_COVERAGE_PCT),),
    )


@remedy(
    title="Judge the study that was recorded by itself",
    answers=("sampling-coverage",),
    tier=0,
    effort="minutes",
    pros=("what is said of the study holds for it", "trials that were not recorded no longer count"),
    cons=(),
    refute="The GPUs of the other studies were recorded too, and that record is missing.",
    rollback="",
)
def judge_recorded_study(now: Situation) -> Proposal | None:
    """A database may hold studies that ran at other times, of which this telemetry shows nothing."""
    study = _recorded_study(now)
    if not study:
        return None
    n = now.analysis.run.trials["study"].nunique()
    code = f"gpudiag report RUN --study {shlex.quote(study)}   # or in run.toml: study = {json.dumps(study)}"
    return Proposal(
        (Change("studies judged together", n, 1, code),),
        NOTHING,
        f"No trial of the other studies ran while the GPU was recorded. {SHOWS}",
        (SuccessCheck.of(SamplingProfile.coverage_pct, ">=", MIN_COVERAGE_PCT),),
    )


def _recorded_study(now: Situation) -> str:
    """The one study of several with trials within the telemetry; '' where there is none, or more."""
    run = now.analysis.run
    if run.trials.empty or run.trials["study"].nunique() < 2 or run.gpu.empty or not run.info.clock.joined:
        return ""
    first, last = run.gpu["time"].min(), run.gpu["time"].max()
    lives = intervals_of(run)
    lives = lives[lives["known"]]
    if set(lives["study"]) != set(run.trials["study"]):
        return ""
    within = lives[(lives["start"] <= last) & (lives["end"] >= first)]["study"].unique()
    return str(within[0]) if len(within) == 1 else ""


def _sessions(now: Situation) -> list[tuple[pd.Timestamp, pd.Timestamp]]:
    """First and last sample of each stretch without a long silence of all GPUs; none where there are trials."""
    sampling = now.profile(SamplingProfile)
    if sampling is None or not now.analysis.run.trials.empty:
        return []
    pieces: list[tuple[pd.Timestamp, pd.Timestamp]] = []
    for gpu, row in sampling.per_gpu.iterrows():
        silent = sampling.gaps[(sampling.gaps["gpu"] == gpu) & (sampling.gaps["gap_s"] > SILENCE_S)]
        pieces += zip([row["start"], *silent["end"]], [*silent["start"], row["end"]], strict=True)
    sessions: list[tuple[pd.Timestamp, pd.Timestamp]] = []
    for start, end in sorted(pieces):
        if sessions and (start - sessions[-1][1]).total_seconds() <= SILENCE_S:
            start, last = sessions.pop()
            end = max(last, end)
        sessions.append((start, end))
    return sessions


@remedy(
    title="Record at a higher priority",
    answers=("sampler-slows-down",),
    tier=0,
    effort="minutes",
    pros=("a load that is seen as often as no load",),
    cons=("needs the right to raise a priority",),
    refute="The rate was set by hand according to load.",
    rollback="Record as before.",
)
def record_steadily(now: Situation) -> Proposal | None:
    """A recorder that waits for the processor sees a busy machine less often than an idle one."""
    if not now.has("sampler-slows-down"):
        return None
    code = f"sudo nice -n -5 {_recorder(now)}"
    return Proposal((Change("recorder", "slows down under load", "at a higher priority", code),), NOTHING, SHOWS)


def _recorder(now: Situation) -> str:
    """nvidia-smi in the background, at the run's period where that is up to 5 s."""
    period = now.fact(SamplingProfile.median_period_s)
    return f"nohup {NVIDIA_SMI.format(period_s=round(min(period, 5)) if period >= 1 else 1)} 2> gpu.err &"


@remedy(
    title="Record the CPU beside the GPU for ten minutes",
    answers=WAITING,
    tier=0,
    effort="minutes",
    pros=("separates a GPU that waits for its input from one with too little work",),
    cons=(),
    refute="",
    rollback="",
)
def record_host(now: Situation) -> Proposal | None:
    """GPU telemetry can't tell input that comes late from steps that are small.

    A core or a worker near 100 % says the first, none of them near it the second; mean CPU load says nothing. Not
    proposed where a minute of it was recorded beside the work, or other findings say what the GPU waits for: input, or
    what they name as the cause of each of these.
    """
    causes = [now.found[rule].caused_by for rule in WAITING if rule in now.found]
    if now.has(*INPUT_WAITS) or (causes and all(causes)):
        return None
    feed = now.profile(FeedProfile)
    if feed is not None and feed.has_cores and (feed.per_gpu["host_s"] >= MIN_HOST_S).any():
        return None
    present = "CPU as a whole" if feed is not None and feed.has_cpu and not feed.has_cores else None
    change = Change("CPU in the record", present, "CPU by core and process", RECORD_COMMAND)
    return Proposal((change,), NOTHING, SHOWS)


@remedy(
    title="Store the settings of each trial with it",
    answers=OF_SETTINGS,
    tier=0,
    effort="minutes",
    apply="next study",
    pros=("shows whether requested settings were applied", "a comparison of two runs becomes possible"),
    cons=(),
    refute="The trials already carry them.",
    rollback="Remove the lines.",
)
def log_parameters(now: Situation) -> Proposal | None:
    """A comparison is invalid where nothing shows which parameters, device and process a trial really had.

    Not proposed for failures of trials whose parameters the study holds, nor for the GPUs of trials that name theirs,
    nor for jobs of a scheduler, whose list holds no settings.
    """
    trials = now.analysis.run.trials
    if are_jobs(trials).any():
        return None
    failed = trials[trials["state"] == "FAIL"] if "state" in trials else trials
    params = [str(name).startswith("params.") for name in trials]
    gpus = [str(name).rpartition(".")[2].lower() in GPU_NAMES for name in trials]
    served = {"failure-rate-high": _mostly_known(failed.loc[:, params])}
    served |= dict.fromkeys(OF_A_GPU, _mostly_known(trials.loc[:, gpus]))
    asked = [rule for rule in now.found if rule in OF_SETTINGS]
    if asked and all(served.get(rule, False) for rule in asked):
        return None
    own = (
        'own = {**settings, "gpu": os.environ.get("CUDA_VISIBLE_DEVICES"), "pid": os.getpid()}  # settings: as applied'
    )
    keep = (
        "for name, value in own.items():\n    trial.set_user_attr(name, value)"
        if now.optuna
        else 'logging.info("settings: %s", own)'
    )
    code = f"{own}\n{keep}"
    return Proposal((Change("settings in the record", None, "as applied", code),), NOTHING, SHOWS)


def _mostly_known(values: pd.DataFrame) -> bool:
    """Whether most rows hold at least one value."""
    return len(values) > 0 and 2 * int(values.notna().any(axis=1).sum()) > len(values)
