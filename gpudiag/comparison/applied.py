"""Whether what was asked for is what ran (check 4): parameters, loader, GPUs, power limit, clocks, parallelism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateCheck, GateFinding, worst
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
from gpudiag.statement import Statement, joined

OTHER_HARDWARE = "other hardware"
SERIAL = 1.2
"""Mean number of trials at once up to which a run that asked for two or more ran them one by one (METHODS 4)."""
DENIED = "{side} asked for {asked}: what was requested is not what ran."
NOT_SHOWN = (
    "{side} asked for {asked}, and its artifacts do not show these parameters: nobody can say that they were in effect."
)
NO_PARAMETERS = "{side} logs no parameters of its items, so whether they are the same is not known."
BOARDS = "The GPUs differ ({a}; {b}): a ratio would compare boards, not settings."
COUNTS = "{a} and {b} GPUs: means are over all GPUs of a run."
LIMITS = "The power limits differ ({a_w}; {b_w})."
SET_LIMITS = "{differ} That is a setting of the same GPUs, and its effect is in every ratio."
CLOCKS = "The clock while busy differs ({a_mhz}; {b_mhz}), by the load or by the board."
HOSTS = "The hosts differ in {name} ({a}; {b})."
NO_EFFECT = "{side} asked for {asked} at once and {ran} ran: the setting had no effect."


def parameters_applied(baseline: Side, experiment: Side) -> GateCheck:
    """4. Requested against logged, per run, and hardware of the two against each other."""
    requested = [*_requested(baseline, experiment), *_requested(experiment, baseline)]
    found = [
        *requested,
        *_logged(baseline, experiment),
        *_hardware(baseline, experiment),
        *_hosts(baseline, experiment),
        *_parallelism(baseline, experiment),
    ]
    made = worst("parameters-applied", found, Statement("Nothing contradicts that what was asked for is what ran."))
    return replace(made, cause="" if FAIL in dict(requested) else OTHER_HARDWARE)


def _requested(side: Side, other: Side) -> list[GateFinding]:
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
        Statement("{name} {value} (logged: {got})", name=n, value=_raw(v), got=_raw(got))
        for n, v, got in wrong
        if not equal_values(v, got) and not _many(got)
    ]
    absent = [
        Statement("{name} {value}", name=n, value=_raw(v)) for n, v in asked.items() if changed(logged, n) is None
    ]
    lists = ((DENIED, denied), (NOT_SHOWN, absent))
    return [(FAIL, Statement(why, side=side.name, asked=joined(*each, by=", "))) for why, each in lists if each]


def _logged(baseline: Side, experiment: Side) -> list[GateFinding]:
    a, b = logged_params(baseline), logged_params(experiment)
    if a and b:
        same = [name for name in a if name in b]
        differ = [name for name in same if a[name] != b[name]]
        if differ:
            return [(PASS, Statement("Both log parameters ({names} differ).", names=", ".join(differ[:6])))]
        return [(PASS, Statement("Both log parameters."))]
    if not a and not b:
        return [(UNKNOWN, Statement("Neither run logs parameters of its items."))]
    without = experiment if a else baseline
    if requested_params(without):
        return []
    return [(UNKNOWN, Statement(NO_PARAMETERS, side=without.name))]


def _hardware(baseline: Side, experiment: Side) -> list[GateFinding]:
    a, b = boards(baseline), boards(experiment)
    if not a or not b:
        return [(UNKNOWN, Statement("Without GPU telemetry on both sides the hardware is not known."))]
    out: list[GateFinding] = []
    model = a.get("gpu_model"), b.get("gpu_model")
    if all(model) and model[0] != model[1]:
        out.append((FAIL, Statement(BOARDS, a=model[0], b=model[1])))
    elif not all(model):
        out.append((UNKNOWN, Statement("The model of the GPUs is not known on both sides.")))
    if a.get("gpus") != b.get("gpus"):
        out.append((PASS, Statement(COUNTS, a=a.get("gpus", 0), b=b.get("gpus", 0))))
    if _apart(a, b, "power_limit_w", SAME_LIMIT):
        limits = Statement(LIMITS, a_w=a["power_limit_w"], b_w=b["power_limit_w"])
        a_setting = all(model) and model[0] == model[1] and not _other_boards(baseline, experiment)
        out.append((UNKNOWN, Statement(SET_LIMITS, differ=limits)) if a_setting else (FAIL, limits))
    if _apart(a, b, "busy_clock_mhz", SAME_CLOCK):
        out.append((UNKNOWN, Statement(CLOCKS, a_mhz=a["busy_clock_mhz"], b_mhz=b["busy_clock_mhz"])))
    driver = a.get("driver"), b.get("driver")
    if all(driver) and driver[0] != driver[1]:
        out.append((UNKNOWN, Statement("The drivers differ ({a}; {b}).", a=driver[0], b=driver[1])))
    return out


def _other_boards(*sides: Side) -> bool:
    """Whether no board of one run is in the other, by their uuids; False where these are not known of both."""
    a, b = (set(side.run.gpus.reindex(columns=["uuid"])["uuid"].dropna()) for side in sides)
    return bool(a) and bool(b) and not a & b


def _hosts(baseline: Side, experiment: Side) -> list[GateFinding]:
    """CPU cores and memory as run.toml states them: another host, or a change that is tested."""
    a, b = (side.run.info.settings for side in (baseline, experiment))
    stated = (("CPU cores", a.cpu_cores, b.cpu_cores), ("memory, GiB", a.ram_gib, b.ram_gib))
    return [
        (UNKNOWN, Statement(HOSTS, name=name, a=_raw(x), b=_raw(y)))
        for name, x, y in stated
        if x is not None and y is not None and x != y
    ]


def _parallelism(baseline: Side, experiment: Side) -> list[GateFinding]:
    out: list[GateFinding] = []
    for side in (baseline, experiment):
        asked, found = side.run.info.settings.parallel, side.get("parallelism")
        if asked and asked >= 2 and found is not None and found.n_timed >= 2 * asked and found.effective <= SERIAL:
            out.append((UNKNOWN, Statement(NO_EFFECT, side=side.name, asked=asked, ran=float(found.effective))))
    return out


def _apart(a: Mapping[str, Scalar], b: Mapping[str, Scalar], name: str, tolerance: float) -> bool:
    x, y = a.get(name), b.get(name)
    return isinstance(x, float) and isinstance(y, float) and abs(x - y) > tolerance * max(x, y)


def _many(value: object) -> bool:
    return isinstance(value, str) and (", " in value or value == "a range")


def _raw(value: object) -> str:
    """A setting as it is written, whatever kind of number it is."""
    return str(value).lower() if isinstance(value, bool) else str(value)
