"""Jobs of a scheduler: who had how many GPUs of which nodes from when to when, as Slurm prints it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import Problem, ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.gpu_counts import allocated_gpus, counts_gpus
from gpudiag.readers._jobs.job_times import JobTimes, job_times
from gpudiag.readers._jobs.jobstats import recorded
from gpudiag.readers._jobs.node_list import expanded
from gpudiag.readers._jobs.scontrol_text import is_scontrol_text
from gpudiag.readers._jobs.scontrol_text import rows_of as rows_of_text
from gpudiag.readers._jobs.slurm_json import document, is_slurm_json
from gpudiag.readers._jobs.slurm_json import rows_of as rows_of_json
from gpudiag.readers._jobs.slurm_trials import Row
from gpudiag.timezones import Zone, parse_zone

ADVICE = (
    "sacct --allusers --parsable2 --duplicates --starttime ... "
    "--format=JobID,JobName,User,Account,State,Start,End,Elapsed,NodeList,AllocTRES,ReqTRES,AdminComment"
)
NEEDED = ("State", "Start", "End", "NodeList")
FREE_TEXT = ("JobName", "AdminComment", "Comment", "SystemComment", "Extra", "WorkDir", "SubmitLine")
"""Columns that users write: only these can hold the sign between columns, which sacct does not escape."""
_TIME = re.compile(r"(\d[\d:.TZ+-]*|Unknown|None)?")
_STATE = re.compile(r"[A-Z_]+(\+| by .*)?")
WIDTH = "row of another width"
NO_TIME, NO_NODES = "job with times that are none", "list of nodes that is none"


@dataclass(frozen=True)
class SchedulerJob:
    """A job. Times are microseconds since 1970 (UTC), ``end_us`` None while it runs. ``n_gpus``: of all nodes, None
    unknown. ``use``: mean utilization by node and number of the GPU, where jobstats recorded which it had.
    """

    id: str
    start_us: int
    end_us: int | None
    nodes: tuple[str, ...]
    n_gpus: int | None = None
    name: str = ""
    user: str = ""
    account: str = ""
    state: str = ""
    gpu_model: str = ""
    use: Mapping[str, Mapping[str, float]] | None = None


@dataclass(frozen=True)
class SchedulerJobs:
    """``jobs`` by start. ``n_unstarted`` never began, ``n_without_gpu`` had no GPU; ``notes``: what was assumed."""

    jobs: tuple[SchedulerJob, ...]
    n_unstarted: int
    n_without_gpu: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def read_jobs(path: str | Path, timezone: Zone = None) -> SchedulerJobs:
    """The jobs of ``sacct --parsable2``, JSON of Slurm or ``scontrol show job`` with GPUs, or of which nothing says how
    many they had.

    Steps (``123.batch``) are no jobs; a job that was requeued is one for each time it ran; of a job listed twice with
    one start the later line holds.

    Times of sacct's table and of scontrol are local and carry no offset: those of ``timezone``, else of this machine.

    Raises InputError for another table.
    """
    source = Source.open(path)
    log, zone = ProblemLog(), parse_zone(timezone)
    rows = list(_listed(source, log))
    counted = counts_gpus(row for _, row in rows)
    times = job_times([(row["Start"], row["End"], row.get("Elapsed", "")) for _, row in rows], zone)
    unstarted = without = 0
    held: dict[tuple[str, int], SchedulerJob] = {}
    for (line, row), (start, end) in zip(rows, times.spans, strict=True):
        if start is None:
            unstarted += 1
            continue
        if end is not None and end < start:
            log.add(NO_TIME, line=line, example=f"{row['Start']} to {row['End']}", lost=True)
            continue
        job = _job(row, start, end, line, log, counted=counted)
        if job.n_gpus == 0:
            without += 1
            continue
        key = job.id, start
        if key in held and end is None:
            job = replace(job, end_us=held[key].end_us)
        held[key] = job
    jobs = tuple(sorted(held.values(), key=lambda job: (job.start_us, job.id)))
    return SchedulerJobs(jobs, unstarted, without, log.all, _notes(source, zone, times))


def _notes(source: Source, zone: tzinfo, times: JobTimes) -> tuple[str, ...]:
    said = [] if times.zoned else [f"Times in {source.path.name} carry no zone; they were read as those of {zone}."]
    if times.doubtful:
        said.append(
            f"{times.doubtful:,} times lie in the hour that a change of clocks repeats; the first pass was taken."
        )
    return tuple(said)


def _listed(source: Source, log: ProblemLog) -> Iterator[Row]:
    """Jobs without their steps, by the line or the number of each."""
    if is_slurm_json(source) or is_scontrol_text(source):
        lines = numbered_lines(source, log)
        rows = rows_of_json(document(source), log) if is_slurm_json(source) else rows_of_text(lines, log)
        yield from (row for row in rows if "." not in row[1]["JobID"])
        return
    names = header_of(source)
    missing = [name for name in NEEDED if name not in names] if names else ["JobID"]
    if missing or not {"JobID", "JobIDRaw"} & set(names):
        lacks = f" (it lacks {', '.join(missing)})" if names else ""
        raise InputError(f"{source.path}: is no list of jobs{lacks}; print one with: {ADVICE}.")
    yield from _rows(source, names, log)


def header_of(source: Source) -> list[str]:
    """The names in the first line of what sacct prints for ``--parsable``; none where it is another."""
    if source.is_binary or not source.lines or "|" not in source.lines[0]:
        return []
    return source.lines[0].strip().rstrip("|").split("|")


def _rows(source: Source, names: list[str], log: ProblemLog) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines that are of a job, not of a step or a header in the middle."""
    closed = source.lines[0].rstrip().endswith("|")  # as --parsable prints it
    for line, text in numbered_lines(source, log):
        cells = (text.rstrip("\r").removesuffix("|") if closed else text).split("|")
        if cells[: len(names)] == names or not text.strip():
            continue
        fitted = _fitted(cells, names)
        if fitted is None:
            log.add(WIDTH, line=line, example=text, lost=True)
            continue
        row = dict(zip(names, fitted, strict=True))
        if "." not in (row.get("JobID") or row.get("JobIDRaw", "")):
            yield line, row


