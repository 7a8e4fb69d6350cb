"""Which collective a training hangs in, by dumps that are written from what each rank truly did."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st
from smallruns import T0, gpu, run, steps_of
from verdicts import verdict_of, verdicts_of
from writtendumps import START, Call, Dump, calls

import gpudiag as gd
from gpudiag.diagnosis import diagnose
from gpudiag.errors import NotGiven
from gpudiag.measures._waits.watchdog import given_up
from gpudiag.measures.collectives import CollectivesProfile, measure_collectives
from gpudiag.report._render.blocks import Note
from gpudiag.report._sections.collectives import collectives
from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.schema import EVENTS, conform, text_dtype

RULES = ("rank-missing", "collective-stuck", "collective-mismatch")
AFTER_S = 900.0
RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "flight_recorder_gloo"
REAL_END_S = 1795623320.03 + 75
"""When the dumps of the ranks that waited were written."""


def measured(tmp_path: Path, dumps: Sequence[Dump], written_s: float | None = AFTER_S) -> CollectivesProfile:
    for dump in dumps:
        dump.write(tmp_path, written_s=written_s)
    return measure_collectives(gd.load_run(tmp_path))


def statuses(tmp_path: Path, dumps: Sequence[Dump], written_s: float = AFTER_S) -> dict[str, str]:
    for dump in dumps:
        dump.write(tmp_path, written_s=written_s)
    return {one.rule: one.status.value for one in verdicts_of(gd.load_run(tmp_path), *RULES)}


def hung(rank: int, last: int = 10, **unlike: Any) -> Dump:
    """A rank that waits in the collective after ``last``."""
    return Dump(rank, [*calls(last), Call(last + 1, last + 1.0, None, **unlike)])


def test_a_run_without_a_dump_is_not_asked() -> None:
    with pytest.raises(NotGiven):
        measure_collectives(run(gpu=gpu(range(60), util_pct=50.0)))
    verdicts = verdicts_of(run(gpu=gpu(range(60), util_pct=50.0)), *RULES)
    assert {one.status for one in verdicts} == {Status.NOT_APPLICABLE}


def test_healthy_dumps_give_no_finding(tmp_path: Path) -> None:
    assert set(statuses(tmp_path, [Dump(rank, calls(20)) for rank in range(4)]).values()) == {"ok"}


def test_a_dump_from_the_middle_of_a_healthy_training_gives_no_finding(tmp_path: Path) -> None:
    """Ranks are never at the same place: the files say that they were written seconds later."""
    dumps = [hung(0), hung(1), Dump(2, calls(10)), hung(3, 9)]
    assert set(statuses(tmp_path, dumps, written_s=13.0).values()) == {"ok"}


def test_a_rank_that_did_not_come(tmp_path: Path) -> None:
    p = measured(tmp_path, [hung(0), hung(1), Dump(2, calls(10)), hung(3)])
    assert (p.hang, p.missing_ranks, p.waiting_ranks, p.unknown_ranks) == ("missing", "2", "0, 1, 3", "")
    assert (p.collective, p.group, p.last_collective) == (
        "all_reduce number 11", "0 (default_pg)", "all_reduce number 10"
    )  # fmt: skip
    assert p.waiting_since.startswith("2026-02-03T14:00:11") and p.wait_s == 600.0 and p.timeout_s == 600.0
    assert p.by_rank["role"].to_dict() == {"0": "waiting", "1": "waiting", "2": "missing", "3": "waiting"}
    assert p.by_rank.loc["2", ["last_seq", "last_state"]].tolist() == [10.0, "completed"]


@pytest.mark.slow
def test_how_long_they_waited_is_between_what_the_dumps_and_their_files_say(tmp_path: Path) -> None:
    late = Dump(1, [*calls(10), Call(11, 11.0, None), Call(1, 71.0, group="1")], {"0": range(2), "1": [1]})
    p = measured(tmp_path, [Dump(0, calls(10), {"0": range(2)}), late], written_s=131.0)
    assert p.hang == "missing" and p.wait_low_s == pytest.approx(60.01) and p.wait_s == 120.0
    p = measured(tmp_path / "retired", [Dump(0, calls(10)), hung(1, retired=True)], written_s=11.5)
    assert p.wait_low_s == p.wait_s == 600.0


@pytest.mark.slow
def test_a_rank_without_a_dump_is_unknown_and_not_missing(tmp_path: Path) -> None:
    dumps = [hung(0), hung(1), hung(3)]
    p = measured(tmp_path, dumps)
    assert (p.hang, p.missing_ranks, p.unknown_ranks, p.undumped_ranks) == ("open", "", "2", "2")
    assert set(statuses(tmp_path, dumps).values()) == {"not_assessed"}


def test_the_first_screen_says_which_dump_is_lacking(tmp_path: Path) -> None:
    for dump in (hung(0), hung(1), hung(3)):
        dump.write(tmp_path, written_s=AFTER_S)
    said, proof, then = diagnose(gd.load_run(tmp_path)).document.headline.sentences
    assert said == "3 of 4 ranks wait in a collective, and there is no dump of rank 2."
    assert proof == (
        "3 of 4 ranks wait in all_reduce number 11 of group 0 (default_pg) since 2026-02-03 14:00:11 (Etc/UTC), for up "
        "to 10 min, but there is no dump of rank 2."
    )
    assert then.startswith("Fetch the dump of rank 2 too, written at the same time as the others")


@pytest.mark.slow
def test_the_first_screen_says_which_dump_is_not_whole(tmp_path: Path) -> None:
    """The last entry of rank 2 is damaged: it has a dump, which does not say how far it came."""
    for dump in (hung(0), hung(1), hung(3)):
        dump.write(tmp_path, written_s=AFTER_S)
    whole = Dump(2, calls(10)).as_json()
    (tmp_path / "nccl_trace_rank_2.json").write_text(json.dumps(whole | {"entries": [*whole["entries"], {}]}))
    document = diagnose(gd.load_run(tmp_path)).document
    said, proof, then = document.headline.sentences
    assert document.values(CollectivesProfile)[CollectivesProfile.undumped_ranks] == ""
    assert said == "3 of 4 ranks wait in a collective, and no dump says how far rank 2 came."
    assert proof.endswith("but no dump says how far others came: rank 2.")
    assert then.startswith("Give a whole dump of rank 2, written at the same time as the others")


def test_waits_of_a_healthy_training_are_not_said_first(tmp_path: Path) -> None:
    for dump in (hung(0), hung(1), hung(3)):
        dump.write(tmp_path, written_s=13.0)
    assert "collective" not in diagnose(gd.load_run(tmp_path)).headline


@pytest.mark.slow
def test_of_several_dumps_of_a_rank_the_latest_is_taken_and_both_are_said(tmp_path: Path) -> None:
    """A dump in the middle of the training beside that of the hang: the later time counts, whatever the names."""
    for rank in range(4):
        hung(rank, 20 if rank != 2 else 19).write(tmp_path, written_s=AFTER_S)
    Dump(2, calls(5)).write(tmp_path / "z", written_s=AFTER_S)
    run = gd.load_run(tmp_path)
    p = measure_collectives(run)
    assert (p.latest_dumps, p.older_dumps) == ("nccl_trace_rank_2.json", "z/nccl_trace_rank_2.json")
    assert p.n_dumps == 4 and p.by_rank.loc["2", "last_seq"] == 20.0
    shown = [block.text for block in collectives(diagnose(run).document) if isinstance(block, Note)]
    taken, left_out = "nccl_trace_rank_2.json", "z/nccl_trace_rank_2.json"
    assert shown[-1] == f"Of a rank with several dumps the latest was taken ({taken}); left out: {left_out}."


@pytest.mark.slow
def test_one_dump_of_each_rank_needs_no_word(tmp_path: Path) -> None:
    p = measured(tmp_path, [hung(rank) for rank in range(4)])
    assert (p.latest_dumps, p.older_dumps) == ("", "")
    assert not any("several dumps" in str(block) for block in collectives(diagnose(gd.load_run(tmp_path)).document))


@pytest.mark.slow
def test_a_call_that_differs_is_said_before_a_dump_that_is_lacking(tmp_path: Path) -> None:
    for dump in (hung(0), hung(1, name="broadcast"), hung(3)):
        dump.write(tmp_path, written_s=AFTER_S)
    assert diagnose(gd.load_run(tmp_path)).headline.startswith("Ranks called different collectives.")


def test_a_missing_rank_is_proven_though_another_has_no_dump(tmp_path: Path) -> None:
    p = measured(tmp_path, [hung(0), Dump(1, calls(9))])
    assert (p.hang, p.missing_ranks, p.unknown_ranks) == ("missing", "1", "2, 3")


@pytest.mark.slow
def test_all_came_and_none_ended(tmp_path: Path) -> None:
    dumps = [hung(rank) for rank in range(4)]
    dumps[3] = Dump(3, [*dumps[3].calls, Call(12, 12.0, None, started=False)])  # it went ahead: not what hangs
    p = measured(tmp_path, dumps)
    assert (p.hang, p.collective, p.n_waiting, p.missing_ranks) == ("stuck", "all_reduce number 11", 4, "")
    assert statuses(tmp_path, dumps)["collective-stuck"] == "found"


def test_the_rank_that_called_nothing_is_missing_from_the_first(tmp_path: Path) -> None:
    first = [Dump(rank, [Call(1, 1.0, None)] if rank else []) for rank in range(4)]
    p = measured(tmp_path, first)
    assert (p.hang, p.missing_ranks, p.collective, p.last_collective) == ("missing", "0", "all_reduce number 1", "")


@pytest.mark.slow
def test_what_a_full_recorder_dropped_is_no_evidence(tmp_path: Path) -> None:
    """Rank 1 keeps only the last of another group: whether it came to this one cannot be known."""
    both = {"0": (0, 1), "1": (1,)}
    full = Dump(1, [Call(seq, float(seq), group="1") for seq in range(50, 60)], both, first_record=80)
    whole = replace(full, first_record=0)
    waits = Dump(0, [Call(1, 1.0, None)], both)
    assert measured(tmp_path / "full", [waits, full]).hang == "open"
    assert measured(tmp_path / "whole", [waits, whole]).missing_ranks == "1"
    late = [Dump(0, calls(90, first=41), first_record=40), Dump(1, calls(90, first=81), first_record=80)]
    assert measured(tmp_path / "late", [replace(one, members={"0": (0, 1)}) for one in late]).hang == ""


def test_the_cause_is_the_rank_that_waits_nowhere_itself(tmp_path: Path) -> None:
    """Rank 3 never came to group 1; rank 2 waits for it there, and so 0 and 1 wait for both in group 0."""
    groups = {"0": (0, 1, 2, 3), "1": (2, 3)}
    dumps = [
        Dump(0, [*calls(10), Call(11, 11.0, None)], groups),
        Dump(1, [*calls(10), Call(11, 11.0, None)], groups),
        Dump(2, [*calls(10), Call(1, 10.2, group="1"), Call(2, 30.0, None, group="1")], groups),
        Dump(3, [*calls(10), Call(1, 10.2, group="1")], groups),
    ]
    p = measured(tmp_path, dumps)
    assert (p.hang, p.group, p.missing_ranks, p.waiting_ranks) == ("missing", "1 (default_pg)", "3", "2")


def test_different_operations_at_one_number(tmp_path: Path) -> None:
    p = measured(tmp_path, [hung(0), hung(1, name="broadcast"), hung(2), hung(3)])
    assert (p.mismatch, p.other_ranks, p.other_call, p.usual_call) == ("11", "1", "broadcast", "all_reduce")
    assert not p.swapped and p.hang == "stuck"


@pytest.mark.slow
def test_different_sizes_where_they_must_agree_and_where_they_need_not(tmp_path: Path) -> None:
    p = measured(tmp_path / "a", [hung(rank, sizes=(4, 2) if rank == 1 else (9,)) for rank in range(4)])
    assert (p.other_call, p.usual_call) == ("all_reduce of 8 elements (Float)", "all_reduce of 9 elements (Float)")
    p = measured(tmp_path / "b", [hung(rank, types=["BFloat16"] if rank == 1 else ["Float"]) for rank in range(4)])
    assert p.other_call == "all_reduce of 8192 elements (BFloat16)"
    shapes = [hung(rank, sizes=(4, 2) if rank == 1 else (8,)) for rank in range(4)]
    assert measured(tmp_path / "c", shapes).mismatch == "", "as many elements"
    uneven = [hung(rank, name="all_to_all", sizes=(rank + 1,)) for rank in range(4)]
    assert measured(tmp_path / "d", uneven).mismatch == ""


def test_two_that_are_swapped(tmp_path: Path) -> None:
    names = {0: ("reduce", "barrier"), 1: ("barrier", "reduce"), 2: ("reduce", "barrier"), 3: ("reduce", "barrier")}
    dumps = [
        Dump(rank, [*calls(5), Call(6, 6.0, None, one), Call(7, 7.0, None, two)]) for rank, (one, two) in names.items()
    ]
    p = measured(tmp_path, dumps)
    assert p.swapped and p.mismatch == "6" and p.other_ranks == "1"


def test_sends_between_two_ranks_are_no_collectives(tmp_path: Path) -> None:
    send = [Call(1, 20.0, None, "send 0->1", p2p=True), Call(10, 20.1, None, "coalesced")]
    dumps = [Dump(rank, [*calls(10), *(send if rank < 2 else [])]) for rank in range(4)]
    p = measured(tmp_path, dumps)
    assert p.hang == p.mismatch == ""


def test_the_entry_that_ends_a_coalesced_collective_has_its_state(tmp_path: Path) -> None:
    parts = [Call(11, 11.0, None, started=False), Call(11, 11.0, None, started=False), Call(11, 11.1, name="coalesced")]
    assert measured(tmp_path, [Dump(rank, [*calls(10), *parts]) for rank in range(4)]).hang == ""


def test_of_two_dumps_of_a_rank_the_newer_one_counts(tmp_path: Path) -> None:
    for rank in range(4):
        Dump(rank, calls(5)).write(tmp_path / "early", written_s=20)
        (hung(rank) if rank else Dump(0, calls(10))).write(tmp_path / "late", written_s=AFTER_S)
    p = measure_collectives(gd.load_run(tmp_path))
    assert (p.n_dumps, p.missing_ranks, p.last_collective) == (4, "0", "all_reduce number 10")


def test_a_damaged_entry_makes_its_rank_unknown(tmp_path: Path) -> None:
    for rank in range(1, 4):
        hung(rank).write(tmp_path, written_s=AFTER_S)
    path = Dump(0, [*calls(10), Call(11, 11.0, None)]).write(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace('"collective_seq_id": 11', '"collective_seq_id": -1'))
    p = measure_collectives(gd.load_run(tmp_path))
    assert (p.hang, p.missing_ranks, p.unknown_ranks) == ("open", "", "0")


def test_a_selection_keeps_dumps_whole_or_not_at_all(tmp_path: Path) -> None:
    for rank in range(4):
        hung(rank).write(tmp_path)
    whole = gd.load_run(tmp_path)
    late = replace(whole, gpu=gpu(range(60), util_pct=50.0))
    assert len(late.between(None, late.gpu["time"].max()).collectives) in (0, len(whole.collectives))


@pytest.mark.slow
@settings(max_examples=few_of(12), deadline=None)
@given(
    n=st.integers(2, 6),
    came=st.lists(st.integers(3, 9), min_size=6, max_size=6),
    dropped=st.integers(0, 2),
    order=st.randoms(use_true_random=False),
)
def test_who_is_missing_is_who_came_least_far(
    n: int, came: list[int], dropped: int, order: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each rank scheduled as many as drawn; what all scheduled has ended. The truth is counted without the measure."""
    came = came[:n]
    least, most = min(came), max(came)
    dumps = [
        Dump(
            rank,
            [Call(seq, seq + rank / 10, 0.1 if seq <= least else None) for seq in range(1 + dropped, last + 1)],
            {"0": range(n)},
            first_record=dropped,
        )
        for rank, last in enumerate(came)
    ]
    order.shuffle(dumps)
    p = measured(tmp_path_factory.mktemp("dumps"), dumps)
    missing = [str(rank) for rank, last in enumerate(came) if last == least]
    assert p.hang == ("missing" if least < most else "")
    if least < most:
        assert expanded(p.missing_ranks) == missing and p.collective == f"all_reduce number {least + 1}"
        first = min(rank for rank, last in enumerate(came) if last > least)
        since = pd.Timestamp("2026-02-03 14:00", tz="UTC") + pd.Timedelta(seconds=least + 1 + first / 10)
        assert abs(pd.Timestamp(p.waiting_since) - since) < pd.Timedelta(microseconds=1)
    else:
        assert math.isnan(p.wait_s) and p.missing_ranks == ""


