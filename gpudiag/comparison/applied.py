"""Whether what was asked for is what ran (check 4): parameters, loader, GPUs, power limit, clocks, parallelism."""

from __future__ import annotations

from collections.abc import Mapping

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateCheck, worst
from gpudiag.comparison.differences import (
    SAME_CLOCK,
    SAME_LIMIT,
    boards,
    changed,
    command_params,
    equal_values,
    logged_params,
    requested_params,
)
from gpudiag.comparison.side import Side
from gpudiag.plain_data import Scalar
from gpudiag.report.format import number, quantity

Suspicion = tuple[str, str]
SERIAL = 1.2
"""Mean number of trials at once up to which a run that asked for two or more ran them one by one (METHODS 4)."""


def parameters_applied(baseline: Side, experiment: Side) -> GateCheck:
    """4. Requested against logged, per run, and hardware of the two against each other."""
    found = [
        *_requested(baseline, experiment),
        *_requested(experiment, baseline),
        *_logged(baseline, experiment),
        *_hardware(baseline, experiment),
        *_parallelism(baseline, experiment),
    ]
    return worst("parameters-applied", found, "Nothing contradicts that what was asked for is what ran.")


def _requested(side: Side, other: Side) -> list[Suspicion]:
    """What a run asked for and its own artifacts deny, or do not show."""
    logged = logged_params(side)
    asked = requested_params(side)
    known = {*logged, *logged_params(other)}
    asked |= {name: value for name, value in command_params(side).items() if name in known and name not in asked}
    asked |= {
        n: v
        for n, v in side.run.info.dataloader.model_dump().items()
        if v is not None and changed(logged, n) is not None
    }
    wrong = [(n, v, changed(logged, n)) for n, v in asked.items() if changed(logged, n) is not None]
    denied = [
        f"{n} {_say(v)} (logged: {_say(got)})" for n, v, got in wrong if not equal_values(v, got) and not _many(got)
    ]
    absent = [f"{n} {_say(v)}" for n, v in asked.items() if changed(logged, n) is None]
    out = []
    if denied:
        out.append((FAIL, f"{side.name} asked for {', '.join(denied)}: what was requested is not what ran."))
    if absent:
        out.append(
            (
                FAIL,
                f"{side.name} asked for {', '.join(absent)}, and its artifacts do not show these parameters: "
                "nobody can say that they were in effect.",
            )
        )
    return out


def _logged(baseline: Side, experiment: Side) -> list[Suspicion]:
    a, b = logged_params(baseline), logged_params(experiment)
    if a and b:
        same = [name for name in a if name in b]
        differ = [name for name in same if a[name] != b[name]]
        differing = f" ({', '.join(differ[:6])} differ)" if differ else ""
        return [(PASS, f"Both log parameters{differing}.")]
    if not a and not b:
        return [(UNKNOWN, "Neither run logs parameters of its items.")]
    without = experiment if a else baseline
    if requested_params(without):
        return []
    return [(UNKNOWN, f"{without.name} logs no parameters of its items, so whether they are the same is not known.")]


def _hardware(baseline: Side, experiment: Side) -> list[Suspicion]:
    a, b = boards(baseline), boards(experiment)
    if not a or not b:
        return [(UNKNOWN, "Without GPU telemetry on both sides the hardware is not known.")]
    out: list[Suspicion] = []
    model = a.get("gpu_model"), b.get("gpu_model")
    if all(model) and model[0] != model[1]:
        out.append((FAIL, f"The GPUs differ ({model[0]}; {model[1]}): a ratio would compare boards, not settings."))
    elif not all(model):
        out.append((UNKNOWN, "The model of the GPUs is not known on both sides."))
    if a.get("gpus") != b.get("gpus"):
        out.append((PASS, f"{a.get('gpus', 0)} and {b.get('gpus', 0)} GPUs: means are over all GPUs of a run."))
    if _apart(a, b, "power_limit_w", SAME_LIMIT):
        out.append(
            (
                FAIL,
                f"The power limits differ ({quantity(a['power_limit_w'], 'W')}; {quantity(b['power_limit_w'], 'W')}).",
            )
        )
    if _apart(a, b, "busy_clock_mhz", SAME_CLOCK):
        out.append(
            (
                UNKNOWN,
                f"The clock while busy differs ({quantity(a['busy_clock_mhz'], 'MHz')}; "
                f"{quantity(b['busy_clock_mhz'], 'MHz')}), "
                "by the load or by the board.",
            )
        )
    driver = a.get("driver"), b.get("driver")
    if all(driver) and driver[0] != driver[1]:
        out.append((UNKNOWN, f"The drivers differ ({driver[0]}; {driver[1]})."))
    return out


def _parallelism(baseline: Side, experiment: Side) -> list[Suspicion]:
    out: list[Suspicion] = []
    for side in (baseline, experiment):
        asked, found = side.run.info.settings.parallel, side.get("parallelism")
        if asked and asked >= 2 and found is not None and found.n_timed >= 2 * asked and found.effective <= SERIAL:
            out.append(
                (
                    UNKNOWN,
                    f"{side.name} asked for {asked} at once and {number(found.effective)} ran: the setting had no "
                    "effect.",
                )
            )
    return out


def _apart(a: Mapping[str, Scalar], b: Mapping[str, Scalar], name: str, tolerance: float) -> bool:
    x, y = a.get(name), b.get(name)
    return isinstance(x, float) and isinstance(y, float) and abs(x - y) > tolerance * max(x, y)


def _many(value: object) -> bool:
    return isinstance(value, str) and (", " in value or value == "a range")


def _say(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
