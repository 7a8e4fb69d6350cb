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


@pytest.mark.parametrize(("mem_mib", "bandwidth_gb_s"), [(97871, 4000), (147_000, 4900), (None, math.nan)])
def test_a_grace_hopper_is_named_by_the_memory_of_its_cpu(mem_mib: float | None, bandwidth_gb_s: float) -> None:
    board = find_board("NVIDIA GH200 480GB", mem_mib)
    assert board is not None and board.bandwidth_gb_s == pytest.approx(bandwidth_gb_s, nan_ok=True)


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


@pytest.mark.parametrize(
    ("name", "bf16_tflops", "tf32_tflops"),
    [
        # SMs x FLOPs of an SM a clock x boost clock in GHz, as the white papers count them
        ("NVIDIA A100-SXM4-80GB", 108 * 2048 * 1.410e-3, 108 * 1024 * 1.410e-3),
        ("NVIDIA A100 80GB PCIe", 108 * 2048 * 1.410e-3, 108 * 1024 * 1.410e-3),
        ("NVIDIA A30", 56 * 2048 * 1.440e-3, 56 * 1024 * 1.440e-3),
        ("NVIDIA H100 80GB HBM3", 132 * 4096 * 1.830e-3, 132 * 2048 * 1.830e-3),
        ("NVIDIA H200", 132 * 4096 * 1.830e-3, 132 * 2048 * 1.830e-3),
        ("NVIDIA GH200 480GB", 132 * 4096 * 1.830e-3, 132 * 2048 * 1.830e-3),
        ("NVIDIA H800", 132 * 4096 * 1.830e-3, 132 * 2048 * 1.830e-3),
        ("NVIDIA A800-SXM4-80GB", 108 * 2048 * 1.410e-3, 108 * 1024 * 1.410e-3),
        ("NVIDIA H100 PCIe", 114 * 4096 * 1.620e-3, 114 * 2048 * 1.620e-3),
        ("NVIDIA A10", 72 * 1024 * 1.695e-3, 72 * 512 * 1.695e-3),
        ("NVIDIA A40", 84 * 1024 * 1.740e-3, 84 * 512 * 1.740e-3),
        ("NVIDIA RTX A6000", 84 * 1024 * 1.800e-3, 84 * 512 * 1.800e-3),
        ("NVIDIA L4", 58 * 1024 * 2.040e-3, 58 * 512 * 2.040e-3),
        ("NVIDIA RTX 6000 Ada Generation", 142 * 1024 * 2.505e-3, 142 * 512 * 2.505e-3),
        ("NVIDIA GeForce RTX 3090", 82 * 512 * 1.695e-3, 82 * 256 * 1.695e-3),
        ("NVIDIA GeForce RTX 4090", 128 * 512 * 2.520e-3, 128 * 256 * 2.520e-3),
        ("NVIDIA GeForce RTX 5090", 170 * 512 * 2.407e-3, 170 * 256 * 2.407e-3),
    ],
)
def test_dense_peaks_are_what_units_and_clock_give(name: str, bf16_tflops: float, tf32_tflops: float) -> None:
    board = find_board(name)
    assert board is not None
    assert board.peaks_tflops("bf16") == {"bf16": pytest.approx(bf16_tflops, rel=0.01)}
    assert board.peaks_tflops("tf32") == {"tf32": pytest.approx(tf32_tflops, rel=0.01)}


@pytest.mark.parametrize(
    ("name", "fp16_tflops"),
    [("Tesla V100-SXM2-16GB", 125), ("Tesla V100-PCIE-32GB", 112), ("Tesla T4", 65), ("NVIDIA TITAN RTX", 130.5),
     ("NVIDIA H100 NVL", 835.5), ("NVIDIA H200 NVL", 835.5), ("NVIDIA L40S", 362.05), ("NVIDIA B200", 2250),
     ("NVIDIA GB200", 2500), ("NVIDIA H20", 148), ("NVIDIA L20", 119.5)],
)  # fmt: skip
def test_peaks_in_fp16_as_stated(name: str, fp16_tflops: float) -> None:
    board = find_board(name)
    assert board is not None and board.peaks_tflops("fp16") == {"fp16": fp16_tflops}


@pytest.mark.parametrize(
    "name", ["NVIDIA A10G", "NVIDIA L40", "NVIDIA GeForce RTX 2080 Ti", "NVIDIA GB10", "Quadro RTX 6000"]
)
def test_a_peak_that_sources_do_not_agree_on_is_unknown(name: str) -> None:
    board = find_board(name)
    assert board is not None and board.peaks_tflops() == {}


def test_a_training_in_fp32_may_use_tf32_and_older_boards_have_no_bf16() -> None:
    a100, v100 = find_board("NVIDIA A100-SXM4-40GB"), find_board("Tesla V100-SXM2-32GB")
    assert a100 is not None and v100 is not None
    assert a100.peaks_tflops("fp32") == {"fp32": 19.5, "tf32": 156}
    assert a100.peaks_tflops("fp8") == {}
    assert (v100.peaks_tflops("bf16"), v100.peaks_tflops("fp32"), set(v100.peaks_tflops())) == (
        {}, {"fp32": 15.7}, {"fp32", "fp16"},
    )  # fmt: skip


def test_formats_of_a_board_are_known_all_or_none_and_double_from_one_to_the_next() -> None:
    rows = list(csv.DictReader(files("gpudiag").joinpath("data/gpus.csv").read_text(encoding="utf-8").splitlines()))
    known = [row for row in rows if row["fp16_dense_tflops"]]
    assert len(known) > 20
    for row in rows:
        old, new = row["architecture"] in {"pascal", "volta", "turing"}, row["architecture"] in {
            "ada", "hopper", "blackwell",
        }  # fmt: skip
        held = bool(row["fp16_dense_tflops"])
        assert bool(row["fp32_tflops"]) == held, row
        assert bool(row["tf32_dense_tflops"]) == (held and not old), row
        assert bool(row["fp8_dense_tflops"]) == (held and new), row
        if held and not old:
            half = float(row["fp16_dense_tflops"])
            assert half / float(row["tf32_dense_tflops"]) == pytest.approx(2, rel=0.03), row
            assert not new or float(row["fp8_dense_tflops"]) / half == pytest.approx(2, rel=0.03), row


def test_the_sheet_is_sound() -> None:
    rows = list(csv.DictReader(files("gpudiag").joinpath("data/gpus.csv").read_text(encoding="utf-8").splitlines()))
    keys = [(row["name"], row["laptop"], row["mem_gib"]) for row in rows]
    assert len(set(keys)) == len(keys) > 60
    for row in rows:
        assert row["laptop"] in ("yes", "no")
        assert row["architecture"] in {"pascal", "volta", "turing", "ampere", "ga100", "ada", "hopper", "blackwell"}
        for column, low, high in (("mem_gib", 4, 192), ("power_w", 60, 1200), ("bandwidth_gb_s", 192, 8000)):
            assert not row[column] or low <= float(row[column]) <= high, row
        spelling = row["name"].split("|")[0] + (" Laptop GPU" if row["laptop"] == "yes" else "")
        found = find_board(f"NVIDIA {spelling}", float(row["mem_gib"]) * 1024 if row["mem_gib"] else None)
        assert found is not None and str(found.power_w) == str(float(row["power_w"] or "nan"))
