"""Jobs of Slurm, however they were printed, as trials: cells under the names that sacct gives its columns.

A job with GPUs is a trial for each time that it ran; steps are folded into their job.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._io.paths import without_kind
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.gpu_counts import allocated_gpus, counts_gpus
from gpudiag.readers._jobs.jobstats import JobstatsRecord, recorded
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.report.format import plural

WAITING = ("PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
"""States in which a job is in the queue: what slurmctld gives as its start and end is expected, and did not happen."""
_STATES = {
    "COMPLETED": "COMPLETE",
    **dict.fromkeys(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"), "RUNNING"),
    **dict.fromkeys((*WAITING, "CONFIGURING"), "WAITING"),
    **dict.fromkeys(
        ("FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "DEADLINE",
         "REQUEUED"), "FAIL"
    ),
}  # fmt: skip
_KEPT = ("Partition", "Account", "NCPUS", "ReqMem", "MaxRSS", "NNodes", "AllocTRES", "Timelimit", "Submit")
"""Columns kept as attributes; ``SubmitLine`` and ``WorkDir`` may hold secrets and are not."""
_UTIL, _LOWEST = "user_attrs.gpu_util_pct", "user_attrs.gpu_util_lowest_pct"
"""Mean utilization of the job's GPUs, and of the one that did least."""
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_SIZE = re.compile(r"([\d.]+)([BKMGTP])?")

Row = tuple[int, dict[str, str]]
"""The number of a line, or of an entry, and its cells."""


@dataclass
class SlurmJob:
    """The row of a job, or of one of the times that a requeued one ran, with what its steps tell."""

    id: str
    line: int
    cells: dict[str, str]


def folded(rows: Iterable[Row], problems: ProblemLog) -> list[SlurmJob]:
    """In the order of the file, steps folded into the job above them. Of rows with one id and one start the last
    holds, in the place of the first.
    """
    runs: dict[tuple[str, str], SlurmJob] = {}
    above: dict[str, SlurmJob] = {}
    for line, cells in rows:
        whole = cells.get("JobID") or cells["JobIDRaw"]
        job, _, step = whole.partition(".")
        if not step:
            above[job] = runs[job, cells.get("Start", "")] = SlurmJob(job, line, cells)
        elif job in above:
            _fold(above[job].cells, cells)
        else:
            problems.add("step whose job is not listed", line=line, example=whole, lost=True)
    return list(runs.values())


def trials_of(
    rows: Iterable[Row], source: Source, options: ReadOptions, reader: str, problems: ProblemLog, *, expected: str
) -> Trials:
    """One trial for each time that a job with GPUs ran, numbered in the order of the file; an OUT_OF_MEMORY job is an
    event too.

    Raises InputError if there is no job.
    """
    jobs = folded(rows, problems)
    if not jobs:
        raise InputError(f"{source.path}: holds no job; expected {expected}.")
    counted = counts_gpus(job.cells for job in jobs)
    with_gpus = [job for job in jobs if allocated_gpus(job.cells, counted=counted)[0] != 0]
    trials = [
        _trial(job, counted=counted) | _used(recorded(job.cells.get("AdminComment", ""), job.line, problems))
        for job in with_gpus
    ]
    lines = [job.line for job in with_gpus]
    events = [
        {
            "time": row.get("end"),
            "kind": "killed",
            "detail": f"{row['name']}: {row['detail']}",
            "trial": at,
            "line": line,
        }
        for at, (row, line) in enumerate(zip(trials, lines, strict=True))
        if row.get("detail", "").startswith("OUT_OF_MEMORY")
    ]
    notes = ["OUT_OF_MEMORY of Slurm is the job's limit on host memory, not the GPU's."] if events else []
    if n_recorded := sum(_UTIL in row for row in trials):
        notes.append(f"jobstats recorded the GPU utilization of {n_recorded:,} of {plural(len(trials), 'job')}.")
    if n_without := len(jobs) - len(with_gpus):
        notes.append(f"{plural(n_without, 'job')} had no GPU and {'is' if n_without == 1 else 'are'} left out.")
    if n_again := _not_listed(jobs):
        notes.append(
            f"{plural(n_again, 'job')} began anew after a requeue, and not all earlier runs are listed; "
            "sacct --duplicates lists them."
        )
    study = without_kind(source.path)
    return batch(trials, source, options, reader, problems, study=study, events=events, notes=notes, lines=lines)