def _fitted(cells: list[str], names: list[str]) -> list[str] | None:
    """The cells, a cell for each name. Where there are more, the surplus is of the one text of a user with which state
    and times stand where they should; None where there is no such text, or more than one.
    """
    surplus = len(cells) - len(names)
    if surplus <= 0:
        return None if surplus else cells
    ways = []
    for at in (names.index(name) for name in FREE_TEXT if name in names):
        way = [*cells[:at], "|".join(cells[at : at + surplus + 1]), *cells[at + surplus + 1 :]]
        row = dict(zip(names, way, strict=True))
        if _STATE.fullmatch(row["State"]) and _TIME.fullmatch(row["Start"]) and _TIME.fullmatch(row["End"]):
            ways.append(way)
    return ways[0] if len(ways) == 1 else None


def _job(
    row: Mapping[str, str], start: int, end: int | None, line: int, log: ProblemLog, *, counted: bool
) -> SchedulerJob:
    try:
        nodes = expanded(row["NodeList"])
    except ValueError as error:
        log.add(NO_NODES, line=line, example=str(error), lost=True)
        nodes = ()
    record = recorded(row.get("AdminComment", ""), line, log)
    n_gpus, model = allocated_gpus(row, counted=counted)
    return SchedulerJob(
        id=row.get("JobID") or row["JobIDRaw"],
        start_us=start,
        end_us=end,
        nodes=nodes,
        n_gpus=n_gpus,
        name=row.get("JobName", ""),
        user=row.get("User", ""),
        account=row.get("Account", ""),
        state=row["State"].split(" ")[0].rstrip("+"),
        gpu_model=model,
        use=record.use_pct or None,
    )
