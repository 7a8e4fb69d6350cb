"""``sacct --parsable2`` (or ``--parsable``): Slurm's own record of jobs. Steps are folded into their job.

Where jobstats left its record in AdminComment, the job has the mean utilization of its GPUs and their fullest memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._batches.batch_tables import batch
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.jobstats import JobstatsRecord
from gpudiag.readers._jobs.scheduler_jobs import allocated_gpus, counts_gpus, recorded
from gpudiag.readers.base import Reader, ReadOptions, Trials
from gpudiag.report.format import plural

NAME = "slurm-sacct"

_STATES = {
    "COMPLETED": "COMPLETE",
    "RUNNING": "RUNNING", "COMPLETING": "RUNNING", "SUSPENDED": "RUNNING",
    "PENDING": "WAITING", "CONFIGURING": "WAITING",
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


def recognises(source: Source) -> bool:
    """The header of ``--parsable2``: names joined by ``|``, with the job, its state and a time. Its table in columns
    is known too, to say how to print it.
    """
    if _is_in_columns(source):
        return True
    names = set(_header(source))
    return bool(names & {"JobID", "JobIDRaw"}) and "State" in names and bool(names & {"Start", "End", "Elapsed"})


def _is_in_columns(source: Source) -> bool:
    """What sacct prints when it is not asked for ``--parsable2``: a line of dashes below names, cells cut to fit."""
    if source.is_binary or len(source.lines) < 2:
        return False
    names, rule = source.lines[0].split(), source.lines[1].split()
    return "JobID" in names and "State" in names and len(rule) == len(names) and set("".join(rule)) == {"-"}


def _header(source: Source) -> list[str]:
    if source.is_binary or not source.lines or "|" not in source.lines[0]:
        return []
    return source.lines[0].strip().rstrip("|").split("|")


def read(source: Source, options: ReadOptions) -> Trials:
    """One trial for each time that a job with GPUs ran, numbered in the order of the file; an OUT_OF_MEMORY job is an
    event too.

    Raises InputError if there is no job, or if the cells are cut.
    """
    if _is_in_columns(source):
        raise InputError(
            f"{source.path}: is sacct's table with cells cut to fit; print it again with: sacct --parsable2 "
            "--format=JobID,JobName,State,ExitCode,Start,End,Elapsed,AllocTRES,NodeList."
        )
    problems = ProblemLog()
    jobs = _jobs(source, problems)
    if not jobs:
        raise InputError(f"{source.path}: holds no job; expected rows as sacct --parsable2 prints them.")
    counted = counts_gpus(job.cells for job in jobs)
    with_gpus = [job for job in jobs if allocated_gpus(job.cells, counted=counted)[0] != 0]
    rows = [
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
        for at, (row, line) in enumerate(zip(rows, lines, strict=True))
        if row.get("detail", "").startswith("OUT_OF_MEMORY")
    ]
    notes = ["OUT_OF_MEMORY of Slurm is the job's limit on host memory, not the GPU's."] if events else []
    if n_recorded := sum(_UTIL in row for row in rows):
        notes.append(f"jobstats recorded the GPU utilization of {n_recorded:,} of {plural(len(rows), 'job')}.")
    if n_without := len(jobs) - len(with_gpus):
        notes.append(f"{plural(n_without, 'job')} had no GPU and {'is' if n_without == 1 else 'are'} left out.")
    study = as_text(source.path.name).split(".")[0]
    return batch(rows, source, options, NAME, problems, study=study, events=events, notes=notes, lines=lines)


@dataclass
class _Job:
    """The row of a job, or of one of the times that a requeued one ran, with what its steps tell."""

    id: str
    line: int
    cells: dict[str, str]


def _jobs(source: Source, problems: ProblemLog) -> list[_Job]:
    """In the order of the file, steps folded into the job above them. Of rows with one id and one start the last
    holds, in the place of the first.
    """
    runs: dict[tuple[str, str], _Job] = {}
    above: dict[str, _Job] = {}
    for line, cells in _rows(source, problems):
        whole = cells.get("JobID") or cells["JobIDRaw"]
        job, _, step = whole.partition(".")
        if not step:
            above[job] = runs[job, cells.get("Start", "")] = _Job(job, line, cells)
        elif job in above:
            _fold(above[job].cells, cells)
        else:
            problems.add("step whose job is not listed", line=line, example=whole, lost=True)
    return list(runs.values())


def _rows(source: Source, problems: ProblemLog) -> Iterator[tuple[int, dict[str, str]]]:
    names = _header(source)
    for line, text in numbered_lines(source, problems):
        cells = text.split("|")
        if cells[: len(names)] == names or not text.strip():
            continue
        if len(cells) not in (len(names), len(names) + 1):
            problems.add("row of another width", line=line, example=text, lost=True)
            continue
        yield line, dict(zip(names, cells, strict=False))


def _fold(job: dict[str, str], step: Mapping[str, str]) -> None:
    """What only steps tell: the memory they used, and that one of them ran out of it."""
    job["MaxRSS"] = max(job.get("MaxRSS", ""), step.get("MaxRSS", ""), key=_bytes)
    if step.get("State", "").startswith("OUT_OF_MEMORY") and job["State"].startswith("FAILED"):
        job["State"] = step["State"]


def _trial(job: _Job, *, counted: bool) -> dict[str, Any]:
    cells = job.cells
    word = cells["State"].split(" ")[0].rstrip("+")
    state = _STATES.get(word, "FAIL")
    row: dict[str, Any] = {"name": cells.get("JobName") or job.id, "state": state}
    row |= {key: cells[name] for key, name in (("start", "Start"), ("end", "End")) if _known(cells.get(name))}
    row["duration_s"] = _seconds(cells.get("Elapsed", ""))
    if state == "FAIL":
        row["detail"] = ", ".join(x for x in (cells["State"], _exit(cells.get("ExitCode", ""))) if x)
    if _known(cells.get("NodeList")):
        row["host"] = cells["NodeList"]
    row["user_attrs.job"] = job.id
    row |= {f"user_attrs.{name}": cells[name] for name in _KEPT if _known(cells.get(name))}
    if (n_gpus := allocated_gpus(cells, counted=counted)[0]) is not None:
        row["user_attrs.gpus"] = n_gpus
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


READER: Reader[Trials] = Reader(NAME, recognises, read)
