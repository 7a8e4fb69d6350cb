"""Cores and memory that a recording tells stand in for those that run.toml does not state."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gpudiag._load.recorded_settings import with_host
from gpudiag.manifest import Settings

NAN = float("nan")
GPUS = pd.DataFrame({"gpu": ["0", "1"]})


def host(cores: list[float], ram_mib: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"cpu_cores": cores, "ram_total_mib": ram_mib})


@pytest.mark.parametrize(
    ("stated", "cores", "ram_mib", "known"),
    [
        ({}, [16, 16], [65536, 65536], {"cpu_cores": 16, "ram_gib": 64}),
        ({}, [NAN, 16], [NAN, NAN], {"cpu_cores": 16, "ram_gib": None}),
        ({}, [16, 8], [65536, 1024], {"cpu_cores": None, "ram_gib": None}),  # two hosts that differ
        ({}, [0], [0], {"cpu_cores": None, "ram_gib": None}),
        ({"cpu_cores": 12, "ram_gib": 8}, [16], [65536], {"cpu_cores": 12, "ram_gib": 8}),
        ({"cpu_cores": 12, "parallel": 3}, [16], [65536], {"cpu_cores": 12, "ram_gib": 64, "parallel": 3}),
    ],
)
def test_what_the_host_tells(
    stated: dict[str, Any], cores: list[float], ram_mib: list[float], known: dict[str, Any]
) -> None:
    assert with_host(Settings(**stated), host(cores, ram_mib), GPUS) == Settings(**stated).model_copy(update=known)


def test_logs_of_others_tell_nothing() -> None:
    assert with_host(Settings(), pd.DataFrame({"cpu_pct": [1.0]}), GPUS) == Settings()


def test_of_several_hosts_one_is_not_what_the_run_had() -> None:
    nodes = GPUS.assign(host=["node1", "node2"])
    assert with_host(Settings(), host([16, 16], [65536, 65536]), nodes) == Settings()
    assert with_host(Settings(), host([16], [65536]), GPUS.assign(host="node1")).cpu_cores == 16
