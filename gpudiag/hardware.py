"""What boards can do: memory, power, bandwidth and arithmetic by product name.

``data/gpus.csv`` holds METHODS 8.1: TechPowerUp-derived values checked row by row, NVIDIA's data sheets where
those are wrong, and for laptops the greatest TGP including Dynamic Boost. Names are as NVML prints them, without
NVIDIA, GeForce, Tesla and the like; ``|`` separates spellings; a board sold with two memories has two rows.

Peaks are TFLOP/s at boost clock, of matrix products on tensor cores (``fp32`` alone without them) that add up in fp32;
``fp16`` is bf16 too. They are dense: data sheets often print twice as much, for matrices of which half is zeros (2:4
sparsity). Sources, all NVIDIA: white papers of Turing (TITAN RTX), GA102 (RTX 3090, RTX A6000), Ada (RTX 4090, RTX 6000
Ada), RTX Blackwell (RTX 5090) and H100 (PCIe, SXM); data sheets of V100, T4, A2, A10, A30, A40, A100, L40S; of L4, H100
NVL, H200, H200 NVL, GH200, B200 and GB200 half of what they state with sparsity. A800 and H800 compute as A100 and
H100 do, and exchange less; for H20 and L20, which have no public data sheet, what reports agree on. Empty where the
board has no such format, or where sources differ or a name does not tell: A10G, L40 (the same chip as L40S, half the
number), RTX 2080 Ti (two versions), Quadro RTX 6000 and 8000 (with and without fan), RTX PRO 6000 (workstation and
server), and those with no source at hand.

``boost_mhz`` is the boost clock of the same white papers and data sheets, where they state one: a board may run above
it, an H100 SXM at up to 1,980 MHz for 1,830.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any

MEMORY_FIT = (0.90, 1.02)
"""Total memory over nominal GiB that is accepted: ECC and reserved parts reduce the total (METHODS 1)."""
_STATED_FIT = (0.925, 1.0)
"""Of nominal GiB what drivers state: 0.925 of it on an A10G, 0.931 on a K80, all of it on many."""
_STATED = """
    2048 3072 4096 6144 8192 10240 11264 12288 16384 20480 24576 32768 40960 46080 49152 81920
    6078 6141 7611 7680 7952 7982 8114 8119 8151 8188 11019 11178 11441 12053 12066 12196 12227 12282
    15109 15360 16125 16160 16280 16303 16311 16376 16380 20475 22731 22919 23028 23034 24220 24268 24564
    32510 32607 45634 46068 48676 48685 49140 81251 81559 95830 97871 97887 143771 183359
