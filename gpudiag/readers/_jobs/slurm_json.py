"""Jobs as Slurm prints them as JSON, as cells under the names of sacct's columns.

sacct and the other commands name fields differently; the versions of Slurm's data parser (v0.0.37 to v0.0.46) write a
number plainly or as {"set": true, "infinite": false, "number": 4}, and a state as one word or as a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from gpudiag.errors import InputError
from gpudiag.readers._io.json_values import read_json
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.gpu_numbers import gpu_numbers, n_gpus, written
from gpudiag.readers._jobs.node_list import expanded
from gpudiag.readers._jobs.slurm_trials import WAITING, Row, ended

_FLAGS = (
    *("STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED"),
    *("REVOKED", "RESV_DEL_HOLD", "SIGNALING"),
)
"""Flags of a state that Slurm's own texts say in place of the state, first first (job_state_string)."""
_BASE = (
    *("RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL"),
    *("DEADLINE", "OUT_OF_MEMORY", "PENDING", "COMPLETING"),
)
_LARGEST = 2**53
_JOBS = re.compile(r'"jobs"\s*:\s*\[')
_OF_SLURM = re.compile(r'"(?:data_parser|Slurm|slurm)"\s*:')
_BEGINNING = 8192
"""Characters: only what Slurm says of itself stands before the jobs."""
_NO_JOB = "entry that is no job"


def is_slurm_json(source: Source) -> bool:
    """A JSON object with a list of jobs that have a number and nodes, or an empty one of Slurm."""
    text = source.text
    if source.is_binary or not text.lstrip().startswith("{"):
        return False
    found = _JOBS.search(text[:_BEGINNING])
    if found is None:
        return False
    if text[found.end() :].lstrip().startswith("]"):
        return _OF_SLURM.search(text) is not None
    return '"job_id"' in text and '"nodes"' in text


def document(source: Source) -> Any:
    """All of it. Raises InputError where it is not whole."""
    try:
        return read_json(source.read_text())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source.path}: is no whole JSON document; print it again with: sacct --json.") from error


def rows_of(whole: Any, log: ProblemLog) -> Iterator[Row]:
    """Each job by its number in the list, from 1, and the steps that sacct lists behind it."""
    jobs = _at(whole, "jobs")
    now = _number(_at(whole, "last_update"))
    for number, job in enumerate(jobs if isinstance(jobs, list) else [], start=1):
        name = _job_id(job) if isinstance(job, dict) else ""
        state = _state(_at(job, "state", "current") or _at(job, "job_state"))
        if not name or not state:
            log.add(_NO_JOB, line=number, example=job, lost=True)
            continue
        cells = _of_sacct(job, state) if isinstance(job.get("time"), dict) else _of_controller(job, state, now)
        yield number, {"JobID": name, "JobName": _text(job.get("name")), **cells}
        steps = job.get("steps")
        for at, step in enumerate(steps if isinstance(steps, list) else []):
            yield number, {"JobID": f"{name}.{at}", "State": _state(_at(step, "state")), "MaxRSS": _peak(step)}


def _job_id(job: Mapping[str, Any]) -> str:
    """As sacct writes it: ``8_4`` of an array, ``8_[5-9]`` of its tasks that wait, ``12+0`` of a heterogeneous job."""
    own = _number(job.get("job_id"))
    array = _number(_at(job, "array", "job_id") or job.get("array_job_id"))
    if array and own is not None:
        task = _number(_at(job, "array", "task_id") if "array" in job else job.get("array_task_id"))
        waiting = _text(_at(job, "array", "task") or job.get("array_task_string"))
        return f"{array}_{task}" if task is not None else f"{array}_[{waiting}]" if waiting else str(own)
    het = _number(_at(job, "het", "job_id") or job.get("het_job_id"))
    if het:
        return f"{het}+{_number(_at(job, 'het', 'job_offset') or job.get('het_job_offset')) or 0}"
    return "" if own is None else str(own)


def _of_sacct(job: Mapping[str, Any], state: str) -> dict[str, str]:
    times, seconds = job["time"], _number(_at(job, "time", "elapsed"))
    by = _number(job.get("kill_request_user"))
    return {
        **_common(job, times.get("limit"), times.get("submission")),
        "State": f"{state} by {by}" if state == "CANCELLED" and by is not None else state,
        "Start": _time(times.get("start")),
        "End": _time(times.get("end")) if ended(state) else "",
        "Elapsed": "" if seconds is None else _clock(seconds),
        "AllocTRES": _tres(_at(job, "tres", "allocated")),
        "ReqTRES": _tres(_at(job, "tres", "requested")),
        "NNodes": _count(job.get("allocation_nodes")),
        "NCPUS": _cpus(_at(job, "tres", "allocated")),
        "AdminComment": _text(_at(job, "comment", "administrator")),
    }