def expanded(ranks: str) -> list[str]:
    out: list[str] = []
    for part in filter(None, ranks.split(", ")):
        low, _, high = part.partition("-")
        out += map(str, range(int(low), int(high or low) + 1))
    return out


PAIRS: dict[int, dict[str, Sequence[int]]] = {
    rank: {"0": range(4), "1": (0, 1) if rank < 2 else (2, 3)} for rank in range(4)
}


@pytest.mark.slow
def test_groups_of_one_name_and_other_ranks_are_others(tmp_path: Path) -> None:
    """As split_group makes them, each pair with sizes of its own."""
    sizes = {rank: (1024, 8) if rank < 2 else (77,) for rank in range(4)}
    healthy = [Dump(rank, calls(20, group="1", sizes=sizes[rank]), PAIRS[rank]) for rank in range(4)]
    assert set(statuses(tmp_path / "healthy", healthy).values()) == {"ok"}
    waiting = Dump(0, [*healthy[0].calls, Call(21, 21.0, None, group="1", sizes=sizes[0])], PAIRS[0])
    p = measured(tmp_path / "hung", [waiting, *healthy[1:]])
    assert (p.hang, p.group, p.missing_ranks) == ("missing", "1 of ranks 0, 1 (default_pg)", "1")


def test_what_a_full_recorder_dropped_in_part_is_no_difference(tmp_path: Path) -> None:
    batch = [Call(seq, float(seq), name=name) for seq in range(1, 11) for name in ("a", "b")]
    hangs = [Call(11, 11.0, None)]
    dumps = [Dump(0, [*batch, *hangs], first_record=40), Dump(1, [*batch[1:], *hangs], first_record=41)]
    assert measured(tmp_path, dumps).mismatch == ""


