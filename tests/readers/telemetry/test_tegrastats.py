"""tegrastats: what a GPU that is switched off, a sensor that is off and a shared rail leave unknown."""

from __future__ import annotations

from pathlib import Path

from gpudiag.readers.telemetry import read_telemetry

ON = "RAM 2633/7850MB (lfb 3x4MB) CPU [0%@2035,off] EMC_FREQ 7%@1600 GR3D_FREQ 18%@1134 GPU@41C VDD_GPU_SOC 371/371\n"
OFF = "RAM 2631/7850MB (lfb 3x4MB) CPU [18%@2035,off] BCPU@34.5C GPU@-256C VDD_GPU_SOC 370/370\n"


def test_what_is_off_is_unknown_and_what_is_shared_is_the_hosts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(OFF + ON + ON.replace("18%@1134", "20%@1134") + "RAM 26\n", encoding="utf-8")
    telemetry = read_telemetry(tmp_path / "log", timezone="UTC", period_s=1.0)
    gpu = telemetry.gpu
    assert gpu["util_pct"].isna().tolist() == [True, False, False] and gpu["util_pct"].tolist()[1:] == [18, 20]
    assert gpu["temp_c"].isna().tolist() == [True, False, False]
    assert "power_w" not in gpu and "mem_used_mib" not in gpu and telemetry.host["ram_used_mib"][0] == 2631
    assert telemetry.host["cpu_pct"].tolist() == [18, 0, 0]
    assert [(p.kind, p.count, p.line) for p in telemetry.problems] == [("torn row", 1, 4)]


def test_samples_of_one_second_are_spread_over_it(tmp_path: Path) -> None:
    lines = [f"05-08-2026 12:01:4{k // 4} " + ON.replace("18%@1134", f"{k}%@1134") for k in range(16)]
    (tmp_path / "log").write_text("".join(lines), encoding="utf-8")
    gpu = read_telemetry(tmp_path / "log", timezone="UTC").gpu
    assert (
        gpu["util_pct"].tolist() == [*range(16)] and gpu["time"].diff().dt.total_seconds().tolist()[1:] == [0.25] * 15
    )
    assert gpu["time"].dt.month.tolist()[0] == 5
