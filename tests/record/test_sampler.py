"""The loop: fixed moments, and every fault of a reading replayed."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pandas as pd
import psutil
import pytest
from replay import Hands, Replay, device, no_driver, reading

from gpudiag import read_telemetry
from gpudiag.errors import ConfigError
from gpudiag.readers.base import Telemetry
from gpudiag.record.readings import DriverGone, GpuLost, NoDriver, RecordRow
from gpudiag.record.sampler import Clock, Options, Sampler
from gpudiag.record.sink import CsvSink


def clock_of(hands: Hands) -> Clock:
    return Clock(hands.wall, hands.mono, hands.wait)


def record(
    path: Path, adapter: Replay, ticks: int, *, hands: Hands | None = None, heard: Callable = lambda rows: None, **more
) -> Telemetry:
    hands = hands or Hands()
    stop = threading.Event()
    before = hands.at_wait

    def at_wait(n: int) -> None:
        before(n)
        if n >= ticks:
            stop.set()

    hands.at_wait = at_wait
    sampler = Sampler(CsvSink(path, pytest.fail), adapter, None, Options(**more), clock=clock_of(hands), heard=heard)
    sampler.open()
    sampler.run(stop)
    sampler.close()
    return read_telemetry(path)


def kinds(telemetry: Telemetry) -> list[str]:
    return told(telemetry)["kind"].tolist()


def told(telemetry: Telemetry) -> pd.DataFrame:
    """The events that were written, without those that the reader adds."""
    return telemetry.events[~telemetry.events["kind"].isin(["record_start", "record_cut"])]


def test_every_reading_comes_back_as_it_was(tmp_path: Path) -> None:
    out = record(tmp_path / "a.csv", Replay({"0": [], "1": []}), 5)
    assert len(out.gpu) == 10 and out.clock == "utc" and not out.problems
    for name, value in reading().items():
        assert out.gpu[name].eq(value).all(), name
    assert out.gpus["uuid"].tolist() == [device(0).uuid, device(1).uuid]
    assert out.gpus["driver"].tolist() == ["570.86.15"] * 2
    assert out.gpus["mem_total_mib"].tolist() == [143771.0] * 2


def test_what_a_gpu_does_not_support_is_absent(tmp_path: Path) -> None:
    out = record(tmp_path / "a.csv", Replay({"0": []}, usual={"mem_used_mib": 100.0, "util_pct": 0}), 3)
    assert set(out.gpu.columns) == {"time", "gpu", "util_pct", "mem_used_mib"}
    assert out.gpu["util_pct"].eq(0).all(), "zero is a reading"


def test_a_value_missing_once_is_unknown_once(tmp_path: Path) -> None:
    hiccup = {name: value for name, value in reading().items() if name != "power_w"}
    out = record(tmp_path / "a.csv", Replay({"0": [reading(), hiccup, reading()]}), 3)
    assert out.gpu["power_w"].isna().tolist() == [False, True, False]


def test_a_lost_gpu_is_an_event_and_the_others_go_on(tmp_path: Path) -> None:
    adapter = Replay({"0": [reading()] * 3 + [GpuLost("GPU is lost")], "1": []})
    out = record(tmp_path / "a.csv", adapter, 8)
    assert out.gpu["gpu"].value_counts().to_dict() == {"0": 3, "1": 8}
    lost = out.events[out.events["kind"] == "gpu_lost"]
    assert lost["gpu"].tolist() == ["0"] and "GPU is lost" in lost["detail"].iloc[0]


def test_a_driver_that_restarts_is_opened_again(tmp_path: Path) -> None:
    adapter = Replay({"0": [reading(), DriverGone("Uninitialized")], "1": []})
    again = [device(1), device(0)]  # it comes back with the GPUs the other way round
    swapped = [device(5), *again]
    adapter.opens = [[device(0), device(1)], no_driver(), swapped]
    out = record(tmp_path / "a.csv", adapter, 40)
    assert kinds(out)[:2] == ["driver_gone", "driver_back"]
    gone, back = told(out)["time"].iloc[:2]
    assert 19 <= (back - gone).total_seconds() <= 22, "asked every 10 s; the first time in vain"
    assert (out.gpu["time"] > back).sum() == 2 * (40 - 2 - 20), "both GPUs until the end, and no third"
    assert adapter.closed == 3
    assert out.gpus["uuid"].tolist() == [device(0).uuid, device(1).uuid], "each keeps its name"


def test_no_driver_and_no_gpu_are_told(tmp_path: Path) -> None:
    with pytest.raises(NoDriver, match="no NVIDIA driver on this machine"):
        record(tmp_path / "a.csv", Replay(opens=[no_driver()]), 1)
    with pytest.raises(NoDriver, match="sees no GPU"):
        record(tmp_path / "a.csv", Replay({}), 1)
    assert not (tmp_path / "a.csv").exists(), "a recording that cannot begin leaves nothing"


def test_gpus_are_chosen_by_index_or_uuid(tmp_path: Path) -> None:
    adapter = Replay({"0": [], "1": [], "2": []})
    out = record(tmp_path / "a.csv", adapter, 2, gpus=("2", device(0).uuid[:12]))
    assert set(out.gpu["gpu"]) == {"0", "2"}
    with pytest.raises(ConfigError, match=r"there is no GPU '7'; give an index or a uuid of: 0 \(GPU-0cd"):
        record(tmp_path / "b.csv", Replay(), 1, gpus=("7",))


def test_mig_is_an_event(tmp_path: Path) -> None:
    out = record(tmp_path / "a.csv", Replay({"0": []}, mig=True, usual={"mem_used_mib": 5.0}), 2)
    assert kinds(out)[0] == "mig" and "util_pct" not in out.gpu


def test_processes(tmp_path: Path) -> None:
    adapter = Replay(seen={"0": [{"pid": 77, "mem_used_mib": 10.5, "sm_pct": 50}, {"pid": 2**22 - 1}]})
    out = record(tmp_path / "a.csv", adapter, 3, processes=True)
    assert out.processes.groupby("pid").size().to_dict() == {77: 3, 2**22 - 1: 3}
    assert out.processes.loc[out.processes["pid"] == 77, "sm_pct"].eq(50).all()
    assert out.processes.loc[out.processes["pid"] != 77, "mem_used_mib"].isna().all()
    plain = record(tmp_path / "b.csv", adapter, 3)
    assert plain.processes.empty


@pytest.mark.parametrize("inside", [True, False])
def test_a_container_with_process_numbers_of_its_own_names_no_process(
    inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the driver numbers so may be another process here."""
    monkeypatch.setattr("gpudiag.record.host.sees_other_pids", lambda: inside)
    monkeypatch.setattr("gpudiag.record.sampler.sees_other_pids", lambda: inside)
    path = tmp_path / "a.csv"
    out = record(path, Replay(seen={"0": [{"pid": os.getpid()}]}), 2, processes=True)
    assert out.processes["pid"].tolist() == [os.getpid()] * 2
    names = set(out.processes.get("name", pd.Series(dtype=object)).dropna()) - {""}
    assert names == (set() if inside else {psutil.Process().name()})
    assert ("of the host: this container has its own" in path.read_text(encoding="utf-8")) == inside


