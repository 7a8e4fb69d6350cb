"""The same jobs of Slurm as sacct's table, as JSON of both kinds and as ``scontrol show job`` prints them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

BEGAN = datetime(2026, 3, 2, 1, tzinfo=UTC)
LIMIT_MIN = 120


@dataclass(frozen=True)
class Job:
    """``start`` and ``end`` in minutes; ``task`` of an array; ``step``: the state of its one step."""

    number: int
    state: str
    start: float | None
    end: float | None
    nodes: str = ""
    gpus: int = 2
    idx: str = ""
    exit: tuple[int, int] = (0, 0)
    task: str = ""
    by: int | None = None
    step: str = ""
    restarts: int = 0
    name: str = "train"

    @property
    def id(self) -> str:
        task = self.task if self.task.isdecimal() else f"[{self.task}]"
        return f"{self.number}_{task}" if self.task else str(self.number)

    @property
    def elapsed(self) -> str:
        if self.start is None:
            return "00:00:00"
        seconds = round(60 * ((60.0 if self.end is None else self.end) - self.start))
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"

    @property
    def tres(self) -> dict[str, int | str]:
        gpus: dict[str, int | str] = {"gres/gpu:a100": self.gpus, "gres/gpu": self.gpus} if self.gpus else {}
        return {"billing": 8, "cpu": 8, **gpus, "mem": "64G", "node": 1}


JOBS = (
    Job(1, "COMPLETED", 1, 11, "node1", idx="0-1", step="COMPLETED"),
    Job(2, "TIMEOUT", 11, 21, "node1", exit=(0, 15), idx="0-1"),
    Job(3, "OUT_OF_MEMORY", 21, 26, "node1", exit=(0, 125), idx="0-1"),
    Job(4, "NODE_FAIL", 26, 30, "node1", idx="0-1"),
    Job(5, "CANCELLED", 30, 36, "node1", by=1009, idx="0-1"),
    Job(6, "FAILED", 36, 40, "node1", exit=(1, 0), idx="0-1", name="two words JobState=RUNNING"),
    Job(70, "COMPLETED", 40, 45, "node1", task="2", idx="0-1"),
    Job(80, "PENDING", None, None, task="3-9"),
    Job(9, "COMPLETED", 0, 59, "node7", gpus=0),
    Job(10, "CANCELLED", None, 12, by=1009),
    Job(11, "RUNNING", 45, None, "node1", idx="0-1"),
)


def moment(minutes: float) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


def local(minutes: float | None) -> str:
    return "Unknown" if minutes is None else f"{moment(minutes):%Y-%m-%dT%H:%M:%S}"


def tres_text(job: Job) -> str:
    return ",".join(f"{name}={n}" for name, n in job.tres.items())


def sacct(jobs: Sequence[Job]) -> str:
    names = "JobID|JobName|State|ExitCode|Start|End|Elapsed|AllocTRES|ReqTRES|NodeList|Partition|NNodes|NCPUS|Timelimit"
    rows = [f"{names}|Restarts"]
    for job in jobs:
        state = job.state if job.by is None else f"{job.state} by {job.by}"
        cells = [job.id, job.name, state, f"{job.exit[0]}:{job.exit[1]}", local(job.start), local(job.end), job.elapsed]
        cells += [tres_text(job) if job.start is not None else "", tres_text(job), job.nodes or "None assigned", "gpu"]
        rows.append("|".join([*cells, "1", "8" if job.start is not None else "", "02:00:00", str(job.restarts)]))
        if job.step:
            rows.append("|".join([f"{job.id}.batch", "batch", job.step, *[""] * 12]))
    return "\n".join(rows) + "\n"


def sacct_json(jobs: Sequence[Job], *, plain: bool = False) -> str:
    """``plain``: as data parser v0.0.37 writes it, else as v0.0.40 and later."""

    def number(n: int | None) -> Any:
        return n if plain else {"set": n is not None, "infinite": False, "number": n or 0}

    def one(job: Job) -> dict[str, Any]:
        entries = []
        for kind, n in job.tres.items():
            major, _, minor = kind.partition("/")
            count = 64 * 1024 if kind == "mem" else n
            entries.append({"type": major, "name": minor or (None if plain else ""), "id": 1, "count": count})
        entries.append({"type": "energy", "name": "", "id": 3, "count": -2})
        code, signal = job.exit
        listed = job.task.isdecimal()
        limit = LIMIT_MIN if plain else {"set": True, "infinite": False, "number": LIMIT_MIN}
        status = "SIGNALED" if signal else "ERROR" if code else "SUCCESS"
        killed = {"signal_id": signal, "name": "X"} if plain else {"id": number(signal or None), "name": ""}
        return {
            "account": "ml",
            "association": {"account": "ml", "cluster": "hpc", "partition": None, "user": "ada"},
            "comment": {"administrator": "", "job": "", "system": ""},
            "allocation_nodes": 1,
            "array": {
                "job_id": job.number if job.task else 0,
                "task_id": number(int(job.task) if listed else None),
                "task": job.task if not listed else "",
            },
            "time": {
                "elapsed": 60 * round((60 if job.end is None else job.end) - job.start) if job.start is not None else 0,
                "end": int(moment(job.end).timestamp()) if job.end is not None else 0,
                "start": int(moment(job.start).timestamp()) if job.start is not None else 0,
                "limit": limit,
                "suspended": 0,
            },
            "exit_code": {
                "status": status if plain else [status],
                "return_code": number(code),
                **({"signal": killed} if signal or not plain else {}),
            },
            "het": {"job_id": 0, "job_offset": number(None)},
            "job_id": 1000 + job.number if job.task else job.number,
            "name": job.name,
            "nodes": job.nodes or "None assigned",
            "partition": "gpu",
            "kill_request_user": None if job.by is None else str(job.by),
            "restart_cnt": job.restarts,
            "state": {"current": job.state if plain else [job.state], "reason": "None"},
            "steps": [{"state": [job.step], "step": {"id": f"{job.id}.batch"}}] if job.step else [],
            "tres": {"allocated": entries if job.start is not None else [], "requested": entries},
            "working_directory": "/home/ada/secret",
        }

    about = {"meta" if not plain else "metadata": {"Slurm" if plain else "slurm": {"release": "24.05.4"}}}
    listed = {"jobs": [one(job) for job in jobs]}
    return json.dumps({**about, **listed} if plain else {**listed, **about}, indent=2)


def controller_json(jobs: Sequence[Job]) -> str:
    """As squeue and scontrol print it: of what waits or runs, times that are expected as well."""

    def number(n: float) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": int(n)}

    def one(job: Job) -> dict[str, Any]:
        start = moment(500 if job.start is None and job.end is None else (job.start or job.end or 0.0)).timestamp()
        end = moment(job.end).timestamp() if job.end is not None else start + 60 * LIMIT_MIN
        return {
            "account": "ml",
            "user_name": "ada",
            "array_job_id": number(job.number if job.task else 0),
            "array_task_id": number(int(job.task)) if job.task.isdecimal() else {"set": False, "number": 0},
            "array_task_string": "" if job.task.isdecimal() else job.task,
            "end_time": number(end),
            "exit_code": {"return_code": number(job.exit[0]), "signal": {"id": number(job.exit[1])}},
            "gres_detail": [f"gpu:a100:{job.gpus}(IDX:{job.idx})"] if job.idx else [],
            "job_id": 1000 + job.number if job.task else job.number,
            "job_state": [job.state],
            "name": job.name,
            "node_count": number(1),
            "cpus": number(8),
            "nodes": job.nodes,
            "partition": "gpu",
            "restart_cnt": job.restarts,
            "start_time": number(start),
            "time_limit": number(LIMIT_MIN),
            "tres_req_str": tres_text(job),
            "tres_alloc_str": tres_text(job) if job.start is not None else "",
        }

    return json.dumps(
        {"jobs": [one(job) for job in jobs], "last_update": number(moment(60).timestamp()), "meta": {"slurm": {}}}
    )


def scontrol(jobs: Sequence[Job], *, details: bool = True, oneliner: bool = False) -> str:
    blocks = []
    for job in jobs:
        array = f"ArrayJobId={job.number} ArrayTaskId={job.task} " if job.task else ""
        expected = job.start is None and job.end is None
        start = 500 if expected else job.end if job.start is None else job.start
        end = (start or 0) + LIMIT_MIN if job.end is None else job.end
        lines = [
            f"JobId={1000 + job.number if job.task else job.number} {array}JobName={job.name}",
            "UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A",
            "Priority=1 Nice=0 Account=ml QOS=normal",
            f"JobState={job.state} Reason=None Dependency=(null)",
            f"Requeue=1 Restarts={job.restarts} BatchFlag=1 Reboot=0 ExitCode={job.exit[0]}:{job.exit[1]}",
            f"RunTime={job.elapsed} TimeLimit=02:00:00 TimeMin=N/A",
            f"StartTime={local(start)} EndTime={local(end)} Deadline=N/A",
            "Partition=gpu AllocNode:Sid=login1:77",
            "ReqNodeList=node9 ExcNodeList=(null)",
            f"NodeList={job.nodes or '(null)'}",
            f"NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task={job.gpus} ReqB:S:C:T=0:0:*:*",
            f"ReqTRES={tres_text(job)}",
            f"AllocTRES={tres_text(job) if job.start is not None else '(null)'}",
        ]
        if details and job.start is not None:
            gres = f"gpu:a100:{job.gpus}" if job.gpus else "(null)"
            idx = f"{gres}(IDX:{job.idx})" if job.idx else ""
            lines += [f"JOB_GRES={gres}", f"  Nodes={job.nodes} CPU_IDs=0-7 Mem=65536 GRES={idx}"]
        lines += ["Command=/home/ada/train.sh StartTime=2001-01-01T00:00:00", "WorkDir=/home/ada JobState=FAILED"]
        blocks.append(" ".join(line.strip() for line in lines) if oneliner else "\n   ".join(lines) + "\n")
    return "\n".join(blocks) + "\n"