"""
_STATED_MIB = frozenset(map(int, _STATED.split()))
"""Totals in MiB that NVIDIA drivers state: nominal sizes, and those less ECC and reserved parts (a default, partly
without a published source). A size that is missing here is asked for; one that a PC has would be a wrong GPU.
"""
INSTANTANEOUS = frozenset({"pascal", "volta", "turing", "ga100"})
"""Architectures whose power sensor reads an instant; on all later ones it is a 1 s average (arXiv 2312.02741)."""
_NO_BF16 = frozenset({"pascal", "volta", "turing"})
_MOBILE = frozenset({"laptop", "mobile"})
_NOISE = frozenset({"nvidia", "geforce", "tesla", "gpu", "generation", "graphics", "edition", "workstation", "server"})


@dataclass(frozen=True)
class Board:
    """One row of the data sheet. Values that the name leaves open are NaN.

    ``laptop_assumed``: the name lacks "Laptop", but the memory fits only the laptop part.
    """

    name: str
    architecture: str
    laptop: bool
    mem_gib: float
    power_w: float
    bandwidth_gb_s: float
    fp32_tflops: float
    tf32_dense_tflops: float
    fp16_dense_tflops: float
    fp8_dense_tflops: float
    boost_mhz: float
    laptop_assumed: bool = False

    @property
    def averaged_sensor(self) -> bool:
        """True if the power sensor reports a 1 s average."""
        return self.architecture not in INSTANTANEOUS

    def peaks_tflops(self, dtype: str = "") -> dict[str, float]:
        """Dense peak (TFLOP/s) by the number format in which a training in ``dtype`` may compute: in tf32 where it is
        fp32, in any where it is '' (unknown). Formats whose peak is unknown, or which the board lacks, are left out.
        """
        half = "fp16" if self.architecture in _NO_BF16 else "bf16"
        known = {"fp32": self.fp32_tflops, "tf32": self.tf32_dense_tflops, half: self.fp16_dense_tflops}
        known |= {"fp8": self.fp8_dense_tflops} | ({"fp16": self.fp16_dense_tflops} if dtype == "fp16" else {})
        may = {"": tuple(known), "fp32": ("fp32", "tf32")}.get(dtype, (dtype,))
        return {name: peak for name, peak in known.items() if name in may and not math.isnan(peak)}

    @property
    def note(self) -> str:
        """What was assumed, as a sentence; empty where nothing was."""
        if not self.laptop_assumed:
            return ""
        return (
            f"Taken for the laptop part of {self.name}: the name does not say so, "
            f"but {self.mem_gib:g} GiB fits only that."
        )


_NUMBERS = tuple(field.name for field in fields(Board) if field.type == "float")


def find_board(name: str | None, mem_total_mib: float | None = None) -> Board | None:
    """The board of that product name, told apart by its total memory where the name is not enough.

    None where the name is unknown, cut short ("NVIDIA GeForce RTX 2080 ...") or contradicted by the memory.
    """
    if not name or name.rstrip().endswith((".", "…")):
        return None
    words = _words(name)
    mem_gib = mem_total_mib / 1024 if mem_total_mib and mem_total_mib > 0 else _stated_gib(name)
    laptop = bool(words & _MOBILE) or ({"max", "q"} <= words and "pro" not in words)
    # Every word counts: an "RTX 4070 Ti" is no "RTX 4070", and a variant that the sheet lacks is unknown.
    model = words - _MOBILE - _NOISE - ({"max", "q"} if laptop else set())
    named = [board for spellings, board in _sheet() if model in spellings]
    fitting = [board for board in named if _fits_memory(board, mem_gib)]
    same_kind = [board for board in fitting if board.laptop == laptop]
    if same_kind or laptop:
        return _common(same_kind)
    found = _common(fitting)
    return replace(found, laptop_assumed=True) if found else None


def is_memory_size(mem_mib: float) -> bool:
    """True for a total in MiB that drivers state to the digit."""
    return mem_mib in _STATED_MIB


def may_be_memory_size(mem_mib: float) -> bool:
    """True for a total in MiB that a board could have; a third of all numbers can be one, the memory of a PC too."""
    return is_memory_size(mem_mib) or any(
        _STATED_FIT[0] <= mem_mib / 1024 / board.mem_gib <= _STATED_FIT[1] for _, board in _sheet()
    )


def _words(name: str) -> frozenset[str]:
    """Lower-case words of a name, without sizes such as 80GB."""
    return frozenset(re.findall(r"[a-z0-9]+", re.sub(r"\b\d+ ?gi?b\b", " ", name.lower())))


def _stated_gib(name: str) -> float | None:
    """The memory that a name states; a Grace Hopper states that of its CPU."""
    if "gh200" in name.lower():
        return None
    size = re.search(r"\b(\d+) ?gi?b\b", name.lower())
    return float(size.group(1)) if size else None


def _fits_memory(board: Board, mem_gib: float | None) -> bool:
    if mem_gib is None or math.isnan(mem_gib) or math.isnan(board.mem_gib):
        return True
    return MEMORY_FIT[0] <= mem_gib / board.mem_gib <= MEMORY_FIT[1]


def _common(boards: list[Board]) -> Board | None:
    """What the candidates agree on; NaN where they do not."""
    if not boards:
        return None
    first = boards[0]
    differ: dict[str, Any] = {
        name: math.nan for name in _NUMBERS if len({getattr(board, name) for board in boards}) > 1
    }
    return replace(first, **differ)


@cache
def _sheet() -> tuple[tuple[tuple[frozenset[str], ...], Board], ...]:
    """Spellings and board of each row of the data file."""
    text = files("gpudiag").joinpath("data/gpus.csv").read_text(encoding="utf-8")
    return tuple(_row(row) for row in csv.DictReader(text.splitlines()))


def _row(row: dict[str, str]) -> tuple[tuple[frozenset[str], ...], Board]:
    spellings = row["name"].split("|")
    numbers: dict[str, Any] = {name: float(row[name] or "nan") for name in _NUMBERS}
    board = Board(spellings[0], row["architecture"], row["laptop"] == "yes", **numbers)
    return tuple(_words(s) for s in spellings), board