def test_a_driver_that_hides_processes_leaves_the_gpu_as_it_is(tmp_path: Path) -> None:
    """As under WSL."""
    out = record(tmp_path / "a.csv", Replay(seen={}), 3, processes=True)
    assert out.processes.empty and len(out.gpu) == 3 and not out.problems


def test_ticks_do_not_drift_however_long_a_reading_takes(tmp_path: Path) -> None:
    hands = Hands(cost_s=0.01)
    times: list[float] = []
    out = record(tmp_path / "a.csv", Replay(), 200, hands=hands, heard=lambda rows: times.append(rows[0].mono_s))
    late = [time - times[0] - tick for tick, time in enumerate(times)]
    assert max(map(abs, late)) < 0.05, "a tick lies at a whole number of intervals, not at the end of the last"
    assert len(out.gpu) == 200


@pytest.mark.slow
def test_a_slow_reading_leaves_ticks_out_and_none_is_made_up_for(tmp_path: Path) -> None:
    adapter = Replay({"0": [reading(), 0.35]})
    times: list[float] = []
    sampler_stop = threading.Event()

    def heard(rows: list[RecordRow]) -> None:
        times.append(rows[0].mono_s)
        if len(times) == 6:
            sampler_stop.set()

    sampler = Sampler(CsvSink(tmp_path / "a.csv", pytest.fail), adapter, None, Options(0.1), heard=heard)
    sampler.open()
    sampler.run(sampler_stop)
    sampler.close()
    out = read_telemetry(tmp_path / "a.csv")
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert max(steps) > 0.3 and sorted(steps)[0] > 0.02, "a gap, and no burst after it"
    left_out = int(out.events["detail"].iloc[-1].split(", ")[1].split()[0])
    assert 3 <= left_out <= 6


def test_pcie_is_read_in_turns_where_it_would_fill_the_interval(tmp_path: Path) -> None:
    eight = {str(gpu): [] for gpu in range(8)}
    often, rare = Replay(dict(eight)), Replay(dict(eight))
    record(tmp_path / "a.csv", often, 10)
    record(tmp_path / "b.csv", rare, 70, interval_s=0.1)
    assert all(asked for _, asked in often.pcie)
    per_gpu = {gpu: sum(asked for of, asked in rare.pcie if of == gpu) for gpu in eight}
    assert set(per_gpu.values()) == {10}, "every seventh tick: 8 x 40 ms in half of 0.1 s"


