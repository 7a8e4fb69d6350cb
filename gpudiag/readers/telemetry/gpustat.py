"""``gpustat`` in a loop: a line of host, date and driver, then one line per GPU, in text with or without colors."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpudiag.readers._io.lines import is_screen, numbered_lines, plain, screen_refused
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.snapshots import Snapshots, quantity
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "gpustat"

_NUMBER = r"-?\d+|\?+|N/A"
_ROW = re.compile(
    rf"\s*\[(?P<gpu>\d+)\]\s*(?P<name>[^|]*?)\s*\|\s*(?P<temp>{_NUMBER})[^,|\d]{{0,6}}?C\s*,(?P<middle>[^|]*)"
    rf"\|\s*(?P<used>{_NUMBER})\s*/\s*(?P<total>{_NUMBER})\s*MB(?P<rest>\s*\|.*)?\s*"
)
"""The degree sign is an apostrophe, a real one, or what a wrong encoding left of it. MB means MiB."""
_PERCENT = re.compile(rf"({_NUMBER})\s*%")
_CODEC = re.compile(r"\([^)]*\)")
_POWER = re.compile(rf"({_NUMBER})\s*(?:/\s*({_NUMBER})\s*)?W")
_PROCESS = re.compile(r"(?P<user>[^\s:/()|]+)?(?::(?P<name>[^\s/()|]+))?/(?P<pid>\d+)\((?P<memory>\d+|\?)M\)")
_DRIVER = re.compile(r"\d+\.\d+(?:\.\d+)?")


@dataclass(frozen=True)
class _SnapshotHead:
    """The first line of a snapshot."""

    host: str
    moment: Moment | None
    driver: str


def recognises(source: Source) -> bool:
    rows = sum(_ROW.fullmatch(plain(line)) is not None for line in source.lines)
    return rows > 0 or ("gpustat" in source.text and is_screen(source))


def read(source: Source, options: ReadOptions) -> Telemetry:
    if is_screen(source):
        raise screen_refused(source, "gpustat", "gpustat -i 1 > gpu.log")
    log = ProblemLog()
    lines = list(numbered_lines(source, log))
    heads = {number: head for number, line in lines if line and line[0] != "[" and (head := _head(line))}
    several = len({head.host for head in heads.values()}) > 1
    snapshots = Snapshots()
    above, seen = _SnapshotHead("", None, ""), {""}
    for number, line in lines:
        if head := heads.get(number):
            above, seen = head, set()
            snapshots.begin(head.moment)
        elif match := _ROW.fullmatch(line):
            if not heads and (not snapshots.moments or match["gpu"] in seen):
                snapshots.begin(None)
                seen = set()
            seen.add(match["gpu"])
            _row(match, f"{above.host}/{match['gpu']}" if several else match["gpu"], number, above, snapshots, log)
        elif line.strip():
            torn = line.lstrip().startswith("[") and "|" in line
            log.add("torn row" if torn else "line that is no sample", line=number, example=line, lost=torn)
    return snapshots.finish(source, NAME, options, log, _notes(snapshots))


def _head(line: str) -> _SnapshotHead | None:
    """Host, date and driver. The date is written as the locale has it; a weekday in its own language is passed over."""
    words = line.split()
    if len(words) < 3:
        return None
    driver = words.pop() if _DRIVER.fullmatch(words[-1]) else ""
    moment = read_moment(" ".join(words[1:])) or read_moment(" ".join(words[2:]))
    return _SnapshotHead(words[0], moment, driver) if moment and moment.day and moment.clock else None


def _row(
    match: re.Match[str], gpu: str, line: int, above: _SnapshotHead, snapshots: Snapshots, log: ProblemLog
) -> None:
    if not snapshots.moments:
        log.add("row before the first date line", line=line, example=match[0], lost=True)
        return
    middle = _CODEC.sub("", match["middle"])
    codec = dict(re.findall(rf"([ED]):\s*({_NUMBER})", match["middle"]))
    percents = [quantity(text) for text in _PERCENT.findall(middle)]
    power = _POWER.search(middle)
    snapshots.describe(gpu, name=match["name"], driver=above.driver, host=above.host)
    snapshots.sample(
        gpu,
        line,
        util_pct=percents[-1] if percents else None,
        fan_pct=percents[0] if len(percents) > 1 else None,
        enc_pct=quantity(codec.get("E")),
        dec_pct=quantity(codec.get("D")),
        temp_c=quantity(match["temp"]),
        power_w=quantity(power[1]) if power else None,
        power_limit_w=quantity(power[2]) if power else None,
        mem_used_mib=quantity(match["used"]),
        mem_total_mib=quantity(match["total"]),
    )
    for process in _PROCESS.finditer(match["rest"] or ""):
        snapshots.process(
            gpu, line, int(process["pid"]), name=process["name"], mem_used_mib=quantity(process["memory"])
        )


def _notes(snapshots: Snapshots) -> list[str]:
    hosts = sorted({gpu.split("/")[0] for gpu in snapshots.gpus if "/" in gpu})
    return [f"It holds {len(hosts)} hosts; GPUs are named host/index."] if hosts else []


READER = Reader(NAME, recognises, read)