def _not_listed(jobs: Iterable[SlurmJob]) -> int:
    """Jobs that were started again more often than the list has runs of them."""
    runs, again = Counter(job.id for job in jobs), dict[str, int]()
    for job in jobs:
        text = job.cells.get("Restarts", "")
        again[job.id] = max(again.get(job.id, 0), int(text) if text.isdecimal() and len(text) < 10 else 0)
    return sum(runs[name] <= n for name, n in again.items() if n)


def _fold(job: dict[str, str], step: Mapping[str, str]) -> None:
    """What only steps tell: the memory they used, and that one of them ran out of it."""
    job["MaxRSS"] = max(job.get("MaxRSS", ""), step.get("MaxRSS", ""), key=_bytes)
    if step.get("State", "").startswith("OUT_OF_MEMORY") and job["State"].startswith("FAILED"):
        job["State"] = step["State"]


def ended(word: str) -> bool:
    """Whether a job in this state has run."""
    return _STATES.get(word, "FAIL") in ("COMPLETE", "FAIL")


def _trial(job: SlurmJob, *, counted: bool) -> dict[str, Any]:
    cells = job.cells
    word = cells["State"].split(" ")[0].rstrip("+")
    state = _STATES.get(word, "FAIL")
    row: dict[str, Any] = {"name": cells.get("JobName") or job.id, "state": state}
    row |= {key: cells[name] for key, name in (("start", "Start"), ("end", "End")) if _known(cells.get(name))}
    if "start" in row or "Start" not in cells:  # what never began took no time, and not a time of 0 s
        row["duration_s"] = _seconds(cells.get("Elapsed", ""))
    if state == "FAIL":
        row["detail"] = ", ".join(x for x in (cells["State"], _exit(cells.get("ExitCode", ""))) if x)
    if _known(cells.get("NodeList")):
        row["host"] = cells["NodeList"]
    row["user_attrs.job"] = job.id
    row |= {f"user_attrs.{name}": cells[name] for name in _KEPT if _known(cells.get(name))}
    if (n_gpus := allocated_gpus(cells, counted=counted)[0]) is not None:
        row["user_attrs.gpus"] = n_gpus
    if cells.get("GpuNumbers"):
        row["user_attrs.gpu_numbers"] = cells["GpuNumbers"]
    return row


def _used(record: JobstatsRecord) -> dict[str, float]:
    """What jobstats says of the GPUs of a job; what it does not say is absent."""
    used_mib, total_mib = record.fullest()
    found = {"user_attrs.gpu_mem_used_mib": used_mib, "user_attrs.gpu_mem_total_mib": total_mib}
    if known := record.known_pct():
        found |= {_UTIL: sum(known) / len(known), _LOWEST: min(known)}
        found |= {"user_attrs.gpus_recorded": len(known), "user_attrs.gpus_unused": sum(pct == 0 for pct in known)}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _known(cell: str | None) -> bool:
    return bool(cell) and cell not in ("Unknown", "None", "None assigned", "N/A")


def _exit(cell: str) -> str:
    return "" if cell in ("", "0:0") else f"exit code {cell}"


def _bytes(size: str) -> float:
    """``1043168K`` in bytes; 0 for an empty cell, as a job's own row has it."""
    match = _SIZE.fullmatch(size)
    return float(match[1]) * 1024 ** "BKMGTP".index(match[2] or "B") if match else 0.0


def _seconds(text: str) -> float:
    """``1-02:03:04`` or ``02:03.918`` in seconds."""
    match = _ELAPSED.fullmatch(text.strip())
    if match is None:
        return float("nan")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