def test_a_size_that_is_not_known_is_no_difference(tmp_path: Path) -> None:
    dumps = [hung(rank) for rank in range(4)]
    paths = [dump.write(tmp_path, written_s=AFTER_S) for dump in dumps]
    paths[2].write_text(re.sub(r'"input_sizes": \[\[1024, 8\]\]', '"input_sizes": null', paths[2].read_text()))
    p = measure_collectives(gd.load_run(tmp_path))
    assert (p.hang, p.mismatch) == ("stuck", "")


def test_what_all_ended_was_alike_enough(tmp_path: Path) -> None:
    uneven = [Dump(rank, [*calls(9), Call(10, 10.0, name="all_reduce", sizes=(rank,))]) for rank in range(4)]
    assert set(statuses(tmp_path, uneven).values()) == {"ok"}


@pytest.mark.parametrize("name", ["all_reduce", "broadcast"])
def test_neither_of_two_is_most(tmp_path: Path, name: str) -> None:
    dumps = [Dump(rank, [*calls(5), Call(6, 6.0, None, name="all_reduce" if rank < 2 else name)]) for rank in range(4)]
    assert measured(tmp_path, dumps).tied == (name != "all_reduce")


def test_a_dump_of_an_earlier_run_tells_nothing(tmp_path: Path) -> None:
    Dump(3, [Call(seq, seq - 10_800.0) for seq in range(1, 6)]).write(tmp_path, written_s=-10_700.0)
    p = measured(tmp_path, [hung(rank) for rank in range(3)])
    assert (p.hang, p.missing_ranks, p.unknown_ranks) == ("open", "", "3")