@pytest.mark.parametrize("step_s", [-3600.0, -20.0, 7200.0])
def test_a_clock_that_is_set_loses_no_row_and_no_order(tmp_path: Path, step_s: float) -> None:
    hands = Hands()

    def set_clock(n: int) -> None:
        hands.wall_s += step_s if n == 30 else 0.0

    hands.at_wait = set_clock
    first = hands.wall_s
    path = tmp_path / "a.csv"
    out = record(path, Replay(), 60, hands=hands)
    assert len(out.gpu) == 60 and not out.problems
    assert out.gpu["time"].diff().dropna().dt.total_seconds().round(3).eq(1).all()
    assert out.gpu["time"].iloc[-1].timestamp() == pytest.approx(first + 59 + step_s), "the clock at the end counts"
    assert kinds(out).count("clock_step") == 1 and any("clock of the machine was set" in note for note in out.notes)
    said = {-3600.0: "back by 1 h", -20.0: "back by 20 s", 7200.0: "ahead by 2 h"}[step_s]
    assert out.events.loc[out.events["kind"] == "clock_step", "detail"].tolist() == [f"the clock was set {said}"]


def test_a_slow_drift_of_the_clock_is_no_step(tmp_path: Path) -> None:
    hands = Hands()

    def slew(n: int) -> None:
        hands.wall_s += 0.0005

    hands.at_wait = slew
    out = record(tmp_path / "a.csv", Replay(), 100, hands=hands)
    assert "clock_step" not in kinds(out) and not out.notes


def test_marks_of_another_thread_are_written_once(tmp_path: Path) -> None:
    sampler = Sampler(CsvSink(tmp_path / "a.csv", pytest.fail), Replay(), None, Options(), clock=clock_of(Hands()))
    sampler.open()
    threads = [threading.Thread(target=sampler.mark, args=("epoch", f"n, {n}"), kwargs={"trial": n}) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sampler.tick()
    sampler.close()
    events = read_telemetry(tmp_path / "a.csv").events
    assert sorted(events.loc[events["kind"] == "epoch", "trial"]) == list(range(8))


@pytest.mark.parametrize("interval_s", [0.0, -1.0, float("nan"), 1e9])
def test_a_senseless_interval_is_refused(interval_s: float) -> None:
    with pytest.raises(ConfigError, match="interval must lie between"):
        Options(interval_s)


def test_a_tick_of_eight_gpus_costs_less_than_half_a_percent_of_a_core_at_one_hertz(tmp_path: Path) -> None:
    """Processor time of this thread, not of the clock on the wall; measured at about a hundredth of the limit."""
    adapter = Replay({str(gpu): [] for gpu in range(8)})
    sampler = Sampler(CsvSink(tmp_path / "a.csv", pytest.fail), adapter, None, Options())
    sampler.open()
    began = time.thread_time()
    for _ in range(100):
        sampler.tick()
    assert (time.thread_time() - began) / 100 <= 0.005 * 1.0
    sampler.close()


@pytest.mark.slow
def test_ten_hertz_holds_its_moments(tmp_path: Path) -> None:
    times: list[float] = []
    sampler = Sampler(
        CsvSink(tmp_path / "a.csv", pytest.fail),
        Replay({"0": [], "1": []}),
        None,
        Options(0.1),
        heard=lambda rows: times.append(rows[0].mono_s),
    )
    sampler.open()
    stop = threading.Event()
    threading.Timer(4.05, stop.set).start()
    sampler.run(stop)
    sampler.close()
    late = sorted((moment - times[0]) % 0.1 for moment in times)
    assert 36 <= len(times) <= 42
    off = sorted(min(value, 0.1 - value) for value in late)
    assert off[len(off) // 2] < 0.01, "ticks stay at multiples of the interval to the end"
    assert abs((times[-1] - times[0]) / 0.1 - round((times[-1] - times[0]) / 0.1)) < 0.4


@pytest.mark.slow
def test_memory_stays_constant_over_thousands_of_samples() -> None:
    class Nowhere:
        """A file that swallows everything."""

        def write(self, data: memoryview) -> int:
            return len(data)

        def close(self) -> None:
            pass

    usual = {"util_pct": 85, "mem_used_mib": 100.0}
    adapter = Replay({str(gpu): [] for gpu in range(8)}, usual=usual)
    adapter.pcie = Swallow()
    sink = CsvSink(Path("nowhere-at-all.csv"), pytest.fail, opener=lambda path: Nowhere())  # type: ignore[arg-type,return-value]
    from gpudiag.record.status import LiveStatus

    board = LiveStatus(pytest.fail)
    sampler = Sampler(sink, adapter, None, Options(), clock=clock_of(Hands()), heard=board.update)
    sampler.open()
    began = time.monotonic()
    for _ in range(1_500):
        sampler.tick()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2_500):
            sampler.tick()
        middle = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert middle - before < 100_000
    assert time.monotonic() - began < 240
    assert sampler._ticks * 8 == 32_000


class Swallow(list):
    def append(self, item: object) -> None:
        pass
