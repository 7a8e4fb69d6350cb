"""Jobs as ``scontrol show job`` prints them, as cells under the names of sacct's columns.

A job is a block from ``JobId=``, or one line with ``--oneliner``. From the command on stands what users wrote, which is
not looked at, but for AdminComment; a name of a job may hold blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._jobs.gpu_numbers import gpu_numbers, n_gpus, written
from gpudiag.readers._jobs.node_list import MOST_NODES, expanded
from gpudiag.readers._jobs.slurm_trials import WAITING, Row, ended

_FIRST = re.compile(r"JobId=\d{1,12}(?=\s|\Z)")
_NAME = re.compile(r"\sJobName=(.*?)(?=\sUserId=|$)")
_USERS = re.compile(r"(?:^|\s)(?:Command|SubmitLine|WorkDir|Comment|SystemComment|Extra|StdErr|StdIn|StdOut)=")
_COMMENT = re.compile(r"\s*AdminComment=(\S*)\s*")
_FIELD = re.compile(r"(?:^|(?<=\s))([A-Za-z]\w*)=(\S*)")
_ON_NODES = re.compile(r"(?:^|\s)Nodes=(\S+) CPU_IDs=\S* (?:Mem=\S* )?GRES(?:_IDX)?=(\S*)")
_LINES = 100
_LONGEST = 64 * 1024
"""Characters of a line that are looked at."""
_PLAIN = {
    "State": "JobState", "ExitCode": "ExitCode", "Partition": "Partition", "Account": "Account", "NNodes": "NumNodes",
    "NCPUS": "NumCPUs", "Timelimit": "TimeLimit", "Submit": "SubmitTime", "Elapsed": "RunTime", "Restarts": "Restarts",
    "AdminComment": "AdminComment", "NodeList": "NodeList",
}  # fmt: skip
"""Names of sacct's columns, and how scontrol calls what they hold."""


def is_scontrol_text(source: Source) -> bool:
    """A line that begins with the number of a job, and its state."""
    if source.is_binary or "JobState=" not in source.text:
        return False
    return _FIRST.match(next((line for line in source.lines[:_LINES] if line.strip()), "")) is not None


def rows_of(lines: Iterable[tuple[int, str]], log: ProblemLog) -> Iterator[Row]:
    """Each job by the line on which it begins."""
    for number, block in _blocks(lines):
        fields, gres = _parsed(block)
        if fields.get("JobState"):
            yield number, _cells(fields, gres)
        else:
            log.add("job without a state", line=number, example=block[0], lost=True)


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    first, block = 0, list[str]()
    for number, text in lines:
        if _FIRST.match(text):
            if block:
                yield first, block
            first, block = number, []
        if first and text.strip():
            block.append(text[:_LONGEST].rstrip())
    if block:
        yield first, block


def _parsed(block: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The fields, of each name the first, and what is said of the GPUs by list of nodes."""
    fields: dict[str, str] = {}
    gres: dict[str, str] = {}
    if named := _NAME.search(block[0]):
        fields["JobName"] = named[1].strip()
        block = [block[0][: named.start()] + block[0][named.end() :], *block[1:]]
    of_users = False
    for line in block:
        if comment := _COMMENT.fullmatch(line):
            fields.setdefault("AdminComment", comment[1])
        if of_users:
            continue
        begin = _USERS.search(line)
        of_users = begin is not None
        text = line[: begin.start()] if begin else line
        gres |= dict(_ON_NODES.findall(text))
        for name, value in _FIELD.findall(text):
            fields.setdefault(name, value)
    return {name: "" if value == "(null)" else value for name, value in fields.items()}, gres


def _cells(fields: Mapping[str, str], gres: Mapping[str, str]) -> dict[str, str]:
    """Of a job that waits or runs, the end is the one that its time limit allows; of one that waits, the start too."""
    cells = {name: fields.get(own, "") for name, own in _PLAIN.items()}
    began = cells["State"] not in WAITING and bool(cells["NodeList"])
    tres = fields.get("TRES", "")  # of one that waits, what it asks for
    details = "JOB_GRES" in fields and began
    count = n_gpus(fields["JOB_GRES"]) if details else None
    return cells | {
        "JobID": _job_id(fields),
        "JobName": fields.get("JobName", ""),
        "User": fields.get("UserId", "").partition("(")[0],
        "Start": fields.get("StartTime", "") if began else "",
        "End": fields.get("EndTime", "") if ended(cells["State"]) else "",
        "AllocTRES": _sorted(fields.get("AllocTRES", tres)) if began else "",
        "ReqTRES": _sorted(fields.get("ReqTRES", tres)),
        "GpuCount": "0" if details and not fields["JOB_GRES"] else "" if count is None else str(count),
        "GpuNumbers": _numbers(gres) if began else "",
    }


def _job_id(fields: Mapping[str, str]) -> str:
    """As sacct writes it: ``8_4`` of an array, ``8_[5-9]`` of its tasks that wait, ``12+0`` of a heterogeneous job."""
    if array := fields.get("ArrayJobId"):
        task = fields.get("ArrayTaskId", "")
        return f"{array}_{task}" if task.isdecimal() else f"{array}_[{task}]"
    if het := fields.get("HetJobId"):
        return f"{het}+{fields.get('HetJobOffset', '0')}"
    return fields["JobId"]


def _numbers(gres: Mapping[str, str]) -> str:
    """The numbers of the GPUs by node; empty where those of one are not known."""
    by_node: dict[str, tuple[int, ...]] = {}
    for nodes, text in gres.items():
        try:
            names = expanded(nodes)
        except ValueError:
            return ""
        if by_node.keys() & names or len(by_node) > MOST_NODES:
            return ""
        by_node |= dict.fromkeys(names, gpu_numbers(text))
    return written(by_node)


def _sorted(tres: str) -> str:
    """In sacct's order."""
    return ",".join(sorted(tres.split(",")))
