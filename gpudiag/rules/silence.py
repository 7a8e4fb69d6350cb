"""Does the log of a training go on as long as its GPUs are held?"""

from __future__ import annotations

from gpudiag.measures.silence import AT_WORK, FULL, IDLE, SilenceProfile, measure_silence
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

KILLED = (
    "Look for what killed it: the host's memory (journalctl -k | grep -i oom), the scheduler (sacct -j JOB), the "
    "output of the launcher. Let the job end with its process, and resume from the last checkpoint."
)


@rule(
    measure=measure_silence,
    severity="warning",
    title="The log fell silent before its last step",
    checks="Silence of the log",
    says=(
        "The log stops at step {last_step:as count} of {total_steps:as count} and tells of no error. Until then it had "
        "a line every {line_every_s}; {gpus} ",
        Given("several", "were", "was"),
        " recorded for {silent_s} more",
        Given("idle", ", idle"),
        Given("full", ", at {silent_pct} utilization"),
        Given("mixed", ", some idle and some at full utilization"),
        Given("freed", ", and memory was freed: the training was killed, or ended without a word"),
        Given("held", ", with memory held: the training most likely hangs"),
        Given("open", ": the training hangs, or the rest of its log is missing"),
        ".",
        Given("others", " Another GPU worked on: it may be of the same job."),
    ),
    remedy="See where each process stands while it hangs (py-spy dump --pid PID). Let a timeout end a collective "
    "(init_process_group(timeout=...)), and a watchdog end a job whose log is silent. Resume from the last checkpoint.",
    refuted_by="Not a problem if the log was copied, or cut, before the training went on.",
    explained_by=(
        "rank-missing",
        "collective-stuck",
        "collective-mismatch",
        "busy-without-progress",
        "loss-not-finite",
    ),
)
def log_silent(silence: SilenceProfile, *, min_silent_s: float = 600.0, min_due_ratio: float = 2.0) -> Evidence | None:
    """A training that hangs, or was killed without a word, leaves a log that stops, and GPUs that are held for nothing.

    From the last line of any kind for 10 minutes or more, after which PyTorch ends a collective of NCCL, and for twice
    as long as the log was ever silent before, or as ten of its lines take (a default without a published source). The
    GPUs that worked until then are idle, and their time is lost; or at 98 % utilization or more, with a power that is
    not recorded: then the log may not be whole, and the loss is unknown. A recorded power tells more: see progress at
    high utilization. Where another GPU works on, both may be one job: a note. Nothing is said of logs that end with an
    error, that say that they stopped early, or whose clock the work of the GPUs does not confirm.
    """
    if silence.has_trials:
        raise NotApplicable("The trials say themselves how they ended.")
    if not (silence.silent_s >= min_silent_s and silence.silent_s >= min_due_ratio * silence.due_s):
        return None
    others = silence.per_gpu["state"] == AT_WORK
    table = silence.per_gpu[~others]
    idle, full = table[table["state"] == IDLE], table[table["state"] == FULL]
    freed = bool(table["is_freed"].all())
    held = not freed and full.empty and bool((table["silent_mib"] >= 0).all())
    lost_s, seconds = float(idle["silent_s"].sum()), float(table["silent_s"].sum())
    return Evidence(
        values={
            "last_step": silence.last_step,
            "total_steps": silence.total_steps,
            "silent_s": silence.silent_s,
            "line_every_s": silence.line_every_s,
            "silent_pct": float(table["silent_pct"].mean()),
        },
        where={"gpu": ", ".join(map(str, table.index))},
        margin=silence.silent_s - min_silent_s,
        severity=Severity.NOTE if others.any() else None,
        lost_gpu_h=lost_s / 3600 if lost_s > 0 and not others.any() else None,
        held_gpu_h=seconds / 3600,
        extra={
            "others": bool(others.any()),
            "several": len(table) > 1,
            "idle": len(full) == 0,
            "full": len(idle) == 0,
            "mixed": len(full) > 0 and len(idle) > 0,
            "freed": freed,
            "held": held,
            "open": not freed and not held,
        },
        remedy=KILLED if freed else "",
    )