@pytest.mark.slow
def test_who_waits_for_one_other_rank_is_not_cleared(tmp_path: Path) -> None:
    waits = Dump(3, [*calls(10), Call(1, 10.5, None, name="recv 3<-2", p2p=True)])
    found = statuses(tmp_path / "alone", [waits, *(Dump(rank, calls(10)) for rank in range(3))])
    assert found["rank-missing"] == found["collective-stuck"] == "not_assessed"
    p = measured(tmp_path / "both", [waits, hung(0), hung(1), hung(2)])
    assert (p.missing_ranks, p.elsewhere, p.sends_ranks) == ("3", True, "3")


def test_where_the_time_of_a_file_alone_tells_it_is_a_warning(tmp_path: Path) -> None:
    """A copy of a healthy dump is as young as its copying."""
    for dump in (hung(0), hung(1), Dump(2, calls(10)), hung(3)):
        dump.write(tmp_path, written_s=AFTER_S)
    found = {one.rule: one for one in diagnose(gd.load_run(tmp_path)).verdicts}["rank-missing"]
    assert (found.status.value, found.severity.value) == ("found", "warning")


def written_without_times(folder: Path, *dumps: Dump) -> None:
    """Of calls that have not ended nothing says when they were made."""
    for dump in dumps:
        path = dump.write(folder)
        held = json.loads(path.read_text())
        for entry in held["entries"]:
            if entry["state"] != "completed":
                del entry["time_created_ns"], entry["time_discovered_started_ns"]
        path.write_text(json.dumps(held))
        os.utime(path, (START.timestamp() + AFTER_S,) * 2)


