"""How recorded programs ended: every end of a start, what logs say beside it, and what came behind it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.load import load_run
from gpudiag.measures._ends.how import How, end_of
from gpudiag.measures.endings import EndingsProfile, measure_endings
from gpudiag.readers._io.record_format import COLUMNS
from gpudiag.rules._engine.evidence import NotApplicable
from gpudiag.rules.endings import training_failed
from tests.measures.test_training_ends import OOM, TRACEBACK, lines

T0 = pd.Timestamp("2026-03-01 10:00:00", tz="UTC")
NO_END, STOPPED = ("", ""), ("record_end", "60 ticks")
KILLED, TERM, CTRL_C = (("killed", f"killed by {name}") for name in ("SIGKILL (9)", "SIGTERM (15)", "SIGINT (2)"))
DONE, RAISED = ("command_end", "exit code 0"), ("exception", "ValueError")
Events = Sequence[tuple[str, str]]


def code(number: int) -> tuple[str, str]:
    return "command_end", f"exit code {number}"


def start(at_s: float, *ends: tuple[str, str], took_s: float = 60.0, command: str = "train", gpu: str = "0") -> str:
    """One start of a recorder, of which ``ends`` are the last events."""
    about = {"gpudiag": "0.2.0", "host": "n", "pid": 7, "zone": "Etc/UTC", "interval_s": 1.0}
    rows = [f"# gpudiag-record 1 {json.dumps(about | ({'command': command} if command else {}))}"]
    rows += [f"# gpu {json.dumps({'gpu': gpu, 'uuid': f'GPU-{gpu}'})}", ",".join(COLUMNS)]
    if command:
        rows.append(row(at_s, record="event", kind="command_start", detail="pid 8"))
    rows += [row(at_s + took_s * part, record="gpu", gpu=gpu, util_pct="90") for part in (0.1, 0.5, 0.9)]
    closed = [*ends, *([STOPPED] if ends and NO_END not in ends else [])]
    rows += [row(at_s + took_s, record="event", kind=kind, detail=detail) for kind, detail in closed if kind]
    return "\n".join(rows) + "\n"


def row(at_s: float, **cells: str) -> str:
    stamp = f"{T0 + pd.Timedelta(seconds=at_s):%Y-%m-%dT%H:%M:%S.%fZ}"
    known = {"time": stamp, "mono_s": f"{5000 + at_s:.6f}", **cells}
    return ",".join(known.get(name, "") for name in COLUMNS)


def ends(tmp_path: Path, **files: str) -> EndingsProfile:
    for name, text in files.items():
        suffix = "log" if text[:1] == "2" or text.startswith("Trace") else "csv"
        (tmp_path / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    return measure_endings(load_run(tmp_path, timezone="UTC"))


def outcome(found: EndingsProfile) -> str:
    """What the rule says: the outcome of the gravest end, else what is not known, else ok."""
    if len(found.failed) and found.failed["outcome"].iloc[0] != "went_on":
        return str(found.failed["outcome"].iloc[0])
    if found.n_short or found.n_unended:
        return "not known"
    return "went_on" if len(found.failed) else "ok"


@pytest.mark.parametrize(
    ("event", "how", "kind"),
    [
        (code(0), How.DONE, "unknown"),
        (code(1), How.FAILED, "unknown"),
        (code(2), How.FAILED, "unknown"),
        (code(255), How.FAILED, "unknown"),
        (code(124), How.OUTSIDE, "time_limit"),
        (code(129), How.OUTSIDE, "other"),
        (code(130), How.BY_HAND, "stopped"),
        (code(134), How.FAILED, "other"),
        (code(137), How.FAILED, "host_killed"),
        (code(139), How.FAILED, "other"),
        (code(143), How.OUTSIDE, "other"),
        (code(152), How.OUTSIDE, "time_limit"),
        (code(3221225786), How.BY_HAND, "stopped"),
        (KILLED, How.FAILED, "host_killed"),
        (("killed", "killed by SIGSEGV (11)"), How.FAILED, "other"),
        (("killed", "killed by SIGABRT (6)"), How.FAILED, "other"),
        (("killed", "killed by signal 64"), How.FAILED, "unknown"),
        (TERM, How.OUTSIDE, "other"),
        (("killed", "killed by SIGHUP (1)"), How.OUTSIDE, "other"),
        (("killed", "killed by SIGUSR1 (10)"), How.OUTSIDE, "other"),
        (CTRL_C, How.BY_HAND, "stopped"),
        (("killed", "killed by SIGQUIT (3)"), How.BY_HAND, "stopped"),
        (RAISED, How.FAILED, "other"),
        (("exception", "OutOfMemoryError"), How.FAILED, "oom"),
        (("exception", "RuntimeError: CUDA out of memory"), How.FAILED, "oom"),
        (("exception", "RuntimeError"), How.FAILED, "unknown"),
        (("exception", "MemoryError"), How.FAILED, "host_killed"),
        (("exception", "KeyboardInterrupt"), How.BY_HAND, "stopped"),
        (("exception", "CancelledError"), How.BY_HAND, "stopped"),
        (("exception", "SystemExit: 0"), How.DONE, "unknown"),
        (("exception", "SystemExit: 1"), How.FAILED, "unknown"),
        (("exception", "SystemExit"), How.UNKNOWN, "unknown"),
        (("exception", "TrialPruned"), How.UNKNOWN, "unknown"),
        (("exception", "interrupted"), How.UNKNOWN, "unknown"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_what_an_end_says(event: tuple[str, str], how: How, kind: str) -> None:
    found = end_of(*event)
    assert (found.how, found.kind) == (how, kind)


LOGS = {
    "none": "",
    "done": lines(10, 1000),
    "short": lines(10, 400),
    "no total": lines(10, 400).replace("/1000", ""),
    "died": lines(10, 400) + TRACEBACK + OOM + "\n",
    "ctrl-c": lines(10, 400) + TRACEBACK + "KeyboardInterrupt\n",
    "way down": lines(10, 1000) + TRACEBACK + "OSError: closed\n",
}
TABLE = {
    #            none         done         short        no total     died      ctrl-c  way down
    DONE:       ("ok",        "ok",        "not known", "ok",        "failed", "ok",   "open"),
    code(1):    ("failed",    "open",      "failed",    "failed",    "failed", "ok",   "open"),
    KILLED:     ("failed",    "failed",    "failed",    "failed",    "failed", "ok",   "failed"),
    RAISED:     ("failed",    "open",      "failed",    "failed",    "failed", "ok",   "open"),
    TERM:       ("outside",   "ok",        "outside",   "outside",   "failed", "ok",   "open"),
    CTRL_C:     ("ok",        "ok",        "ok",        "ok",        "failed", "ok",   "open"),
    NO_END:     ("not known", "ok",        "not known", "not known", "failed", "ok",   "open"),
}  # fmt: skip


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("end", TABLE, ids=lambda end: end[1] or "no end")
def test_an_end_beside_a_log(tmp_path: Path, end: tuple[str, str], log: str) -> None:
    """The recording covers the log: it begins before the first step and ends behind the last."""
    recording = start(0.0, end, took_s=1200.0, command="" if end is RAISED else "train")
    found = ends(tmp_path, gpu=recording, **({"train": LOGS[log]} if LOGS[log] else {}))
    assert outcome(found) == TABLE[end][list(LOGS).index(log)]
    assert found.n_failed_recorded == (0 if log == "died" else found.n_failed)
    if outcome(found) in ("failed", "outside", "open") and log in ("short", "done"):
        assert found.last_step == (400 if log == "short" else 1000) and found.total_steps == 1000


STARTS = [
    # one file: what each start ended with, and what becomes of the whole
    ((KILLED, DONE), "went_on"),
    ((TERM, DONE), "went_on"),
    ((code(1), DONE), "went_on"),
    ((CTRL_C, DONE), "ok"),
    ((DONE, DONE), "ok"),
    ((NO_END, DONE), "ok"),
    ((DONE, KILLED), "failed"),
    ((KILLED, KILLED), "failed"),
    ((TERM, TERM), "outside"),
    ((KILLED, TERM), "outside"),
    ((KILLED, CTRL_C), "went_on"),
    ((KILLED, NO_END), "not known"),
    ((DONE, NO_END), "not known"),
    ((KILLED, code(1), DONE), "went_on"),
    ((DONE, DONE, code(137)), "failed"),
]


@pytest.mark.parametrize("several_files", [False, True])
@pytest.mark.parametrize(("said", "expected"), STARTS)
def test_the_last_of_several_starts_decides(tmp_path: Path, said: Events, expected: str, several_files: bool) -> None:
    starts = [start(100.0 * at, end) for at, end in enumerate(said)]
    files = {f"z{9 - at}": text for at, text in enumerate(starts)} if several_files else {"gpu": "".join(starts)}
    assert outcome(ends(tmp_path, **files)) == expected


def test_a_clock_that_was_set_back_between_two_starts_changes_nothing(tmp_path: Path) -> None:
    assert outcome(ends(tmp_path, gpu=start(3600.0, KILLED) + start(900.0, DONE))) == "went_on"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((DONE, DONE), "ok"),
        ((DONE, KILLED), "failed"),
        ((KILLED, DONE), "failed"),
        ((TERM, DONE), "outside"),
        ((code(1), code(1)), "failed"),
        ((CTRL_C, CTRL_C), "ok"),
        ((NO_END, DONE), "not known"),
    ],
)
def test_side_by_side_each_counts(tmp_path: Path, said: Events, expected: str) -> None:
    """Two nodes, the second starts a moment later; then the same two recorders in one file."""
    two = [start(10.0 * at, end, gpu=str(at), took_s=60.0) for at, end in enumerate(said)]
    assert outcome(ends(tmp_path, n1=two[0], n2=two[1])) == expected


def test_two_recorders_may_share_a_file(tmp_path: Path) -> None:
    """The ends come when both have begun: none of the two is an earlier start."""
    tail = row(70.0, record="event", kind="killed", detail="killed by SIGKILL (9)")
    found = ends(tmp_path, gpu=start(0.0) + start(10.0, DONE) + tail + "\n")
    assert (found.n_failed, found.n_done) == (1, 1)


def test_files_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    first = start(0.0, KILLED, took_s=200.0, gpu="1")
    second = start(0.0, DONE, gpu="2") + start(100.0, DONE, gpu="2")
    for name, text in (("n1", first), ("n2", second)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gpu.csv").write_text(text, encoding="utf-8")
    found = measure_endings(load_run(tmp_path, timezone="UTC"))
    assert (found.n_recorded, found.n_failed, found.n_done) == (2, 1, 1)
    assert found.failed["training"].tolist() == ["n1/gpu.csv"]


@pytest.mark.parametrize(
    ("signal", "late_s", "end", "expected"),
    [
        ("SIGINT", 5.0, code(1), "ok"),
        ("SIGINT", 5.0, KILLED, "ok"),
        ("SIGTERM", 30.0, code(1), "outside"),
        ("SIGTERM", 30.0, KILLED, "outside"),
        ("SIGUSR1", 90.0, code(1), "outside"),
        ("SIGUSR1", 90.0, DONE, "ok"),
        ("SIGTERM", 5.0, DONE, "ok"),
        ("SIGHUP", 590.0, DONE, "ok"),
        ("SIGTERM", 601.0, code(1), "failed"),
    ],
)
def test_a_signal_explains_the_end_behind_it(
    tmp_path: Path, signal: str, late_s: float, end: tuple[str, str], expected: str
) -> None:
    begun = start(0.0, took_s=3600.0)
    sent = row(4000.0 - late_s, record="event", kind="signal", detail=signal)
    ended = row(4000.0, record="event", kind=end[0], detail=end[1])
    assert outcome(ends(tmp_path, gpu=f"{begun}{sent}\n{ended}\n")) == expected


@pytest.mark.parametrize(("end", "expected"), [(code(1), "failed"), (KILLED, "failed"), (TERM, "outside")])
def test_a_signal_of_an_earlier_start_explains_no_end(tmp_path: Path, end: tuple[str, str], expected: str) -> None:
    stopped = start(0.0, ("signal", "SIGTERM"), code(143))
    assert outcome(ends(tmp_path, gpu=stopped + start(100.0, end))) == expected
    assert outcome(ends(tmp_path, gpu=start(0.0, ("signal", "SIGTERM"), NO_END) + start(100.0, end))) == expected


def test_a_file_that_was_rotated_is_one_start(tmp_path: Path) -> None:
    second = start(61.0, DONE, took_s=60.0).replace("command_start", "epoch")
    assert outcome(ends(tmp_path, **{"gpu.001": start(0.0), "gpu": second})) == "ok"


def test_a_recorder_by_itself_tells_nothing_of_a_training(tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(start(0.0, STOPPED, command=""), encoding="utf-8")
    with pytest.raises(gd.NotMeasurable, match="No log tells of a training"):
        measure_endings(load_run(tmp_path, timezone="UTC"))


def test_a_with_block_that_raised_and_then_did_not(tmp_path: Path) -> None:
    found = ends(tmp_path, gpu=start(0.0, RAISED, command="") + start(100.0, STOPPED, command=""))
    assert outcome(found) == "went_on"
    assert found.failed["text"].tolist() == ["ValueError"]


def test_a_log_of_an_earlier_start_tells_of_that(tmp_path: Path) -> None:
    log = lines(10, 400) + "2026-03-01 10:06:41 ERROR CUDA out of memory\n"
    found = ends(tmp_path, gpu=start(0.0, code(1), took_s=410.0) + start(500.0, DONE), train=log)
    assert outcome(found) == "went_on"


TASKS = "task,state,start,end\n" + "".join(
    f"{at},COMPLETE,2026-03-01T10:0{at}:00Z,2026-03-01T10:0{at + 1}:00Z\n" for at in range(3)
)


@pytest.mark.parametrize(("end", "severity"), [(code(137), "warning"), (KILLED, "warning"), (TERM, "note")])
def test_beside_trials_a_recorded_command_counts_alone(tmp_path: Path, end: tuple[str, str], severity: str) -> None:
    (tmp_path / "trials.csv").write_text(TASKS, encoding="utf-8")
    found = ends(tmp_path, gpu=start(0.0, KILLED, took_s=30.0) + start(60.0, end, took_s=180.0))
    assert found.has_trials and found.n_recorded == 1
    evidence = training_failed.judge(found)
    assert severity == (evidence.severity.value if evidence and evidence.severity else "")


@pytest.mark.parametrize("end", [DONE, CTRL_C, NO_END])
def test_trials_tell_of_themselves(tmp_path: Path, end: tuple[str, str]) -> None:
    (tmp_path / "trials.csv").write_text(TASKS, encoding="utf-8")
    with pytest.raises(NotApplicable):
        training_failed.judge(ends(tmp_path, gpu=start(0.0, end)))


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            {"gpu": start(0.0, KILLED)},
            "The recorded program was killed by SIGKILL (9) at 2026-03-01 10:01:00 UTC.",
        ),
        (
            {"gpu": start(0.0, code(137), took_s=1200.0), "train": lines(10, 400)},
            "The recorded program ended with exit code 137 (SIGKILL) at 2026-03-01 10:20:00 UTC after step 400 of "
            "1,000.",
        ),
        (
            {"gpu": start(0.0, TERM) + start(100.0, DONE)},
            "An earlier recorded program was killed by SIGTERM (15) at 2026-03-01 10:01:00 UTC; another was started "
            "after it.",
        ),
        (
            {"n1": start(0.0, code(1)), "n2": start(1.0, code(1), gpu="1")},
            "The recorded program ended with exit code 1 at 2026-03-01 10:01:00 UTC. 1 more recording ended so, too.",
        ),
    ],
)
def test_the_sentence_names_the_recording(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    evidence = training_failed.judge(ends(tmp_path, **files))
    assert evidence is not None and evidence.where["path"] == f"{min(files)}.csv"
    assert training_failed.summary(evidence) == sentence
