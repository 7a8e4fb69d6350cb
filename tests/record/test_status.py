"""The status line, the summary and the warning."""

from __future__ import annotations

import pytest

from gpudiag.record.readings import RecordRow, Values
from gpudiag.record.status import AGAIN_S, WATCH_S, LiveStatus

GPU: Values = {
    "gpu": "0", "util_pct": 85, "mem_used_mib": 12.3 * 1024, "mem_total_mib": 24.0 * 1024, "power_w": 300.0
}  # fmt: skip
HOST: Values = {"cpu_pct": 45.2, "ram_used_mib": 18.4 * 1024, "ram_total_mib": 64 * 1024.0}


def tick(at: float, *values: Values, host: Values | None = None) -> list[RecordRow]:
    rows = [RecordRow("gpu", at, at, value) for value in values]
    return rows + ([RecordRow("host", at, at, host)] if host else [])


def board(said: list[str] | None = None, **settings: object) -> LiveStatus:
    return LiveStatus(pytest.fail if said is None else said.append, settings)


def test_the_status_line() -> None:
    it = board()
    assert it.status_line() == "" and it.postfix() == {}
    it.update(tick(0, GPU, host=HOST))
    assert it.status_line() == "GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: 45.2% | RAM:18.4/64.0GB(28.7%)"
    assert it.postfix() == {"GPU": "85%", "VRAM": "12.3/24.0GB(51.2%)", "CPU": "45.2%", "RAM": "18.4/64.0GB(28.7%)"}


def test_several_gpus_share_the_line_and_the_fullest_shows_its_memory() -> None:
    it = board()
    it.update(tick(0, GPU, {**GPU, "gpu": "1", "util_pct": 3, "mem_used_mib": 20 * 1024.0}))
    assert it.status_line() == "GPU: 85/3% | VRAM:20.0/24.0GB(83.3%)"


def test_the_unknown_is_not_zero() -> None:
    it = board()
    it.update(tick(0, {"gpu": "0"}, host={"ram_used_mib": 1024.0}))
    assert it.status_line() == "GPU: n/a | VRAM:n/a | CPU: n/a | RAM:1.0GB"


def test_a_host_rate_missing_in_one_tick_keeps_the_last() -> None:
    it = board()
    it.update(tick(0, host=HOST))
    it.update(tick(1, host={"ram_used_mib": 1024.0}))
    assert "CPU: 45.2%" in it.status_line()


def test_an_epoch_is_summed_up_and_the_next_begins_anew() -> None:
    it = board([])
    for at, util in enumerate((10, 20, 90, 80)):
        it.update(tick(at, {**GPU, "util_pct": util, "power_w": 100.0 * at}, host=HOST))
    it.waited(1.25)
    assert it.epoch_summary() == (
        "3 s | GPU mean 50 % (below 30 % in 50 % of samples) | VRAM peak 12.3 GiB | power mean 150 W | CPU mean 45 % | "
        "waited 1.2 s for data"
    )
    assert it.epoch_summary() == "0 s"


def run(it: LiveStatus, seconds: float, util: float, *, memory_mib: float = 8000.0, start: float = 0.0) -> None:
    for at in range(int(seconds) + 1):
        it.update(tick(start + at, {**GPU, "util_pct": util, "mem_used_mib": memory_mib}))


def test_low_utilization_is_told_with_the_present_values() -> None:
    said: list[str] = []
    run(board(said, batch_size=16, num_workers=0), WATCH_S, 11)
    assert said == [
        "GPU utilization is low: 11 % over the last 1 min. Look at the number of loader workers, the prefetch factor "
        "and the batch size (now batch_size=16, num_workers=0); time the loader by looping over recorder.timed(loader)."
    ]


@pytest.mark.parametrize(("util", "memory_mib"), [(30, 8000), (95, 8000), (5, 600)])
def test_a_busy_or_an_unused_gpu_is_no_warning(util: float, memory_mib: float) -> None:
    run(board(), 500, util, memory_mib=memory_mib)


def test_the_warning_is_not_repeated_too_soon() -> None:
    said: list[str] = []
    run(board(said), 3 * AGAIN_S, 5)
    assert 2 <= len(said) <= 3


def test_a_loader_that_keeps_the_loop_waiting_is_named() -> None:
    for waited, words in (
        (40.0, "waits for data 67 % of the time: look at"),
        (2.0, "only 3.3 % of the time: try a larger"),
    ):
        said: list[str] = []
        it = board(said)
        it.waited(waited)
        run(it, WATCH_S, 5)
        assert words in said[0]