def _of_controller(job: Mapping[str, Any], state: str, now: int | None) -> dict[str, str]:
    """What squeue and scontrol say: of a job that waits or runs, the end is the one that its time limit allows.

    ``now``: when the controller last changed its list; what runs has run until then.
    """
    began = state not in WAITING and bool(job.get("nodes"))
    start = _number(job.get("start_time"))
    ran_s = now - start if state == "RUNNING" and began and start and now else 0
    gres = [_text(one) for one in job["gres_detail"]] if isinstance(job.get("gres_detail"), list) else []
    return {
        **_common(job, job.get("time_limit"), job.get("submit_time")),
        "State": state,
        "Start": _time(job.get("start_time")) if began else "",
        "End": _time(job.get("end_time")) if ended(state) else "",
        "Elapsed": _clock(ran_s) if ran_s > 0 else "",
        "AllocTRES": _sorted(job.get("tres_alloc_str")) if began else "",
        "ReqTRES": _sorted(job.get("tres_req_str")),
        "GpuCount": _count(n_gpus(",".join(gres))) if began else "",
        "GpuNumbers": _numbers_on(_text(job.get("nodes")), gres) if began else "",
        "NNodes": _count(job.get("node_count")),
        "NCPUS": _count(job.get("cpus")),
        "AdminComment": _text(job.get("admin_comment")),
    }


def _common(job: Mapping[str, Any], limit: Any, submitted: Any) -> dict[str, str]:
    minutes = _number(limit)
    forever = isinstance(limit, dict) and limit.get("infinite") is True
    return {
        "Partition": _text(job.get("partition")),
        "Account": _text(job.get("account")),
        "User": _text(_at(job, "association", "user") or job.get("user") or job.get("user_name")),
        "NodeList": _text(job.get("nodes")),
        "ExitCode": _exit(job.get("exit_code")),
        "Restarts": _count(job.get("restart_cnt")),
        "Timelimit": "UNLIMITED" if forever else "" if minutes is None else _clock(60 * minutes),
        "Submit": _time(submitted),
    }


def _numbers_on(nodes: str, gres: list[str]) -> str:
    """The numbers of the GPUs by node, where each node has an entry of its own."""
    try:
        names = expanded(nodes)
    except ValueError:
        return ""
    return written(dict(zip(names, map(gpu_numbers, gres), strict=True))) if len(names) == len(gres) else ""


def _clock(seconds: int) -> str:
    """``1-02:03:04``."""
    days, rest = divmod(seconds, 86400)
    return (f"{days}-" if days else "") + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    """None for what is not set, infinite, or no whole number from 0."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) is True and value.get("infinite") is not True else None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else None


def _count(value: Any) -> str:
    number = _number(value)
    return "" if number is None else str(number)


def _time(value: Any) -> str:
    """0 is no time. What is beyond the years of a calendar is no date, and is counted as such."""
    seconds = _number(value)
    if not seconds:
        return ""
    try:
        return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        return f"{seconds} s"


def _state(value: Any) -> str:
    """One word of those that a job is in."""
    words = value if isinstance(value, list) else [value]
    held = {word for word in words if isinstance(word, str) and word}
    return next((word for word in (*_FLAGS, *_BASE) if word in held), min(held, default=""))


def _exit(value: Any) -> str:
    """``1:0``: what it returned, and the signal that ended it."""
    signal = _at(value, "signal", "id")
    parts = [
        _number(_at(value, "return_code")),
        _number(_at(value, "signal", "signal_id") if signal is None else signal),
    ]
    return "" if parts == [None, None] else ":".join(str(part or 0) for part in parts)


def _tres(entries: Any) -> str:
    """``cpu=8,gres/gpu=4,mem=64G``, in sacct's order; memory is counted in MiB."""
    out = []
    for entry in entries if isinstance(entries, list) else []:
        kind, name, n = _text(_at(entry, "type")), _text(_at(entry, "name")), _number(_at(entry, "count"))
        if kind and n is not None:
            out.append(f"{kind}/{name}={n}" if name else f"{kind}={_size(n) if kind == 'mem' else n}")
    return ",".join(sorted(out))


def _sorted(tres: Any) -> str:
    """In sacct's order."""
    return ",".join(sorted(_text(tres).split(",")))


def _size(mib: int) -> str:
    """The largest unit of which it is a whole number, as sacct takes it."""
    unit = 0
    while mib and mib % 1024 == 0 and unit < 3:
        mib, unit = mib // 1024, unit + 1
    return f"{mib}{'MGTP'[unit]}"


def _cpus(entries: Any) -> str:
    counts = (
        [_count(_at(one, "count")) for one in entries if _at(one, "type") == "cpu"] if isinstance(entries, list) else []
    )
    return counts[0] if counts else ""


def _peak(step: Any) -> str:
    """The most memory that a task of the step used, which is called requested."""
    entries = _at(step, "tres", "requested", "max")
    found = (
        [_number(_at(one, "count")) for one in entries if _at(one, "type") == "mem"]
        if isinstance(entries, list)
        else []
    )
    return f"{found[0] // 1024}K" if found and found[0] else ""