def test_a_wait_since_nobody_knows_when_is_not_none(tmp_path: Path) -> None:
    written_without_times(tmp_path, hung(0), hung(1), Dump(2, calls(10)), hung(3))
    loaded = gd.load_run(tmp_path)
    found = measure_collectives(loaded)
    assert (found.hang, found.missing_ranks, found.timeout_s) == ("missing", "2", 600.0) and math.isnan(found.wait_s)
    one = verdict_of(loaded, "rank-missing")
    assert one.status is Status.NOT_ASSESSED and "since when is not known" in one.reason


def test_a_send_since_nobody_knows_when_is_not_cleared(tmp_path: Path) -> None:
    waits = Dump(3, [*calls(10), Call(1, 10.5, None, name="recv 3<-2", p2p=True)])
    written_without_times(tmp_path, waits, *(Dump(rank, calls(10)) for rank in range(3)))
    assert verdict_of(gd.load_run(tmp_path), "rank-missing").status is Status.NOT_ASSESSED


@pytest.mark.slow
def test_the_longest_hang_comes_first_and_one_of_unknown_length_last(tmp_path: Path) -> None:
    """Rank 0 waits for 1 in group a, rank 2 for 3 in group b, and rank 4 for 5 in group c."""
    groups = {"a": (0, 1), "b": (2, 3), "c": (4, 5)}
    began_s = {"a": 300.0, "b": 20.0, "c": math.nan}

    def measured_with(began_s: dict[str, float], folder: Path) -> CollectivesProfile:
        for name, (waits, missing) in groups.items():
            unknown = math.isnan(began_s[name])
            last = Call(2, 12.0 if unknown else began_s[name], None, group=name)
            dumps = (
                Dump(waits, [Call(1, 10.0, group=name), last], groups),
                Dump(missing, [Call(1, 10.0, group=name)], groups),
            )
            if unknown:
                written_without_times(folder, *dumps)
            else:
                for dump in dumps:
                    dump.write(folder, written_s=AFTER_S)
        return measure_collectives(gd.load_run(folder))

    for name in ("b", "a"):
        found = measured_with(began_s, tmp_path / name)
        assert (found.group.split()[0], found.missing_ranks) == (name, str(groups[name][1]))
        assert found.wait_s == 600
        began_s[name] = math.nan  # and then the next


