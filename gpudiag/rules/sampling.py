"""Did the telemetry see the run?"""

from __future__ import annotations

from datetime import date

from gpudiag.errors import NotMeasurable
from gpudiag.measures.sampling import SamplingProfile, measure_sampling
from gpudiag.rules._engine.evidence import Evidence, Outcome, Passed
from gpudiag.rules._engine.judging import LONGER, MIN_COVERAGE_PCT, MIN_OBSERVED_S
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

MOSTLY_GAP_PCT = 99.0


@rule(
    measure=measure_sampling,
    severity="warning",
    title="The telemetry covers too little of the run",
    checks="Telemetry coverage",
    says=(
        "Telemetry of {gpu} covers {coverage_pct:exact} of {expected_s}",
        Given("gap_start", "; from {gap_start} to {gap_end} there is no sample, so a timestamp may be wrong"),
        ".",
    ),
    remedy="Start the recorder before the job and stop it after. Check that run.toml names all "
    "telemetry files and the right time zone. A few times far from all others come from a wrong clock: drop those "
    "rows.",
    refuted_by="Not a problem if the study ran on other days too: name the one study, or the files of those days.",
    explained_by=("gpu-lost",),
)
def sampling_coverage(
    seen: SamplingProfile, *, min_pct: float = MIN_COVERAGE_PCT, min_run_s: float = MIN_OBSERVED_S
) -> Outcome:
    """What was not observed cannot be judged: below this coverage no rule over telemetry says that all is well.

    Coverage is the time that samples stand for over the span of the trials; without trials over that of the telemetry
    and of the trainings' logs together, where these are on its clock: the GPUs work while a log tells of steps, and a
    tenth of their work at most lies elsewhere (a default without a published source). 80 % is the practice of jobstats
    (Princeton). Below a minute nothing is said (a default without a published source).
    """
    if seen.expected_s < min_run_s:
        raise NotMeasurable("Only {expected_s} are to be covered.", LONGER, expected_s=seen.expected_s)
    short = seen.per_gpu[seen.per_gpu["coverage_pct"] < min_pct]
    if short.empty:
        return Passed.least(
            seen.per_gpu,
            "coverage_pct",
            "{coverage_pct:exact} of {expected_s}",
            "limit {min_pct}",
            expected_s=seen.expected_s,
        )
    worst = short["coverage_pct"].idxmin()
    least = float(short.at[worst, "coverage_pct"])
    return Evidence(
        values={"coverage_pct": least, "expected_s": seen.expected_s, "outside_pct": seen.outside_pct},
        where={"gpu": ", ".join(short.index)},
        margin=min_pct - least,
        extra={"gpu": str(worst), **_stray(seen, worst)},
    )


@rule(
    measure=measure_sampling,
    severity="note",
    title="The telemetry has gaps",
    checks="Gaps in the telemetry",
    says=(
        "{gpu} was not observed for {gap_pct} of its span ({n_own_gaps:gap}, the longest {longest_gap_s})",
        Given("trials_failed_within", "; {trials_failed_within:trial} failed meanwhile"),
        ".",
    ),
    remedy="See what happened in the gaps: a recorder that stops when the machine is overloaded or the driver hangs "
    "misses the interesting minutes. Record at a lower rate or higher priority.",
    refuted_by="Not a problem if the recorder was restarted on purpose.",
)
def sampling_gaps(seen: SamplingProfile, *, max_gap_pct: float = 5.0) -> Outcome:
    """A step of more than three median periods is a gap; nothing is assumed about the time within it. Time between two
    attempts of a run, which held no GPU, is none: coverage and the ledger leave it out as well.

    The median is that of the whole record or, if longer, of the 21 steps around it. A step above half an hour is a gap
    in any case, but in a record that usually samples more rarely than every 20 minutes, where it is one above 1.5
    median periods. Reported where the gaps of a GPU
    leave more than this share of its span unobserved (a default without a published source), and as a warning where
    trials failed within gaps, for then the missing data are informative, and where it is more than 99 %: then a
    timestamp is wrong, or hardly anything was seen.
    """
    if seen.gaps.empty:
        return Passed("No gap.")
    share = seen.gaps.groupby("gpu", sort=False)["share_pct"].sum()
    worst = share.idxmax()
    failed = int(seen.gaps.groupby("gpu")["trials_ended"].sum().max())
    if not (share[worst] > max_gap_pct or failed > 0):
        says = "Gaps leave out {gap_pct} of the time ({gpu}; limit {max_gap_pct})."
        return Passed(says, gap_pct=float(share[worst]), gpu=str(worst))
    return Evidence(
        values={
            "gap_pct": float(share[worst]),
            "n_gaps": seen.n_gaps,
            "longest_gap_s": seen.longest_gap_s,
            "trials_failed_within": failed,
        },
        where={"gpu": ", ".join(share.index)},
        margin=float(share[worst] - max_gap_pct),
        severity=Severity.WARNING if failed or share[worst] > MOSTLY_GAP_PCT else None,
        extra={"gpu": str(worst), "n_own_gaps": int((seen.gaps["gpu"] == worst).sum())},
    )


def _stray(seen: SamplingProfile, gpu: object) -> dict[str, date | None]:
    """The days between which there is nothing, where one gap is nearly all of the span: no recorder that ran can have
    written the timestamps beyond it.
    """
    gaps = seen.gaps[(seen.gaps["gpu"] == gpu) & (seen.gaps["share_pct"] > MOSTLY_GAP_PCT)]
    if gaps.empty:
        return {"gap_start": None, "gap_end": None}
    return {"gap_start": gaps.iloc[0]["start"].date(), "gap_end": gaps.iloc[0]["end"].date()}
