"""The host: rates between two looks, and whatever a container hides is absent."""

from __future__ import annotations

import os
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from gpudiag.record.host import SCAN_SHARE, Host, process_name, sees_other_pids

Times = namedtuple("Times", "user system idle iowait guest")
GIB = 2**30


class Machine:
    """A host of two cores, and a clock that scans move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cores = [Times(0, 0, 0, 0, 0)] * 2
        self.read_bytes: int | None = 0
        self.spent = {7: 0.0, 8: 0.0}
        self.scans = 0
        self.scan_s = 0.0

    def clock(self) -> float:
        return self.now

    def virtual_memory(self) -> Any:
        return SimpleNamespace(total=64 * GIB, available=40 * GIB)

    def cpu_times(self, percpu: bool) -> Any:
        assert percpu
        return self.cores

    def disk_io_counters(self) -> Any:
        return None if self.read_bytes is None else SimpleNamespace(read_bytes=self.read_bytes)

    def process_iter(self) -> Any:
        self.scans += 1
        self.now += self.scan_s
        for pid, spent in self.spent.items():
            yield SimpleNamespace(
                pid=pid,
                cpu_times=lambda spent=spent: SimpleNamespace(user=spent, system=0.0),
                create_time=lambda: 1.0,
            )


def test_rates_are_those_between_two_looks() -> None:
    machine = Machine()
    host = Host(machine, machine.clock, lambda: 2)
    assert host.read() == {"cpu_cores": 2, "ram_used_mib": 24 * 1024, "ram_total_mib": 64 * 1024}
    machine.now = 2.0
    machine.cores = [Times(1.5, 0.5, 0, 0, 1.5), Times(0.5, 0, 0.5, 1.0, 0)]
    machine.read_bytes = 100 * 2**20
    machine.spent = {7: 1.9, 8: 3.0, 9: 50.0}
    values = host.read()
    assert values["cpu_pct"] == pytest.approx(62.5), "2.5 of 4 s; a guest's time is the user's"
    assert values["cpu_max_core_pct"] == pytest.approx(100)
    assert values["io_wait_pct"] == pytest.approx(25) and values["host_cores"] == 2
    assert values["read_mib_s"] == pytest.approx(50)
    assert values["process_cpu_max_pct"] == pytest.approx(150), "3 s in 2 s: one and a half cores; 9 is new"


def test_what_is_hidden_is_absent() -> None:
    machine = Machine()
    machine.read_bytes = None

    def denied() -> Any:
        raise PermissionError("/proc/stat")

    machine.cpu_times = lambda percpu: denied()  # type: ignore[method-assign]
    host = Host(machine, machine.clock)
    for machine.now in (0.0, 1.0, 2.0):
        assert set(host.read()) <= {"cpu_cores", "ram_used_mib", "ram_total_mib", "process_cpu_max_pct"}


def test_a_core_more_or_less_gives_no_nonsense() -> None:
    machine = Machine()
    host = Host(machine, machine.clock)
    host.read()
    machine.now, machine.cores = 1.0, [Times(1, 0, 0, 0, 0)]
    assert "cpu_pct" not in host.read()


def test_looking_through_processes_has_its_budget() -> None:
    machine = Machine()
    machine.scan_s = 0.05
    host = Host(machine, machine.clock)
    for _ in range(1000):
        host.read()
        machine.now += 1.0
    assert machine.scans * machine.scan_s <= SCAN_SHARE * machine.now + 2 * machine.scan_s
    assert machine.scans > 20


def test_this_machine() -> None:
    host = Host()
    host.read()
    sum(range(2_000_000))
    values = host.read()
    assert 0 <= values["cpu_pct"] <= values["cpu_max_core_pct"] <= 100
    assert 1 <= values["cpu_cores"] <= os.cpu_count()
    assert 0 < values["ram_used_mib"] < values["ram_total_mib"] == psutil.virtual_memory().total / 2**20


def test_names_of_processes() -> None:
    if not sees_other_pids():
        assert process_name(os.getpid()) == psutil.Process().name()
    assert process_name(2**22 - 1) == ""
    assert process_name(-5) == ""