@pytest.mark.slow
def test_a_cause_of_unknown_length_does_not_hide_a_wait_that_is_known(tmp_path: Path) -> None:
    """Rank 2 waits for 3 in group 1, nobody knows since when; so 0 and 1 wait for both in group 0."""
    groups = {"0": (0, 1, 2, 3), "1": (2, 3)}
    for rank in (0, 1):
        Dump(rank, [*calls(10), Call(11, 11.0, None)], groups).write(tmp_path, written_s=AFTER_S)
    first = [*calls(10), Call(1, 10.2, group="1")]
    written_without_times(tmp_path, Dump(2, [*first, Call(2, 30.0, None, group="1")], groups), Dump(3, first, groups))
    loaded = gd.load_run(tmp_path)
    found = measure_collectives(loaded)
    assert (found.group.split()[0], found.missing_ranks, found.elsewhere) == ("0", "2, 3", True)
    assert verdict_of(loaded, "rank-missing").status is Status.FOUND


def test_clocks_that_differ_make_no_wait(tmp_path: Path) -> None:
    """A rank whose clock is 300 s ahead, in dumps from the middle of a healthy training."""
    ahead = Dump(3, [Call(seq, seq + 300.0) for seq in range(1, 11)])
    assert set(statuses(tmp_path, [hung(0), hung(1), hung(2), ahead], written_s=12.0).values()) == {"ok"}


