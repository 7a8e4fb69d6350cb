"""The planted fault of each check (benchmarks/planted): what gpudiag says of it, and a figure that shows it."""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from planted import FAULTS

from gpudiag.diagnosis import diagnose
from gpudiag.report._render.blocks import FindingBlock
from gpudiag.report._render.terminal import render
from gpudiag.report.format import listed, named, number, share
from gpudiag.report.sections import cards
from gpudiag.report.text import finding
from gpudiag.rules import RULES

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 70
SHOWN_BY = {
    "timeline": (
        "clocks-apart", "foreign-load", "work-outside-trials", "idle-without-trial", "stalls-periodic",
        "stalls-aperiodic", "idle-before-work", "idle-between-work", "idle-after-work", "gpu-allocated-idle",
        "gpu-level-shift", "cpu-bound-input", "io-wait", "sampling-coverage", "sampling-gaps", "failure-rate-high",
        "failures-out-of-memory", "failures-device-assert", "failures-not-finite", "failures-host-killed",
        "failures-poisoned",
        "trials-abandoned", "trial-gaps", "study-tail", "search-paused", "startup-dominated",
    ),
    "utilization": (
        "gpu-unused", "gpu-idle-beside-busy", "gpu-low-utilization", "gpu-fluctuating", "gpu-imbalance",
        "batch-or-kernels-small", "launch-bound",
    ),
    "memory": ("memory-near-limit", "memory-headroom", "memory-leak", "memory-residual"),
    "memory_by_trial": ("failures-after-full-memory",),
    "duration_ecdf": ("failures-bimodal",),
    "durations": ("trial-duration-outliers",),
    "concurrency": (
        "parallelism-below-configured", "parallelism-above-configured", "trials-serialised",
        "failures-by-number-at-once",
    ),
    "gaps": ("trial-gap-growth",),
    "prune_steps": ("pruning-rate-high", "pruned-before-possible", "pruned-late"),
    "learning_curves": ("pruned-too-early",),
    "power": ("power-implausible", "power-fault-throttling", "busy-without-progress"),
    "step_time": ("steps-paused", "steps-slower"),
    "ranks": ("steps-communication", "rank-behind"),
}  # fmt: skip
"""By figure the checks whose planted fault can be seen in it; no figure shows the others."""
FIGURE_OF = {rule: figure for figure, rules in SHOWN_BY.items() for rule in rules}
SHARES = {"share", "duty", "seen", "hot", "power_ratio"}
"""Values from 0 to 1 of planted faults that a sentence gives in percent."""


@dataclass(frozen=True)
class Case:
    """``planted`` says what the run is; ``said`` is the finding on a terminal, below what explains it. ``alt`` and
    ``caption`` are the words of the figure ID.svg, '' where none shows the fault.
    """

    planted: str
    said: str
    alt: str = ""
    caption: str = ""


def planted_cases(folder: Path) -> dict[str, Case]:
    """The case of each check by its id, with figures in ``folder``; made anew where code or planted faults changed."""
    kept, key = folder / "cases.json", _key()
    if kept.is_file():
        held = json.loads(kept.read_text(encoding="utf-8"))
        if held["key"] == key:
            return {rule: Case(**case) for rule, case in held["cases"].items()}
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    ids = [rule.id for rule in RULES]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        cases = dict(zip(ids, pool.map(case_of, ids, [folder] * len(ids)), strict=True))
    kept.write_text(json.dumps({"key": key, "cases": {rule: asdict(case) for rule, case in cases.items()}}))
    return cases


def case_of(rule: str, folder: Path) -> Case:
    """The case of one check, its figure written into ``folder``."""
    diagnosis = diagnose(FAULTS[rule].make(), name="planted", strict=True)
    said = render(_down_to(cards(diagnosis.document, finding), rule), WIDTH)
    if rule not in FIGURE_OF:
        return Case(planted_as(rule), said)
    picture = diagnosis.picture(FIGURE_OF[rule])
    (folder / f"{rule}.svg").write_text(picture.svg(), encoding="utf-8")
    return Case(planted_as(rule), said, picture.alt, picture.caption)


def _down_to(found: Iterable[FindingBlock], rule: str) -> tuple[FindingBlock, ...]:
    """The finding alone, within those that explain it; nothing where it is not among them."""
    below = ((one, () if one.id == rule else _down_to(one.symptoms, rule)) for one in found)
    return tuple(replace(one, symptoms=inner) for one, inner in below if inner or one.id == rule)


def planted_as(rule: str) -> str:
    """What the planted run is, in the words of its docstring with the values that it is made with."""
    make = FAULTS[rule].make
    values: Mapping[str, inspect.Parameter] = inspect.signature(make).parameters

    def value(match: re.Match[str]) -> str:
        name, given = match[1], values[match[1]].default
        if isinstance(given, tuple):
            return listed([number(one) for one in given])
        return share(100 * given, exact=True) if name in SHARES else named(name, given, exact=True)

    return re.sub(r"``(\w+)``", value, " ".join((inspect.getdoc(make) or "").split()))


def _key() -> str:
    """Changes with the code of gpudiag and of the planted faults."""
    digest = sha256(Path(__file__).read_bytes())
    for folder in (ROOT / "gpudiag", ROOT / "benchmarks" / "planted"):
        for path in sorted(path for suffix in ("py", "csv") for path in folder.rglob(f"*.{suffix}")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
