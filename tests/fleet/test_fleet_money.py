"""Money: a price of run.toml wins for its run, that of the fleet holds for the others; recomputed from seconds."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from commandline import called
from test_counted import logged
from test_fleet_table import cause, row

from gpudiag.errors import ConfigError
from gpudiag.fleets.fleet import fleet, read_fleet
from gpudiag.fleets.money import at_price
from gpudiag.fleets.row import without_gpu_time
from gpudiag.fleets.table import FleetTable

pytestmark = pytest.mark.usefixtures("warm")


@pytest.mark.slow
def test_each_run_costs_its_own_price_or_that_of_the_fleet(tmp_path: Path) -> None:
    for k, stated in enumerate(("price_per_gpu_h = 3.0", 'currency = "EUR"', "")):
        logged(tmp_path / "runs" / f"r{k}" / "gpu.csv", f"2026-03-0{k + 2} 10:00:00", 400, seed=k)
        (tmp_path / "runs" / f"r{k}" / "run.toml").write_text(f"[settings]\n{stated}\n", encoding="utf-8")
    table = fleet(tmp_path / "runs", tmp_path / "out", jobs=2, timezone="UTC", price_per_gpu_h=2.0)
    hours = {one.run: (one.gpu_s or 0.0) / 3600 for one in table.rows}
    wanted = {"USD": 3 * hours["r0"] + 2 * hours["r2"], "EUR": 2 * hours["r1"]}
    assert table.total.cost == pytest.approx(wanted) and table.total.n_priced == 3
    assert read_fleet(tmp_path / "out").total.cost == table.total.cost
    again = fleet(tmp_path / "runs", tmp_path / "out", jobs=2, timezone="UTC")
    assert again.total.cost == pytest.approx({"USD": 3 * hours["r0"]})


def split(path: Path, uuids: list[str], start: str, n: int, period_s: int) -> Path:
    """nvidia-smi of boards in MIG mode: no utilization, but memory and power."""
    times = pd.date_range(start, periods=n, freq=f"{period_s}s").strftime("%Y/%m/%d %H:%M:%S.000")
    named = [f"{gpu}, {uuid}" for gpu, uuid in enumerate(uuids)]
    rows = [f"{time}, {gpu}, NVIDIA H100 80GB HBM3, [N/A], 20000 MiB, 300.00 W" for time in times for gpu in named]
    path.parent.mkdir(parents=True)
    head = "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], power.draw [W]"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
def test_boards_without_utilization_hold_gpu_time_that_costs_and_counts_once(tmp_path: Path) -> None:
    uuids = [f"GPU-{k}1111111-2222-3333-4444-555555555555" for k in range(3)]
    split(tmp_path / "runs" / "two" / "gpu.csv", uuids[:2], "2026-03-02 10:00:00", 720, 5)
    split(tmp_path / "runs" / "one" / "gpu.csv", uuids[2:], "2026-03-02 10:00:00", 360, 10)
    split(tmp_path / "runs" / "copy" / "gpu.csv", uuids[2:], "2026-03-02 10:00:05", 350, 10)
    (tmp_path / "runs" / "one" / "run.toml").write_text("[settings]\nprice_per_gpu_h = 5.0\n", encoding="utf-8")
    table = fleet(tmp_path / "runs", tmp_path / "out", jobs=2, timezone="UTC", price_per_gpu_h=4.0)
    assert {one.run: one.gpu_s for one in table.rows if one.gpu_s and one.status == "diagnosed"} == {
        "one": 3600.0, "two": 7200.0
    }  # fmt: skip
    assert next(one for one in table.rows if one.run == "copy").status == "counted already"
    assert table.total.cells["unobserved"] == table.total.gpu_s == 10800.0
    assert table.total.cost == pytest.approx({"USD": 13.0}) and math.isnan(table.total.util_pct)
    text = table.to_markdown()
    assert "2 runs held GPUs for 3 GPU-h." in text and "idle" not in text.partition("Who used the GPUs")[0]


def test_what_a_cause_lost_is_money_by_currency() -> None:
    held = [
        row("a", causes=(cause("idle", 4.0),), top_cause="idle", recoverable_gpu_h=4.0, currency="EUR"),
        row("b", causes=(cause("idle", 1.0),), top_cause="idle", recoverable_gpu_h=1.0, price_per_gpu_h=9.0, cost=1.0,
            currency="USD"),
    ]  # fmt: skip
    (one,) = FleetTable(at_price(held, 2.5)).causes
    assert one.lost_cost == {"EUR": 10.0, "USD": 9.0}
    text = FleetTable(at_price(held, 2.5)).to_markdown()
    assert "GPU-h, 10.00 EUR + 9.00 USD |" in text


def test_gpu_time_that_counts_elsewhere_costs_nothing_twice() -> None:
    run = without_gpu_time(row("a", seconds={"busy": 3600.0}, cost=7.0, currency="USD"), "x", beside="cluster")
    assert run.cost == 7.0 and at_price([run], 2.0)[0].cost is None


@pytest.mark.parametrize("price", ["-1", "inf"])
def test_a_price_is_no_less_than_nothing(price: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="price per GPU-hour"):
        fleet("data/samples", tmp_path, price_per_gpu_h=float(price))
    assert called(monkeypatch, "fleet", "data/samples", "-o", tmp_path, "--price", price) == 2
