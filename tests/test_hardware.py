from __future__ import annotations

import csv
import math
from importlib.resources import files

import pytest

from gpudiag.hardware import find_board


@pytest.mark.parametrize(
    ("name", "mem_mib", "mem_gib", "power_w"),
    [
        ("NVIDIA GeForce RTX 4090", 24564, 24, 450),
        ("NVIDIA GeForce RTX 4090", None, 24, 450),
        ("GeForce GTX 1080 Ti", 11178, 11, 250),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 16376, 16, 285),
        ("NVIDIA GeForce RTX 4060 Ti", 16380, 16, 165),
        ("NVIDIA GeForce RTX 4060 Ti", 8188, 8, 160),
        ("RTX 4060 Ti 16GB", None, 16, 165),
        ("Tesla T4", 15360, 16, 70),
        ("Tesla P100-PCIE-16GB", 16280, 16, 250),
        ("Tesla P100-SXM2-16GB", 16280, 16, 300),
        ("Tesla V100-PCIE-32GB", 32510, 32, 250),
        ("Tesla V100-SXM2-16GB", 16160, 16, 300),
        ("NVIDIA A100-SXM4-80GB", 81920, 80, 400),
        ("NVIDIA A100-PCIE-40GB", 40960, 40, 250),
        ("NVIDIA A100 80GB PCIe", 81920, 80, 300),
        ("NVIDIA H100 80GB HBM3", 81559, 80, 700),
        ("NVIDIA H100 PCIe", 81559, 80, 350),
        ("NVIDIA H100 NVL", 95830, 94, 400),
        ("NVIDIA H200", 143771, 141, 700),
        ("NVIDIA L40S", 46068, 48, 350),
        ("NVIDIA A10G", 23028, 24, 300),
        ("NVIDIA RTX A6000", 49140, 48, 300),
        ("NVIDIA RTX 6000 Ada Generation", 49140, 48, 300),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, 96, 600),
        ("Quadro RTX 8000", 46080, 48, 260),
    ],
)
def test_names_as_the_driver_prints_them(name: str, mem_mib: float | None, mem_gib: float, power_w: float) -> None:
    board = find_board(name, mem_mib)
    assert board is not None and not board.laptop and board.note == ""
    assert (board.mem_gib, board.power_w) == (mem_gib, power_w)


@pytest.mark.parametrize(
    ("name", "mem_mib", "power_w"),
    [
        ("RTX 5090", 24463, 175),
        ("NVIDIA GeForce RTX 4090", 16376, 175),
        ("RTX 4080", 12282, 175),
        ("RTX 5090 24GB", None, 175),
    ],
)
def test_memory_that_fits_only_the_laptop_part_makes_it_one_and_says_so(
    name: str, mem_mib: float | None, power_w: float
) -> None:
    board = find_board(name, mem_mib)
    assert board is not None and board.laptop and board.laptop_assumed and board.power_w == power_w
    assert "laptop" in board.note and f"{board.mem_gib:g} GiB" in board.note


@pytest.mark.parametrize(
    ("name", "mem_mib"),
    [("NVIDIA GeForce RTX 4050 Laptop GPU", 6141), ("NVIDIA GeForce RTX 3070 Laptop GPU", 8192),
     ("NVIDIA GeForce RTX 4090 Laptop GPU", None), ("RTX 2000 Ada Generation Laptop GPU", 8188)],
)  # fmt: skip
def test_a_stated_laptop_is_no_assumption(name: str, mem_mib: float | None) -> None:
    board = find_board(name, mem_mib)
    assert board is not None and board.laptop and not board.laptop_assumed and board.note == ""


def test_equal_memory_without_the_word_is_the_desktop_part() -> None:
    board = find_board("NVIDIA GeForce RTX 4060", 8188)
    assert board is not None and not board.laptop and board.power_w == 115


@pytest.mark.parametrize(
    ("name", "mem_mib"),
    [
        ("NVIDIA GeForce RTX 2080 ...", 8192),  # cut short in the table of nvidia-smi
        ("NVIDIA GeForce RTX 3060 L", 6144),
        ("NVIDIA GeForce RTX 4090 D", 24564),
        ("NVIDIA GeForce RTX 3050 Ti Laptop GPU", 4096),
        ("Tesla V100S-PCIE-32GB", 32510),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887),  # 300 W, not the 600 W part
        ("NVIDIA GeForce RTX 4090", 48000),  # contradicted by its memory
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 24564),
        ("AMD Instinct MI300X", None),
        ("", None),
        (None, 24564),
    ],
)
def test_unknown_is_unknown(name: str | None, mem_mib: float | None) -> None:
    assert find_board(name, mem_mib) is None


def test_what_the_name_leaves_open_is_nan() -> None:
    board = find_board("NVIDIA GeForce RTX 4060 Ti")
    assert board is not None and math.isnan(board.mem_gib) and math.isnan(board.power_w) and board.bandwidth_gb_s == 288


@pytest.mark.parametrize(
    ("name", "averaged"),
    [("NVIDIA A100-SXM4-80GB", False), ("NVIDIA A30", False), ("Tesla T4", False), ("NVIDIA A40", True),
     ("NVIDIA L4", True), ("NVIDIA H200", True), ("RTX 5090", True), ("Tesla V100-SXM2-16GB", False)],
)  # fmt: skip
def test_sensor_averages_since_ampere_but_ga100(name: str, averaged: bool) -> None:
    board = find_board(name)
    assert board is not None and board.averaged_sensor is averaged


def test_the_sheet_is_sound() -> None:
    rows = list(csv.DictReader(files("gpudiag").joinpath("data/gpus.csv").read_text(encoding="utf-8").splitlines()))
    keys = [(row["name"], row["laptop"], row["mem_gib"]) for row in rows]
    assert len(set(keys)) == len(keys) > 60
    for row in rows:
        assert row["laptop"] in ("yes", "no")
        assert row["architecture"] in {"pascal", "volta", "turing", "ampere", "ga100", "ada", "hopper", "blackwell"}
        for column, low, high in (("mem_gib", 4, 192), ("power_w", 60, 1000), ("bandwidth_gb_s", 192, 8000)):
            assert not row[column] or low <= float(row[column]) <= high, row
        spelling = row["name"].split("|")[0] + (" Laptop GPU" if row["laptop"] == "yes" else "")
        found = find_board(f"NVIDIA {spelling}", float(row["mem_gib"]) * 1024 if row["mem_gib"] else None)
        assert found is not None and str(found.power_w) == str(float(row["power_w"] or "nan"))
