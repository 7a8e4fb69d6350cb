"""What a log tells of the collective that the watchdog of PyTorch gave up, in the words of several versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from verdicts import verdicts_of
from writtendumps import Call, Dump, calls

import gpudiag as gd
from gpudiag.errors import NotGiven
from gpudiag.measures.collectives import CollectivesProfile, measure_collectives
from gpudiag.report._sections.collectives import collectives
from gpudiag.rules._engine.verdict import Status

STEPS = [f"2026-03-21 01:5{at}:00,000 INFO step {100 * at}/1000 loss 2.{at} time 0.5s" for at in range(8)]
BAR = "Epoch 0:   6%|##        | 32040/500150 [6:28:43<94:39:17,  1.37it/s, loss=2.6" + ", lr=3e-4" * 30 + "]"


def gave_up(
    rank: int, *, in_group: int | None = None, seq: int = 1580, op: str = "ALLREDUCE", ran_ms: int = 600_060,
    of_process: bool = True,
) -> str:  # fmt: skip
    """A line of PyTorch 2.2 and later, or of 1.11 to 2.1, without the rank of the process and the elements."""
    before = (
        f"[rank{rank}]:[E321 02:07:08.4082 ProcessGroupNCCL.cpp:607]" if of_process else "[E ProcessGroupNCCL.cpp:737]"
    )
    elements = ", NumelIn=466, NumelOut=466" if of_process else ""
    return (
        f"{before} [Rank {rank if in_group is None else in_group}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType={op}{elements}, Timeout(ms)=600000) ran for {ran_ms} milliseconds before "
        "timing out."
    )


def measured(folder: Path, lines: Iterable[str]) -> CollectivesProfile:
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return measure_collectives(gd.load_run(folder, timezone="UTC"))


def test_who_waited_in_what_and_how_long(tmp_path: Path) -> None:
    p = measured(tmp_path, [*STEPS, gave_up(0), gave_up(4, ran_ms=600_067), gave_up(2)])
    assert (p.n_dumps, p.hang, p.collective) == (0, "open", "ALLREDUCE number 1580")
    assert (p.waiting_ranks, p.n_waiting, p.missing_ranks) == ("0, 2, 4", 3.0, "")
    assert p.wait_s == p.wait_low_s == pytest.approx(600.067)


def test_lines_of_older_versions_name_the_rank_alone(tmp_path: Path) -> None:
    p = measured(tmp_path, [*STEPS, gave_up(3, of_process=False), gave_up(1, of_process=False)])
    assert (p.collective, p.waiting_ranks) == ("ALLREDUCE number 1580", "1, 3")


def test_the_rank_is_that_of_the_process_and_not_that_in_its_group(tmp_path: Path) -> None:
    again = "  what():  " + gave_up(0, of_process=False).partition("] ")[2]
    assert measured(tmp_path, [*STEPS, gave_up(9, in_group=1), gave_up(8, in_group=0), again]).waiting_ranks == "8, 9"


def test_of_several_collectives_of_a_rank_the_first_is_what_it_waits_in(tmp_path: Path) -> None:
    lines = [gave_up(0, seq=1583), gave_up(0), gave_up(0, seq=1581), gave_up(1), gave_up(2, seq=40, op="BROADCAST")]
    p = measured(tmp_path, [*STEPS, *lines])
    assert (p.collective, p.waiting_ranks) == ("ALLREDUCE number 1580", "0, 1")


def test_a_message_behind_a_progress_bar_is_read(tmp_path: Path) -> None:
    p = measured(tmp_path, [*STEPS, gave_up(0), BAR + gave_up(2)])
    assert p.waiting_ranks == "0, 2"


def test_a_training_that_went_on_did_not_end_there(tmp_path: Path) -> None:
    with pytest.raises(NotGiven):
        measured(tmp_path, [*STEPS[:4], gave_up(0), *STEPS[4:]])


@pytest.mark.parametrize(("seq", "least_s"), [(11, 600.06), (12, 0.0)])
def test_the_log_says_how_long_the_dumps_leave_open(tmp_path: Path, seq: int, least_s: float) -> None:
    """The files are copies of today: by them alone the wait is at most ten minutes. Of another collective it is not."""
    for rank in (0, 1, 3):
        Dump(rank, [*calls(10), Call(11, 11.0, None)]).write(tmp_path)
    Dump(2, calls(10)).write(tmp_path)
    p = measured(tmp_path, [gave_up(rank, seq=seq) for rank in (0, 1, 3)])
    assert (p.n_dumps, p.hang, p.missing_ranks) == (4, "missing", "2")
    assert p.wait_low_s == pytest.approx(least_s, abs=0.1) and p.wait_s == pytest.approx(600, abs=0.1)


def came_to(rank: int, last: int, *, seq: int | None = None, group: str = "0(default_pg)", newer: bool = True) -> str:
    """What PyTorch prints of a rank that gave up number ``seq``, or that was told by another to dump (None)."""
    before = f"[rank{rank}]:[E321 02:07:09.1 ProcessGroupNCCL.cpp:1744] [PG {'ID 0 PG GUID ' if newer else ''}{group} "
    if seq is None:
        return (
            f"{before}Rank {rank}] Received a dump signal due to a collective timeout from  rank 0 and we will try our "
            f"best to dump the debug info. Last enqueued NCCL work: {last}, last completed NCCL work: {last}."
        )
    gave = "failure detected by watchdog at work" + (" sequence id" if newer else "")
    return f"{before}Rank {rank}]  {gave}: {seq} PG status: last enqueued work: {last}, last completed work: {seq - 1}"


@pytest.mark.parametrize("newer", [True, False])
def test_a_rank_that_had_enqueued_less_did_not_come(tmp_path: Path, newer: bool) -> None:
    gave = [line for rank in (0, 1, 3) for line in (gave_up(rank), came_to(rank, 1582, seq=1580, newer=newer))]
    p = measured(tmp_path, [*STEPS, *gave, came_to(2, 1579, newer=newer)])
    assert (p.hang, p.missing_ranks, p.waiting_ranks, p.n_missing) == ("missing", "2", "0, 1, 3", 1.0)
    assert (p.collective, p.group) == ("ALLREDUCE number 1580", "0 (default_pg)")
    assert p.by_rank["role"].to_dict() == {"2": "missing", "0": "waiting", "1": "waiting", "3": "waiting"}
    assert p.by_rank["last_seq"].tolist() == [1579.0, 1580.0, 1580.0, 1580.0]
    run = gd.load_run(tmp_path, timezone="UTC")
    said = verdicts_of(run, "rank-missing", "collective-stuck", "training-failed")
    assert said["rank-missing"].summary == (
        "Rank 2 never came to ALLREDUCE number 1580 of group 0 (default_pg); ranks 0, 1 and 3 have waited for it, for "
        "10 min."
    )
    assert said["rank-missing"].severity.value == "critical"
    assert said["collective-stuck"].status is Status.OK
    assert said["training-failed"].evidence["text"] == "Watchdog caught collective operation timeout"


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([came_to(0, 1580, seq=1580), came_to(2, 1580)], "it had enqueued it"),
        ([came_to(0, 1580, seq=1580, group="5(mesh_tp)"), came_to(2, 1579)], "it is said of another group"),
        ([came_to(0, 1580, seq=1580), came_to(1, 1580, seq=1580, group="5(tp)"), came_to(2, 1579)], "of two groups"),
        ([came_to(2, 1579)], "of which group the number is, is not said"),
    ],
)
def test_numbers_of_another_group_name_no_rank(tmp_path: Path, told: list[str], why: str) -> None:
    p = measured(tmp_path, [*STEPS, gave_up(0), gave_up(1), *told])
    assert (p.hang, p.missing_ranks) == ("open", ""), why


ERROR = ["[rank3]: Traceback (most recent call last):", "[rank3]: RuntimeError: CUDA error: unspecified launch failure"]


@pytest.mark.slow
def test_an_error_before_it_is_told_first(tmp_path: Path) -> None:
    assert not measured(tmp_path, [*STEPS, gave_up(0), *ERROR]).after_error
    assert not measured(tmp_path, [*STEPS[:4], *ERROR, *STEPS[4:], gave_up(0)]).after_error, "it went on"
    assert measured(tmp_path, [*STEPS, *ERROR, gave_up(0)]).after_error
    found = gd.diagnose(gd.load_run(tmp_path, timezone="UTC"))
    assert found.document.headline.sentences[0] == "The training did not run through."
    assert "unspecified launch failure" in found.document.headline.sentences[1]
    reason = next(v.reason for v in found.verdicts if v.rule == "rank-missing")
    assert reason.endswith("on rank 0: it waited. The log tells of another error before it.")
    assert "which tells of another error before" in str(collectives(found.document)[0])


def test_without_the_places_of_lines_no_order_of_errors_is_known(tmp_path: Path) -> None:
    assert measured(tmp_path, [*STEPS, *ERROR, gave_up(0)]).after_error
    run = gd.load_run(tmp_path, timezone="UTC")
    for bare in (
        replace(run, events=run.events.drop(columns=["path", "line"])),
        replace(run, events=run.events.drop(columns="line"), steps=run.steps.iloc[:0]),
    ):
        p = measure_collectives(bare)
        assert (p.after_error, p.waiting_ranks) == (False, "0")
    unplaced = replace(run, steps=run.steps.drop(columns=["path", "line"]))
    assert measure_collectives(unplaced).after_error


def test_a_lost_gpu_is_told_first(tmp_path: Path) -> None:
    line = "[Sat Mar 21 01:57:08 2026] NVRM: Xid (PCI:0000:5e:00): 79, pid=1, GPU has fallen off the bus."
    (tmp_path / "dmesg.txt").write_text(f"{line}\n", encoding="utf-8")
    measured(tmp_path, [*STEPS, gave_up(0)])
    said = gd.diagnose(gd.load_run(tmp_path, timezone="UTC")).document.headline.sentences
    assert said[:2] == ("A GPU was lost.", "GPU 0000:5e:00 was lost at 2026-03-21 01:57:08 UTC.")


@pytest.mark.slow
def test_the_first_screen_names_ranks_collective_and_wait(tmp_path: Path) -> None:
    measured(tmp_path, [*STEPS, gave_up(0), gave_up(2), gave_up(4)])
    diagnosis = gd.diagnose(gd.load_run(tmp_path, timezone="UTC"))
    said, proof, then = diagnosis.document.headline.sentences
    assert said == "Ranks 0, 2 and 4 gave up ALLREDUCE number 1580 after 10 min."
    assert proof == (
        "PyTorch's watchdog gave up ALLREDUCE number 1580 after 10 min on ranks 0, 2 and 4: they waited, and the log "
        "does not say for which rank."
    )
    assert then.startswith("To name the rank that did not come: set TORCH_NCCL_TRACE_BUFFER_SIZE=2000")
    statuses = {one.rule: one.status for one in diagnosis.verdicts}
    assert statuses["rank-missing"] is statuses["collective-stuck"] is Status.NOT_ASSESSED
    assert statuses["collective-mismatch"] is Status.NOT_APPLICABLE
    (tmp_path / "gpu.csv").write_text("timestamp, index, utilization.gpu [%]\n" + "".join(
        f"2026-03-21 01:5{s // 60}:{s % 60:02d}.000, 0, 99 %\n" for s in range(480)
    ), encoding="utf-8")  # fmt: skip
    with_use = gd.diagnose(gd.load_run(tmp_path, timezone="UTC")).headline
    assert with_use.startswith("The GPU was well used (99 %), but ranks 0, 2 and 4 gave up ALLREDUCE number 1580")
    note, table = collectives(diagnosis.document)
    assert "by the log, which does not say for which rank they waited" in str(note)
    assert [row[:2] for row in table.rows] == [(rank, "waiting") for rank in "024"]  # type: ignore[attr-defined]
