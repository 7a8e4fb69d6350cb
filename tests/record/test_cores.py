"""Cores that a process may use: by its affinity and by the quotas of its control groups, written here by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudiag.record.cores import usable_cores

ALL = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores(folder: Path, membership: str, files: dict[str, str]) -> int:
    (folder / "membership").write_text(membership)
    for name, text in files.items():
        (folder / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup" / name).write_text(text)
    return usable_cores(folder / "cgroup", folder / "membership")


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "100000 100000\n"}, 1),  # a container's own name space
        ("0::/a/b\n", {"a/cpu.max": "100000 100000\n", "a/b/cpu.max": "max 100000\n"}, 1),  # of an outer group
        ("0::/a\n", {"a/cpu.max": "50000 100000\n"}, 1),  # half a core is one that is shared
        ("0::/a\n", {"a/cpu.max": f"{100_000 * ALL + 50_000} 100000\n"}, ALL),
        ("0::/a\n", {"b/cpu.max": "100000 100000\n"}, ALL),  # of others
        ("0::/a\n", {"a/cpu.max": "100000\n"}, ALL),
        ("0::/a\n", {"a/cpu.max": "100000 0\n"}, ALL),
        ("4:cpu,cpuacct:/j\n", {"cpu/j/cpu.cfs_quota_us": "100000", "cpu/j/cpu.cfs_period_us": "100000"}, 1),
        ("4:cpu,cpuacct:/j\n", {"cpu/j/cpu.cfs_quota_us": "-1", "cpu/j/cpu.cfs_period_us": "100000"}, ALL),
        ("4:cpuset:/j\n", {"cpu/j/cpu.cfs_quota_us": "100000", "cpu/j/cpu.cfs_period_us": "100000"}, ALL),
        ("nonsense\n", {}, ALL),
    ],
)
def test_the_fewest_of_affinity_and_quotas(tmp_path: Path, membership: str, files: dict[str, str], quota: int) -> None:
    assert cores(tmp_path, membership, files) == quota


def test_without_control_groups(tmp_path: Path) -> None:
    assert usable_cores(tmp_path / "none", tmp_path / "none") == ALL
    assert 1 <= usable_cores() <= ALL
