"""What differs between two runs in how they were set up: settings, loader, parameters, hardware and recording."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pandas as pd

from gpudiag.comparison.side import Side
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.plain_data import Scalar, clean
from gpudiag.schema import IDLE_PCT
from gpudiag.statement import NOTHING, Statement

PARAMS = "params."
SAME_PERIOD = 0.1
"""Part by which sampling periods may differ and the pollers still agree."""
SAME_LIMIT = 0.05
SAME_CLOCK = 0.1
PERIODS = "Telemetry was sampled every {a_s} and every {b_s}."
READERS = "Telemetry was read by different tools ({a}; {b})."
SAMPLES = "The logs hold {a} and {b} samples of a GPU; the longer one sees more."
_REQUESTED = re.compile(r"^\s*requested:\s*(.+)$", re.IGNORECASE)
_ASKED = re.compile(r"^([A-Za-z_][\w.-]*)\s*(?:=|:|\s)\s*(\S+)$")
_FLAG = re.compile(r"(?:^|\s)--?([A-Za-z_][\w-]*)(?:=|\s+)([^\s-]\S*)|(?:^|\s)([A-Za-z_][\w.]*)=(\S+)")


@dataclass(frozen=True)
class Difference:
    """One thing that differs; None is not known.

    ``group``: settings, dataloader, params, attributes, hardware or recording.
    """

    group: str
    name: str
    baseline: Scalar
    experiment: Scalar


def differences(baseline: Side, experiment: Side) -> tuple[Difference, ...]:
    """All that is known to differ, or known of one run only; times, counts and names of runs are no configuration."""
    out = []
    for group, read in _GROUPS.items():
        a, b = read(baseline), read(experiment)
        for name in dict.fromkeys((*a, *b)):
            if not _same(name, a.get(name), b.get(name)):
                out.append(Difference(group, name, a.get(name), b.get(name)))
    return tuple(out)


def logged_params(side: Side) -> dict[str, Scalar]:
    """Parameters as the artifacts show them: the value where all trials have the same, else the choices or a range."""
    trials = side.run.trials
    out: dict[str, Scalar] = {}
    for column in trials.columns:
        if isinstance(column, str) and column.startswith(PARAMS) and trials[column].notna().any():
            out[column.removeprefix(PARAMS)] = _summary(trials[column].dropna())
    return out


def requested_params(side: Side) -> dict[str, Scalar]:
    """Parameters that were asked for: a note of run.toml such as "requested: num_leaves 255, max_depth 15"."""
    out: dict[str, Scalar] = {}
    for note in side.run.info.notes:
        if found := _REQUESTED.match(note):
            for part in found[1].split(","):
                if asked := _ASKED.match(part.strip().rstrip(".")):
                    out[asked[1]] = _value(asked[2])
    return out


def command_params(side: Side) -> dict[str, Scalar]:
    """Options of the command line that started the run (--epochs 50, lr=0.1)."""
    found = _FLAG.finditer(side.run.info.settings.command or "")
    return {(m[1] or m[3]).replace("-", "_"): _value(m[2] or m[4]) for m in found}


class Pollers(TypedDict):
    """How the telemetry was taken: readers, sampling period, length, and the samples of a GPU."""

    reader: str | None
    period_s: float
    span_s: float
    samples: int


def pollers(side: Side) -> Pollers | None:
    """How the telemetry was taken; None where its sampling was not measured."""
    sampling = side.get("sampling")
    readers = sorted({record.reader for record in side.run.info.inputs if record.kind == "telemetry"})
    if sampling is None:
        return None
    return {
        "reader": ", ".join(readers) or None,
        "period_s": float(sampling.median_period_s),
        "span_s": float(sampling.per_gpu["span_s"].max()),
        "samples": int(sampling.per_gpu["n_samples"].max()),
    }


def pollers_agree(baseline: Side, experiment: Side, *, same_length: bool = True) -> tuple[bool | None, Statement]:
    """Whether peaks may be compared, and why not: same period and reader, like number of samples (METHODS 1, 7)."""
    a, b = pollers(baseline), pollers(experiment)
    if a is None or b is None:
        return None, Statement("GPU telemetry is missing on one side.")
    if not math.isclose(a["period_s"], b["period_s"], rel_tol=SAME_PERIOD):
        return False, Statement(PERIODS, a_s=a["period_s"], b_s=b["period_s"])
    if a["reader"] != b["reader"] and a["reader"] and b["reader"]:
        return False, Statement(READERS, a=a["reader"], b=b["reader"])
    if same_length and not 0.8 <= a["samples"] / b["samples"] <= 1.25:
        return False, Statement(SAMPLES, a=a["samples"], b=b["samples"])
    return True, NOTHING


def boards(side: Side) -> dict[str, Scalar]:
    """Name, driver, memory and power limit of the GPUs, and the median clock while busy."""
    run = side.run
    out: dict[str, Scalar] = {}
    gpus = run.gpus
    if len(gpus):
        out["gpus"] = len(gpus)
        for column, name in (("name", "gpu_model"), ("driver", "driver")):
            if column in gpus and gpus[column].notna().any():
                out[name] = ", ".join(sorted({str(value) for value in gpus[column].dropna()}))
    if not run.gpu.empty:
        limits = gpu_boards(run)
        known = limits.loc[limits["limit_source"].isin(["log", "run.toml"]), "limit_w"].dropna()
        out |= {"power_limit_w": float(known.max())} if len(known) else {}
        total = limits["total_mib"].dropna()
        out |= {"mem_total_mib": float(total.max())} if len(total) else {}
        if {"sm_clock_mhz", "util_pct"} <= set(run.gpu.columns):
            busy = run.gpu.loc[run.gpu["util_pct"] >= IDLE_PCT, "sm_clock_mhz"].dropna()
            out |= {"busy_clock_mhz": float(busy.median())} if len(busy) >= 10 else {}
    return out


def _settings(side: Side) -> dict[str, Scalar]:
    held = side.run.info.settings.model_dump() | side.run.info.training.model_dump()
    if held.get("price_per_gpu_h") is None:
        held.pop("currency", None)
    return {name: value for name, value in held.items() if value is not None and name != "n_trials"}


def _attributes(side: Side) -> dict[str, Scalar]:
    """User attributes that run.toml allows to be shown, such as the commit of the code."""
    trials = side.run.trials
    columns = {name: f"user_attrs.{name}" for name in side.run.info.show_attrs}
    return {n: _summary(trials[c].dropna()) for n, c in columns.items() if c in trials and trials[c].notna().any()}


def _dataloader(side: Side) -> dict[str, Scalar]:
    return {name: value for name, value in side.run.info.dataloader.model_dump().items() if value is not None}


def _requested(side: Side) -> dict[str, Scalar]:
    logged = logged_params(side)
    return {f"{name} (requested)": value for name, value in requested_params(side).items() if name not in logged}


def _recording(side: Side) -> dict[str, Scalar]:
    known = pollers(side)
    return {"reader": known["reader"], "period_s": known["period_s"]} if known is not None else {}


_GROUPS = {
    "settings": _settings,
    "dataloader": _dataloader,
    "params": lambda side: logged_params(side) | _requested(side),
    "attributes": _attributes,
    "hardware": boards,
    "recording": _recording,
}


def _same(name: str, a: Scalar, b: Scalar) -> bool:
    tolerance = {"period_s": SAME_PERIOD, "power_limit_w": SAME_LIMIT, "busy_clock_mhz": SAME_CLOCK}.get(name, 0.0)
    if tolerance and isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= tolerance * max(abs(a), abs(b))
    if name == "mem_total_mib" and isinstance(a, float) and isinstance(b, float):
        return abs(a - b) < 64
    return bool(a == b)


INFINITE = {"inf": "∞", "-inf": "−∞"}
"""A value that somebody chose; as a word it would be a number that nobody knows."""


def _summary(values: pd.Series) -> Scalar:
    unique = values.astype(str).unique()
    if len(unique) == 1:
        return clean(values.iloc[0])
    numbers = pd.to_numeric(values, errors="coerce") if not values.map(type).eq(bool).any() else values * np.nan
    if numbers.notna().all() and len(unique) > 12:
        return "a range"  # what a search drew differs by chance; that it drew is the configuration
    listed = sorted(unique, key=lambda text: (0, float(text)) if _is_number(text) else (1, text))
    shown = [INFINITE.get(text, text) for text in listed[:12]]
    return ", ".join(shown) + (", ..." if len(listed) > 12 else "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _value(text: str) -> Scalar:
    lowered = text.strip("\"'").lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if _is_number(lowered):
        number = float(lowered)
        return int(number) if number.is_integer() and "." not in lowered and "e" not in lowered else number
    return text.strip("\"'")


def equal_values(a: Scalar, b: Scalar) -> bool:
    """Whether a requested value is the logged one, however it is written (true, True, 1.0)."""
    return str(_value(str(a))).lower() == str(_value(str(b))).lower()


def changed(found: Mapping[str, Scalar], name: str) -> Scalar:
    """A value by its name, whatever the case and the dashes."""
    return {key.lower().replace("-", "_"): value for key, value in found.items()}.get(name.lower().replace("-", "_"))
