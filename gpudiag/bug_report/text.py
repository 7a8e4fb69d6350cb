"""A bug report as Markdown: what somebody can read before it is sent, which only they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gpudiag._load.folder import walk
from gpudiag._load.inspection import inspect
from gpudiag._load.sources import is_whole
from gpudiag._run.tables import InputRecord
from gpudiag.bug_report.masked import Masked
from gpudiag.bug_report.private import Places, folders_of, masked_for
from gpudiag.bug_report.versions import version_lines
from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.errors import GpudiagError
from gpudiag.faults import Fault, attempt, heard, strict
from gpudiag.load import load_run
from gpudiag.manifest import MANIFEST
from gpudiag.readers._io.url import HIDDEN
from gpudiag.report.format import plural, safe
from gpudiag.report.inspection import lines
from gpudiag.rules import RULES, Status
from gpudiag.run import Run

T = TypeVar("T")

HEAD = """\
# Bug report

This text is all there is, and nothing was sent. Read it, change what you like, and attach it to your report.

- It holds versions, how each input was read (rows, times, states of trials), which checks found something, and of a
  failure the place in the code.
- It holds no contents of files, no values and names of parameters, and no names of hosts, users, studies and folders.
  Names of files within the run stand as they are, and numbers for its folders. In messages `***` stands for every
  word that is not gpudiag's own.

## What happened

(What did you run, what did you expect, and what came instead?)
"""


@dataclass(frozen=True)
class Asked:
    """A run that is reported on: its inputs, and the options of load_run and of `gpudiag inspect`."""

    inputs: Sequence[str]
    loading: Mapping[str, Any]
    reading: Mapping[str, Any]


def bug_report(asked: Asked | None = None) -> str:
    """The report, of a run where one is given; what ends its diagnosis is a part of the report and not raised."""
    parts = [HEAD, "## Versions\n", *(f"- {line}" for line in version_lines())]
    if asked is not None:
        with strict(False), heard() as faults:
            records, unlisted = _inspected(asked)
            run, diagnosis, error = _diagnosed(asked)
        places = Places(asked.inputs, records)
        masked = masked_for(places, asked.inputs, records, run, asked.reading.get("study"))
        parts += ["\n## Inputs\n", *_inputs(records, places, masked)]
        if str(unlisted) != str(error):
            parts += _failure(unlisted, masked)
        parts += ["\n## Diagnosis\n", *_found(diagnosis), *_failure(error, masked)]
        for fault in faults:
            parts += _frames(f"{_part(fault.part, masked)}: {_type(fault)} at {_place(fault)}", fault, masked)
    return "\n".join(parts).rstrip() + "\n"


def _inspected(asked: Asked) -> tuple[list[InputRecord], GpudiagError | None]:
    """A record of each input, and what ended the list."""
    records: list[InputRecord] = []
    ended = None
    inputs: list[str | Path] = [*folders_of(asked.inputs), *(one for one in asked.inputs if not is_whole(one))]
    for one in inputs:
        try:
            for record in inspect([one], **asked.reading):
                records.append(record)
        except GpudiagError as error:
            ended = ended or error
            records += _alone(one, {record.path for record in records}, asked.reading)
    return records, ended


def _alone(one: str | Path, listed: set[str], reading: Mapping[str, Any]) -> Iterator[InputRecord]:
    """What an input holds that could not be listed, each file as if it had been named alone."""
    paths = [str(one)]
    if isinstance(one, Path):
        with suppress(GpudiagError):
            paths = [str(source.path) for source, _ in walk(one) if source.path.name != MANIFEST]
    for path in paths:
        if path not in listed:
            yield from _read(path, reading)


def _read(path: str, reading: Mapping[str, Any]) -> list[InputRecord]:
    try:
        return list(inspect([path], **reading))
    except GpudiagError as error:
        # An option that is wrong is wrong for each file, and the files are read without any.
        return _read(path, {}) if reading else [InputRecord(path, "unknown", error=str(error))]


def _diagnosed(asked: Asked) -> tuple[Run | None, Diagnosis | None, GpudiagError | None]:
    run = None
    try:
        run = _made(attempt("loading the run", lambda: load_run(**asked.loading)))
        diagnosis = None if run is None else _made(attempt("the diagnosis", partial(_whole, run)))
    except GpudiagError as error:
        return run, None, error
    return run, diagnosis, None


def _made(made: T | Fault) -> T | None:
    return None if isinstance(made, Fault) else made


def _whole(run: Run) -> Diagnosis:
    """The diagnosis, after the text of a report of it was made once."""
    diagnosis = diagnose(run)
    diagnosis.to_markdown(full=True)
    return diagnosis


def _inputs(records: Sequence[InputRecord], places: Places, masked: Masked) -> Iterator[str]:
    """What `gpudiag inspect` says, as code."""
    for record in records:
        shown = replace(
            record,
            path=masked.name(places.label(record.path)),
            studies=tuple(replace(one, name=str(at)) for at, one in enumerate(record.studies, start=1)),
            problems=tuple(replace(one, kind=masked.message(one.kind), example="") for one in record.problems),
            notes=tuple(map(masked.message, record.notes)),
            error=None if record.error is None else masked.message(record.error),
        )
        yield from (f"    {safe(line)}" for line in lines(shown))


def _found(diagnosis: Diagnosis | None) -> list[str]:
    """Which checks of gpudiag found something, and how many did not."""
    if diagnosis is None:
        return []
    known = {rule.id for rule in RULES}
    found = [one for one in diagnosis.verdicts if one.status is Status.FOUND]
    out = [f"- {one.severity.value}: {one.rule}" for one in found if one.rule in known]
    if len(out) < len(found):
        out.append(f"- {plural(len(found) - len(out), 'finding')} by rules of your own")
    others = Counter(one.status.value for one in diagnosis.verdicts if one.status is not Status.FOUND)
    return [*out, "- " + ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in others.items())]


def _failure(error: GpudiagError | None, masked: Masked) -> list[str]:
    """An error that gpudiag raised on purpose, and what led to it."""
    if error is None:
        return []
    raised = Fault.of("", error)
    out = _frames(f"{_type(raised)}: {masked.message(str(error))}", raised, masked)
    if error.__cause__ is None:
        return out
    cause = Fault.of("", error.__cause__)
    return out + _frames(f"caused by {_type(cause)} at {_place(cause)}", cause, masked)


def _frames(what: str, fault: Fault, masked: Masked) -> list[str]:
    """A failure and the way there, but for the call from here; of code that is somebody's own the lines alone."""
    way = [frame for frame in fault.trace if not frame.startswith("gpudiag/bug_report/")]
    frames = (frame if frame in fault.public else f"{_line(frame.rpartition(' ')[0])} {HIDDEN}" for frame in way)
    return [f"- {masked.name(what)}", "", *(f"      {masked.name(frame)}" for frame in frames), ""]


def _part(part: str, masked: Masked) -> str:
    """What failed; a rule of somebody's own may be called after them."""
    kind, _, name = part.partition(" ")
    return f"rule {HIDDEN}" if kind == "rule" and name not in {rule.id for rule in RULES} else masked.message(part)


def _type(fault: Fault) -> str:
    return fault.type if fault.type in fault.public else HIDDEN


def _place(fault: Fault) -> str:
    """Where it failed: a place in gpudiag, and the line alone of what it called."""
    places = (place if place.startswith("gpudiag/") else _line(place) for place in fault.place.split(", called at "))
    return ", called at ".join(places)


def _line(place: str) -> str:
    """``***:7`` of a place in a file."""
    file, colon, line = place.rpartition(":")
    return f"{HIDDEN}:{line}" if colon and file else place
