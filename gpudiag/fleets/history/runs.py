"""The runs of a history, as their diagnosis.json files state them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpudiag.fleets.history.tracked import TRACKED, failures_of, steps_of
from gpudiag.report.fleet.history import HistoryRun
from gpudiag.report.format import safe

PARAMS = "params."


def read_runs(paths: Iterable[Path]) -> tuple[list[tuple[HistoryRun, Path]], dict[Path, str]]:
    """The runs, and why the others are left out."""
    runs: list[tuple[HistoryRun, Path]] = []
    unread: dict[Path, str] = {}
    for path in paths:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if not str(document["schema"]).startswith("gpudiag.diagnosis/"):
                continue
            name, start = safe(document["run"]["name"]), document["run"]["start"]
            if start is None:
                unread[path] = f"{path}: has no time, so that it has no place among the others."
                continue
            known = {one.name: one.of(document) for one in TRACKED}
            values = {key: value for key, value in known.items() if value is not None and value >= 0}
            what = *_training(document), _conditions(document), failures_of(document), steps_of(document)
            runs.append((HistoryRun(name, start, values, *what), path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            unread[path] = f"{path}: is no diagnosis as gpudiag writes it ({type(error).__name__})."
    return runs, unread


def _training(document: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of studies and of parameters: what tells one training from another."""
    columns = {str(name) for one in document.get("inputs", ()) for name in one.get("columns", ())}
    varied = sorted(safe(name.removeprefix(PARAMS)) for name in columns if name.startswith(PARAMS))
    return tuple(sorted(safe(str(one)) for one in document["run"].get("studies", ()))), tuple(varied)


def _conditions(document: Mapping[str, Any]) -> dict[str, str]:
    """What a person or a machine may change between two runs."""
    run = document["run"]
    out: dict[str, str] = {}
    for key, words in (("name", "GPU model"), ("driver", "driver")):
        held = sorted({str(gpu[key]) for gpu in run.get("gpus", ()) if gpu.get(key)})
        out |= {words: safe(", ".join(held))} if held else {}
    stated = {**run.get("settings", {}), **run.get("dataloader", {}), **run.get("training", {})}
    return out | {safe(name): safe(str(value)) for name, value in stated.items()}


def changed(before: HistoryRun, after: HistoryRun) -> tuple[str, ...]:
    """Conditions that both runs state and that differ."""
    both = [name for name in after.conditions if name in before.conditions]
    held = [(name, before.conditions[name], after.conditions[name]) for name in both]
    return tuple(f"{name}: {a} → {b}" for name, a, b in held if a != b)
