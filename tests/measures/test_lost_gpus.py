"""Lines on lost GPUs and Xids: of which GPU they speak, how many losses they are, and what they are a sign of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd
import pytest
from verdicts import verdict_of

from gpudiag.measures._gpu.xids import HARDWARE_XIDS, PROGRAM_XIDS
from gpudiag.measures.events import EventsProfile, measure_events
from gpudiag.memo import MemoRun
from gpudiag.rules import RULES
from gpudiag.rules._engine.verdict import Status
from gpudiag.run import InputRecord, Run
from gpudiag.schema import EVENTS, GPU, GPUS, STEPS, conform

AT = pd.Timestamp("2026-03-01 10:00", tz="UTC")
PERIOD_S, LAST_S = 10, 3000
HANDLE = "Unable to determine the device handle for GPU0000:{}:00.0: Unknown Error"


def pair(second: float, bus: str, host: str = "") -> list[tuple[float, str, str]]:
    """The two lines that the driver writes of one loss."""
    return [
        (second, "xid", f"{host}NVRM: Xid (PCI:0000:{bus}:00): 79, pid='<unknown>', GPU has fallen off the bus."),
        (second, "gpu_lost", f"{host}NVRM: GPU 0000:{bus}:00.0: GPU has fallen off the bus."),
    ]


def run_of(
    events: Iterable[tuple[float, str, str]],
    silent: dict[str, list[tuple[float, float]]] | None = None,
    gpus: pd.DataFrame | None = None,
) -> Run:
    """Eight GPUs, of which some give no readings after the first second of a stretch until its last."""
    rows = [
        (second, str(gpu), 95.0)
        for second in range(0, LAST_S + 1, PERIOD_S)
        for gpu in range(8)
        if not any(start < second < end for start, end in (silent or {}).get(str(gpu), []))
    ]
    seconds, names, util = zip(*rows, strict=True)
    table = pd.DataFrame({"time": AT + pd.to_timedelta(seconds, unit="s"), "gpu": names, "util_pct": util})
    at, kinds, details = zip(*events, strict=True)
    told = pd.DataFrame({"time": AT + pd.to_timedelta(at, unit="s"), "kind": kinds, "detail": details})
    listed = pd.DataFrame({"gpu": list("01234567")}) if gpus is None else gpus
    run = replace(Run(), gpu=conform(table, GPU), gpus=conform(listed, GPUS), events=conform(told, EVENTS))
    return MemoRun.of(recorded(run, "01234567"))


def recorded(run: Run, *files: str, ends_s: Iterable[float] = ()) -> Run:
    """In files that list these GPUs, each up to a second."""
    ends = [*ends_s] or [LAST_S] * len(files)
    told = [((AT + pd.Timedelta(seconds=end)).isoformat(), tuple(gpus)) for gpus, end in zip(files, ends, strict=True)]
    inputs = (InputRecord("a.csv", "telemetry", gpus=gpus, start=AT.isoformat(), end=end) for end, gpus in told)
    return replace(run, info=replace(run.info, inputs=tuple(inputs)))


def losses(found: EventsProfile) -> tuple[int, int, set[str]]:
    lost = found.events[found.events["kind"] == "gpu_lost"]
    return found.n_lost_gpus, found.n_lost, set(lost["gpu"].dropna())


def test_the_lines_of_one_loss_are_one_and_name_the_gpu_whose_readings_end() -> None:
    gone = {"3": [(1800.0, 9999.0)]}
    reset = (1805.0, "xid", "NVRM: Xid (PCI:0000:5e:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (..)")
    found = measure_events(run_of([*pair(1803, "5e"), reset], gone))
    assert losses(found) == (1, 1, {"3"})
    assert set(found.events["gpu"]) == {"3"}, "other lines on the same address speak of it, too"
    looped = [(second, "gpu_lost", HANDLE.format("5E")) for second in range(1810, LAST_S, PERIOD_S)]
    assert losses(measure_events(run_of(looped, gone))) == (1, 1, {"3"})


def test_gpus_behind_one_switch_are_each_one() -> None:
    buses = ("5e", "5f", "60", "61")
    lines = [line for bus in buses for line in pair(1803, bus)]
    gone = {gpu: [(1800.0, 9999.0)] for gpu in "2345"}
    found = measure_events(run_of(lines, gone))
    assert losses(found) == (4, 4, set("2345"))
    by_address = dict(zip(found.events["detail"].str.extract(r"0000:(\w\w):")[0], found.events["gpu"], strict=True))
    assert by_address == dict(zip(buses, "2345", strict=True)), "nvidia-smi numbers them by address"
    said = verdict_of(run_of(lines, gone), "gpu-lost")
    assert said.summary == "GPUs 2, 3, 4 and 5 were lost at 2026-03-01 10:30:03 UTC."


@pytest.mark.parametrize(
    ("gone", "why"),
    [
        ({"2": [(1800.0, 9999.0)], "3": [(1800.0, 9999.0)]}, "two are silent, and one was lost"),
        ({"3": [(1500.0, 9999.0)]}, "it had been silent for minutes"),
        ({}, "none is silent"),
        ({str(gpu): [(1800.0, 1900.0)] for gpu in range(8)}, "the recorder paused"),
    ],
)
def test_where_readings_do_not_tell_the_gpu_its_address_stands_for_it(
    gone: dict[str, list[tuple[float, float]]], why: str
) -> None:
    run = run_of(pair(1803, "5e"), gone)
    assert losses(measure_events(run)) == (1, 1, {"0000:5e:00"}), why
    said = verdict_of(run, "gpu-lost")
    assert said.summary == "GPU 0000:5e:00 was lost at 2026-03-01 10:30:03 UTC." and said.where == {}


def test_the_table_of_gpus_tells_which_is_at_an_address() -> None:
    listed = pd.DataFrame({"gpu": ["6", "7"], "bus_id": ["00000000:5E:00.0", "00000001:5E:00.0"]})
    one = (60.0, "xid", "NVRM: Xid (PCI:0001:5e:00): 48, DBE")
    found = measure_events(run_of([*pair(30, "5e"), one], gpus=listed))
    assert losses(found) == (1, 1, {"6"}) and found.events["gpu"].iloc[-1] == "7"


def test_one_address_on_two_hosts_is_two_gpus() -> None:
    lines = [*pair(30, "5e", "Mar 01 10:00:30 n1 kernel: "), *pair(60, "5e", "Mar 01 10:01:00 n2 kernel: ")]
    assert losses(measure_events(run_of(lines))) == (2, 2, {"n1/0000:5e:00", "n2/0000:5e:00"})
    listed = pd.DataFrame({"gpu": ["n1/0", "n2/0"], "bus_id": "00000000:5E:00.0", "host": ["n1", "n2"]})
    assert losses(measure_events(run_of(lines, gpus=listed))) == (2, 2, {"n1/0", "n2/0"})


def test_a_gpu_that_gave_readings_again_was_lost_again() -> None:
    gone = {"3": [(1000.0, 1500.0), (2000.0, 9999.0)]}
    found = run_of([*pair(1003, "5e"), *pair(2003, "5e")], gone)
    assert losses(measure_events(found)) == (1, 2, {"3"})
    said = verdict_of(found, "gpu-lost")
    assert said.summary == "GPU 3 was lost 2 times, first at 2026-03-01 10:16:43 UTC."


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("NVRM: Xid (PCI:0000:18:00): 119, pid=42, Timeout after 45s of waiting for RPC response from GPU0 GSP!", "h"),
        ("NVRM: Xid (PCI:0000:18:00): 140, pid='<unknown>', An uncorrectable ECC error detected", "h"),
        ("NVRM: Xid (PCI:0000:18:00): 92, High single-bit ECC error rate", "h"),
        ("NVRM: Xid (PCI:0000:18:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 12 (0x004505c6 0x00000000)", "h"),
        ("NVRM: Xid (PCI:0000:18:00): 145, RLW_SRC_TRACK Nonfatal XC1 i14 Link -1 (0x0 0x0)", "u"),
        ("NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Req.)", "h"),
        ("NVRM: Xid (PCI:0000:18:00): 154, GPU recovery action changed from 0x1 (GPU Reset Req.) to 0x0 (None)", ""),
        ("NVRM: Xid (PCI:0000:18:00): 31, pid=4242, name=python3, Ch 00000008, MMU Fault", "p"),
        ("NVRM: Xid (PCI:0000:18:00): 43, pid=4242, name=python3, Ch 00000008", "p"),
        ("NVRM: Xid (PCI:0000:18:00): 66, Illegal access by driver", "u"),
        ("NVRM: Xid (PCI:0000:18:00): 999, of tomorrow", "u"),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 22013, Fatal, Link 21 Minion Link DLREQ interrupt", "h"),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error", "u"),
    ],
)
def test_what_a_xid_is_a_sign_of(line: str, origin: str) -> None:
    kind = "sxid" if "SXid" in line else "xid"
    run = run_of([(60.0, kind, line)])
    found = measure_events(run)
    assert (found.n_hardware, found.n_application, found.n_ambiguous) == tuple(int(origin == one) for one in "hpu")
    said = verdict_of(run, "gpu-hardware-errors")
    grave = {"h": "critical", "u": "note"}.get(origin)
    assert (said.status.value, grave) == ("found", said.severity.value) if grave else said.status.value == "ok"
    assert said.where == ({"gpu": "0000:18:00"} if grave and kind == "xid" else {}), "a SXid's address is a switch's"


def test_the_rule_lists_the_xids_that_it_counts() -> None:
    rule = next(one for one in RULES if one.id == "gpu-hardware-errors")
    doc = " ".join(str(rule.judge.__doc__).split())
    listed = re.search(r"They are ([\d, and-]+)\..*not counted: ([\d, and-]+)\.", doc)
    assert listed is not None
    spans = [[part.split("-") for part in re.split(r", | and ", text)] for text in listed.groups()]
    named = [{number for span in each for number in range(int(span[0]), int(span[-1]) + 1)} for each in spans]
    assert named == [set(HARDWARE_XIDS), set(PROGRAM_XIDS)] and not HARDWARE_XIDS & PROGRAM_XIDS


def test_errors_of_either_kind_are_named_by_their_numbers() -> None:
    lines = [
        (60.0, "xid", "NVRM: Xid (PCI:0000:18:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 12"),
        (61.0, "sxid", "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 22013, Fatal, Link 21 Minion Link DLREQ interrupt"),
        (62.0, "xid", "NVRM: Xid (PCI:0000:18:00): 66, Illegal access by driver"),
    ]

    def said(*events: tuple[float, str, str]) -> str:
        return verdict_of(run_of(events), "gpu-hardware-errors").summary

    at = "first at 2026-03-01 10:01:0"
    assert said(*lines) == f"The logs hold 2 hardware errors of a GPU (Xid 149; SXid 22013), {at}0 UTC."
    assert said(lines[1]) == f"The logs hold 1 hardware error of a GPU (SXid 22013), {at}1 UTC."
    assert said(lines[2]) == (
        f"The logs hold 1 error that may come from the hardware, the driver or a program (Xid 66), {at}2 UTC."
    )


RAISED = "RuntimeError: CUDA error: unspecified launch failure"


def judged(run: Run) -> tuple[Status, str]:
    verdict = verdict_of(run, "gpu-lost")
    return verdict.status, verdict.summary or verdict.reason


@pytest.mark.parametrize(("second", "status"), [(1800, Status.FOUND), (1900, Status.NOT_ASSESSED)])
def test_a_gpu_that_is_no_longer_listed_was_most_likely_lost_if_there_was_an_error(
    second: float, status: Status
) -> None:
    run = run_of([(second, "raised", RAISED)], {"3": [(1790.0, 9999.0)]})
    found = measure_events(run)
    assert found.vanished.index.tolist() == ["3"] and found.n_vanished == int(status is Status.FOUND)
    assert found.vanished["last"].tolist() == [AT + pd.Timedelta(seconds=1790)]
    assert found.vanished["unlisted_s"].tolist() == [LAST_S - 1790]
    said, text = judged(run)
    assert said is status and text.startswith("GPU 3 was no longer listed from 2026-03-01 10:29:50 UTC on")
    assert (RAISED in text) == (status is Status.FOUND)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("raised", "ValueError: bad config"),
        ("killed", "train.sh: line 4: 4242 Killed"),
        ("diverged", "Loss is nan, stopping training"),
        ("nccl", "torch.distributed.DistBackendError: NCCL error: remote process exited"),
        ("device_assert", "RuntimeError: CUDA error: device-side assert triggered"),
        ("raised", "RuntimeError: CUDA error: invalid device ordinal"),
    ],
)
def test_an_error_of_the_program_tells_of_no_lost_gpu(kind: str, error: str) -> None:
    said, text = judged(run_of([(1800, kind, error)], {"3": [(1790.0, 9999.0)]}))
    assert said is Status.NOT_ASSESSED and "Nothing says whether a GPU was lost or a recorder ended" in text


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("raised", "RuntimeError: CUDA error: unknown error"),
        ("raised", "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA_ERROR_LAUNCH_FAILED: launch failed"),
        ("nccl", "ncclUnhandledCudaError: Call to CUDA function failed. Last error: Cuda failure 999 'unknown error'"),
    ],
)
def test_errors_of_the_driver_and_cuda_do(kind: str, error: str) -> None:
    assert measure_events(run_of([(1800, kind, error)], {"3": [(1790.0, 9999.0)]})).n_vanished == 1


def test_rows_of_a_clock_that_repeats_whole_seconds_count_once() -> None:
    """Rows that come three times would be less than no time apart."""
    once = run_of([(1800, "raised", RAISED)], {"3": [(1790.0, 9999.0)]})
    thrice = replace(once, gpu=pd.concat([once.gpu] * 3, ignore_index=True))
    pd.testing.assert_frame_equal(measure_events(thrice).vanished, measure_events(once).vanished)
    assert measure_events(thrice).n_vanished == 1


@pytest.mark.parametrize(
    ("files", "ends_s", "n"),
    [
        (("0124567", "3"), (LAST_S, 1790), 0),  # a recorder of its own, which ended
        (("01234567", "0124567"), (1790, LAST_S), 0),  # that of all ended, and another began
        (("3", "01234567"), (1790, LAST_S), 1),
        ((), (), 0),
    ],
)
def test_one_recording_lists_the_others_on(files: tuple[str, ...], ends_s: tuple[float, ...], n: int) -> None:
    run = run_of([(1800, "raised", RAISED)], {"3": [(1790.0, 9999.0)]})
    assert measure_events(recorded(run, *files, ends_s=ends_s)).n_vanished == n


@pytest.mark.parametrize(
    ("files", "ends_s", "n"),
    [(("0123", "0123"), (LAST_S, LAST_S), 1), (("0123", "012", "3"), (LAST_S, LAST_S, 1790), 0)],
)
def test_numbers_of_several_hosts_are_those_of_any_file(
    files: tuple[str, ...], ends_s: tuple[float, ...], n: int
) -> None:
    """Files name GPUs by number alone, and which is of which host is not kept."""
    run = run_of([(1800, "raised", RAISED)], {"3": [(1790.0, 9999.0)]})
    hosts = run.gpu["gpu"].map(lambda gpu: f"n{int(gpu) // 4}/{int(gpu) % 4}")
    run = recorded(replace(run, gpu=run.gpu.assign(gpu=hosts)), *files, ends_s=ends_s)
    assert measure_events(run).n_vanished == n


@pytest.mark.parametrize(
    "silent",
    [
        {"3": [(1790.0, 2500.0)]},  # it comes back
        {"3": [(LAST_S - 40.0, 9999.0)]},  # the last rows of a recorder that was ended
        {"0": [(1790.0, 2500.0)], **{str(gpu): [(1790.0, 9999.0)] for gpu in range(1, 8)}},  # another recording
    ],
)
def test_a_gpu_whose_rows_end_with_its_recording_is_not_called_lost(
    silent: dict[str, list[tuple[float, float]]],
) -> None:
    assert measure_events(run_of([(10, "raised", RAISED)], silent)).vanished.empty


def test_an_error_without_a_timestamp_is_placed_by_the_line_above_it() -> None:
    """As Python prints it: the step above is of 40 s before, and a line comes each minute."""
    run = run_of([(0, "raised", RAISED)], {"3": [(1840.0, 9999.0)]})
    events = run.events.assign(time=pd.NaT, path="train.log", line=99)
    events["time"] = pd.to_datetime(events["time"], utc=True)
    times = AT + pd.to_timedelta([60.0 * n for n in range(1, 31)], unit="s")
    lines = {"time": times, "step": range(1, 31), "unit": "step", "series": "steps", "meant": "", "line": range(1, 31)}
    steps = conform(pd.DataFrame(lines).assign(path="train.log"), STEPS)
    assert measure_events(replace(run, events=events, steps=steps)).n_vanished == 1
    assert measure_events(replace(run, events=events)).n_vanished == 0