@pytest.mark.slow
def test_a_damaged_last_entry_leaves_its_rank_unknown(tmp_path: Path) -> None:
    """It may be the collective that the others wait in; an older one may not."""
    for dump in (hung(0), hung(1), hung(3)):
        dump.write(tmp_path, written_s=AFTER_S)
    path = Dump(2, calls(10)).write(tmp_path, written_s=AFTER_S)
    whole = json.loads(path.read_text())
    for entries, hang in (([*whole["entries"], {}], "open"), ([{}, *whole["entries"][1:]], "missing")):
        path.write_text(json.dumps(whole | {"entries": entries}))
        os.utime(path, (path.stat().st_atime, START.timestamp() + AFTER_S))
        assert measure_collectives(gd.load_run(tmp_path)).hang == hang


def test_real_dumps_of_gloo_name_the_rank_that_did_not_come(tmp_path: Path) -> None:
    """Recorded with PyTorch 2.13: what has ended is 'retired' there and stays 'scheduled'."""
    folder = Path(shutil.copytree(RECORDED, tmp_path / "dumps"))
    for path in folder.iterdir():
        os.utime(path, (REAL_END_S, REAL_END_S))
    run = gd.load_run(folder)
    ended = run.collectives[(run.collectives["seq"] <= 5)]
    assert set(ended["state"]) == {"completed"} and len(ended) == 2 * 10 + 2 * 5
    assert not run.collectives["timed_out"].any()
    (found,) = gd.diagnose(run).findings
    assert (found.rule, found.severity) == ("rank-missing", Severity.WARNING)
    assert "Rank 2 never came to all_reduce number 6" in found.summary and "ranks 0, 1 and 3" in found.summary
    assert "up to 1 min 15 s" in found.summary


@pytest.mark.parametrize("with_ranks", [True, False])
def test_a_real_dump_that_is_lacking_leaves_open_who_did_not_come(tmp_path: Path, with_ranks: bool) -> None:
    """Rank 3 called in one group, whose ranks gloo states; without them, those of the group of all count from 0."""
    folder = Path(shutil.copytree(RECORDED, tmp_path / "dumps"))
    (folder / "nccl_trace_rank_2.json").unlink()
    for path in folder.iterdir():
        text = path.read_text()
        path.write_text(text if with_ranks else text.replace('"ranks":"[0, 1, 2, 3]"', '"ranks":"[]"'))
        os.utime(path, (REAL_END_S, REAL_END_S))
    diagnosis = gd.diagnose(gd.load_run(folder))
    assert not diagnosis.findings
    said = {one.status for one in diagnosis.verdicts if one.rule in ("rank-missing", "collective-stuck")}
    assert said == {Status.NOT_ASSESSED}
    assert "there is no dump of rank 2" in " ".join(str(diagnosis.headline).split())


def test_ranks_that_no_dump_states_are_not_all(tmp_path: Path) -> None:
    """Ranks 0 and 1 hang in a group of their own; of its ranks nothing is stated."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    for rank in (0, 1):
        held = json.loads((RECORDED / f"nccl_trace_rank_{rank}.json").read_text())
        held["entries"] = [one for one in held["entries"] if one["process_group"][0] == "1"]
        held["entries"][-1]["retired"] = False
        path = folder / f"nccl_trace_rank_{rank}.json"
        path.write_text(json.dumps(held))
        os.utime(path, (REAL_END_S, REAL_END_S))
    (found,) = gd.diagnose(gd.load_run(folder)).findings
    assert found.rule == "collective-stuck" and found.summary.startswith("All 2 ranks with a dump came to broadcast")


def test_an_event_of_nccl_that_is_no_timeout_says_nothing() -> None:
    """Nor where no event of the log has the number of a line."""
    events = conform(pd.DataFrame({"time": [T0], "kind": ["nccl"], "detail": ["NCCL error"]}), EVENTS)
    events = events.assign(line=pd.Series([None], dtype=text_dtype()))
    assert given_up(run(steps=steps_of([(1.0, 1), (2.0, 2)]), events=events)) is None
