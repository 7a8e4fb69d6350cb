"""What other numbers of trials at once would bring, in words and tables."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.parallelism.scenario import RISKY_PCT, Scenario
from gpudiag.forecast.parallelism.what_if import Forecast
from gpudiag.report._render.blocks import Block, Note, Number, TableBlock, TableCell
from gpudiag.report.format import (
    UNKNOWN,
    at_most,
    count,
    duration,
    factors,
    number,
    outward,
    plural,
    points,
    quantity,
    ratio,
    share,
    significance,
    significant,
)

SLOWER = "Throughput counts trials, not what the search learns: with more at once the sampler knows less at each start."
HERE, ELSEWHERE = "stands below", "is in `gpudiag whatif --all`, under Memory capacity"
WITH_ALL = "is told with --all"
BOUNDS = "So there are bounds only."
START_UPS_OPEN = (
    "The log leaves open how long trials start up: let them store when they begin to train (gd.TrialTimestamps). "
    "Without any, throughput would be at most {most} the present one, for the GPU idles no more than that."
)


def parallelism(forecast: Forecast, *, best: bool = True, crashes: str = HERE) -> list[Block]:
    """The present state, the table, what follows (with ``best``, and where crashes are told) and how far it can be
    trusted.
    """
    said = (_best(forecast, crashes) if best else "", _trust(forecast), _drift(forecast))
    blocks: list[Block] = [Note(_now(forecast)), _table(forecast), *(Note(text) for text in said if text)]
    return [*blocks, *_assignment(forecast)]


def memory_says(forecast: Forecast) -> bool:
    """True where the capacity of the memory names the number to run at once."""
    return forecast.capacity is not None and forecast.capacity.limits


def is_answered(forecast: Forecast) -> bool:
    """Whether a number of trials at once can be called the fastest, or not faster."""
    return bool(_if_they_fit(forecast) or _best(forecast))


def answer(forecast: Forecast) -> str:
    """What another number of trials at once would bring, in a sentence or two. Where memory says how many to run at
    once, that is said once, in the section on memory, and no other number is named here.
    """
    if memory_says(forecast):
        return "How many to run at once, the section on memory says; this is what throughput alone would be."
    if unproven := _if_they_fit(forecast):
        return " ".join(_gain(forecast, unproven, ", if they fit,"))
    if best := _best(forecast):
        return best.partition(SLOWER)[0].strip() or SLOWER
    if forecast.backtest is not None and forecast.backtest.tested and not forecast.backtest.passed:
        return (
            "What trials will do next does not follow from what they did: a model of the first half missed the second."
        )
    return _trust(forecast)


def _if_they_fit(forecast: Forecast) -> Scenario | None:
    """The fastest number at once, where it is one of more that the trials seen leave possible in memory without proving
    it, as the section on memory says.
    """
    others = [s for s in _others(forecast) if s.overflow.known]
    best = _fastest([s for s in others if s.overflow.high <= RISKY_PCT or _may_fit(forecast, s)])
    return best if best is not None and _may_fit(forecast, best) else None


def _may_fit(forecast: Forecast, one: Scenario) -> bool:
    return one.k > forecast.now and one.overflow.value <= RISKY_PCT < one.overflow.high


def _fastest(some: list[Scenario]) -> Scenario | None:
    """What is surely faster than now goes before what may be."""
    return max(some, key=lambda s: (s.gain.low > 1.0, s.throughput.value), default=None)


def gaps(forecast: Forecast) -> list[Block]:
    """What could not be forecast, and why; no reason twice."""
    shown = {forecast.backtest.reason if forecast.backtest else ""} | {s.throughput.reason for s in forecast.parallel}
    return [Note(reason, "unknown") for _, reason in forecast.gaps if reason not in shown]


def between(estimate: Estimate) -> str:
    """'12.3 (10–14)', '10–14' for bounds, a dash for the unknown; the unit stands elsewhere. Bounds are rounded
    outward, those of a gain as everywhere.
    """
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return significant(estimate.value, 3) if estimate.known else UNKNOWN
    if not estimate.unit:
        digits = 2
        ends = [end.removesuffix("×") for end in factors(estimate.low, estimate.high)]
    else:
        digits = _decimals(estimate.low, estimate.high)
        low, high = outward(estimate.low, estimate.high, digits)
        ends = [_short(end, digits, estimate.unit) for end in (low or estimate.low, high)]
    bounds = ends[0] if ends[0] == ends[1] else "–".join(ends)
    return f"{_short(estimate.value, digits, estimate.unit)} ({'–'.join(ends)})" if estimate.known else bounds


def _decimals(low: float, high: float) -> int:
    """Of a value and its bounds alike: two digits of the width, and at most three of the largest."""
    width, most = high - low, max(abs(low), abs(high))
    of_width = 1 - math.floor(math.log10(width)) if width > 0 else 9
    of_size = 2 - math.floor(math.log10(most)) if most > 0 else 0
    return max(0, min(of_width, of_size))


def _short(value: float, decimals: int, unit: str) -> str:
    """A number of that many decimals; what would read 0 and is not in two digits, and shares below 0.1 % as such."""
    if math.isnan(value):
        return UNKNOWN
    if unit == "%" and 0 < value < 0.1:
        return "< 0.1"
    return number(rounded) if (rounded := round(value, decimals)) or not value else significant(value, 2)


def _now(forecast: Forecast) -> str:
    span = " in the last third of the log" if forecast.drift.found else ""
    text = f"Now: {plural(forecast.now, 'trial')} at once."
    text += f" While {count(forecast.now)} ran at once, {between(forecast.rate)} trials/h were measured{span}."
    if not math.isnan(forecast.configured) and forecast.configured != forecast.now:
        text += f" Configured are {count(forecast.configured)}."
    if not math.isnan(forecast.remaining_trials):
        text += f" {plural(int(forecast.remaining_trials), 'trial')} to go."
    return f"{text} {_placement(forecast)}".rstrip()


def _placement(forecast: Forecast) -> str:
    """Where the trials of now run if that is uneven, what spreading them would bring, and where others are taken to
    run.
    """
    if forecast.spread is None:
        return ""
    here = forecast.at(forecast.now).placed
    most, least = max(here, key=lambda gpu: here[gpu]), min(here, key=lambda gpu: here[gpu])
    without = [gpu for gpu, number in here.items() if not number]
    fewest = (
        f"{here[least]} on GPU {least}" if not without else f"none on GPU{'s'[: len(without) - 1]} {', '.join(without)}"
    )
    return (
        f"They are spread unevenly: {here[most]} on GPU {most} and {fewest}. Spread evenly, they would be "
        f"{between(forecast.spread.gain)} times as fast. Below, each further one joins the GPU with the fewest; of "
        "fewer, the fullest GPU loses one."
    )


def _table(forecast: Forecast) -> TableBlock:
    known: dict[str, Callable[[Scenario], str]] = {
        "Trials/h": lambda s: between(s.throughput),
        "Times now": lambda s: between(s.gain),
        "Util %": lambda s: between(s.util),
        "Overflow %": lambda s: between(s.overflow),
        "Hours left": lambda s: between(s.left),
        "COMPLETE/h": lambda s: between(s.complete),
    }
    shown = {name: tell for name, tell in known.items() if any(tell(s) != UNKNOWN for s in forecast.parallel)}
    rows = []
    for scenario in forecast.parallel:
        cells: list[TableCell] = [Number(f"{scenario.k} (now)" if scenario.k == forecast.now else str(scenario.k))]
        rows.append((*cells, *(Number(tell(scenario)) for tell in shown.values())))
    return TableBlock(("At once", *shown), tuple(rows), _caption(forecast))


def _caption(forecast: Forecast) -> str:
    text = "In brackets an interval of about 90 %."
    if any(s.bounds_only for s in forecast.parallel):
        text = "Where there is no value before the interval, these are bounds."
    text += _base(forecast)
    if any(s.beyond and not s.bounds_only for s in forecast.parallel):
        first = min(s.k for s in forecast.parallel if s.beyond)
        text += f" {first} at once or more was not observed: an extrapolation."
    if any(s.overflow.high == s.overflow.high for s in forecast.parallel):
        text += " Overflow: trials at whose end those at once exceed the memory, at most the upper end."
    if any(not math.isnan(s.left.low) for s in forecast.parallel):
        text += f" Hours left include {quantity(forecast.restart_min, 'min')} for the restart."
    return text


def _base(forecast: Forecast) -> str:
    """What throughput is a multiple of, where that is not what was measured of the present number."""
    here = next((s for s in forecast.parallel if s.k == forecast.now), None)
    if here is None or math.isnan(here.throughput.low):
        return ""
    if forecast.rate.known and here.throughput.known:
        return ""
    if here.throughput.known:
        known = f"the {_short(here.throughput.value, 3, 'trials/h')} trials/h that the model expects"
        return f" Times now: over {known} of {forecast.now} at once, not over what was measured."
    if forecast.backtest is not None and forecast.backtest.tested:
        known = quantity(forecast.backtest.measured)
        both = f"what was measured of it and the {known} trials/h of the second half"
        return f" The bounds of {forecast.now} at once hold both {both}."
    return ""


def _best(forecast: Forecast, crashes: str = ELSEWHERE) -> str:
    """What the highest throughput among those that memory allows means in words; ``crashes``: where what they leave
    of it stands.
    """
    others, known = _others(forecast), _memory_known(forecast)
    fitting = [s for s in others if not s.overflow.high > RISKY_PCT and (s.overflow.known or not known)]
    said = _memory(forecast, others, crashes)
    if unproven := _if_they_fit(forecast):
        said = [*_gain(forecast, unproven, ", if they fit,"), *said]
    best = _fastest(fitting)
    if best is not None and (unproven is None or best.gain.value > 1.0):
        said = [*_gain(forecast, best), *said]
    return " ".join([*said, SLOWER] if unproven or best else said)


def room_at_once(most: int, high_pct: float, beyond: str = "") -> str:
    """Up to which number at once the trials seen fit together, and whether that speaks for others; ``high_pct``: upper
    end of the chance of an overflow there.
    """
    few = f"; so few do not show that others would (overflow in up to {share(high_pct)})"
    return f"the largest trials seen fit together, {most}{beyond} at once{few if high_pct > RISKY_PCT else ''}."


def _memory(forecast: Forecast, others: list[Scenario], crashes: str) -> list[str]:
    """Which numbers the memory does not hold, up to which the trials seen fit, and of which nobody knows."""
    over = [str(s.k) for s in others if s.overflow.known and s.overflow.value > RISKY_PCT]
    unsure = [s for s in others if s.k > forecast.now and s.overflow.high > RISKY_PCT and str(s.k) not in over]
    capacity = forecast.capacity
    fit = capacity.hard_fit_k * capacity.n_gpus if capacity is not None else 0
    seen = max((s for s in unsure if s.k <= fit), key=lambda s: s.k, default=None)
    open_ = [s for s in unsure if not s.k <= fit]
    said = [f"In memory {room_at_once(seen.k, seen.overflow.high)}"] if seen is not None else []
    if over:
        said.append(
            f"With {_any_of(over)} at once, trials together exceed the memory now and then. What crashes leave of the "
            f"throughput {crashes}."
        )
    if open_:
        said.append(f"Whether the memory always holds {_any_of([str(s.k) for s in open_])} at once is not known.")
    return said


def _any_of(words: list[str]) -> str:
    """'3', '3 or 4', '3, 4 or 6'."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _gain(forecast: Forecast, best: Scenario, provided: str = "") -> list[str]:
    """What the fastest brings, and under which condition."""
    if best.gain.low > 1.0:
        said = [f"{best.k} at once{provided} would be {between(best.gain)} times as fast."]
        if not math.isnan(best.break_even_trials):
            trials = plural(math.ceil(best.break_even_trials), "trial")
            said.append(f"After a restart of {quantity(forecast.restart_min, 'min')} that pays from {trials} on.")
        return said
    if best.gain.value > 1.0:
        may = f"{best.k} at once{provided} may be {between(best.gain)} times as fast"
        return [f"{may}: no gain at all is within the interval."]
    return [f"{_any_of(_not_faster(forecast))} at once is not expected to be faster than {forecast.now}."]


def _not_faster(forecast: Forecast) -> list[str]:
    """The numbers looked at that memory holds, or may hold, and that are no faster."""
    others = [s for s in _others(forecast) if s.gain.value <= 1.0 and not s.overflow.value > RISKY_PCT]
    return [str(s.k) for s in others if s.overflow.known or not _memory_known(forecast)]


def _others(forecast: Forecast) -> list[Scenario]:
    """The numbers looked at; no more than now where trials ran out of memory and nobody knows what they take."""
    capacity = forecast.capacity
    full = capacity is not None and capacity.crashes.events("oom") > 0
    known = [s for s in forecast.parallel if s.k != forecast.now and s.throughput.known]
    return [s for s in known if s.k < forecast.now or s.overflow.known or not full]


def _memory_known(forecast: Forecast) -> bool:
    return any(s.overflow.known for s in forecast.parallel)


def _trust(forecast: Forecast) -> str:
    test = forecast.backtest
    if test is None:
        return f"These are bounds only. {forecast.parallel[0].throughput.reason}"  # which may end with a command
    if not test.tested:
        return f"Back-test: {test.reason} {BOUNDS}"
    text = (
        f"Back-test: fitted on {plural(test.n_fit, 'trial')} of the first half of the log, the model predicts "
        f"{between(test.predicted)} trials/h for the second; measured were {quantity(test.measured)}: "
        f"{points(test.error_pct)}."
    )
    if not test.passed:
        return f"{text} What trials will do next does not follow from what they did. {BOUNDS}"
    missing = {s.throughput.reason for s in forecast.parallel if s.bounds_only}
    return " ".join([text, *sorted(missing)])


def _drift(forecast: Forecast) -> str:
    drift = forecast.drift
    if not drift.found:
        unlike = drift.studies_differ and forecast.backtest is not None and not forecast.backtest.passed
        advice = ": forecast one of them (--study)." if drift.studies_apart else ", and some ran at the same time."
        return f"The studies differ in how long their trials take{advice}" if unlike else ""
    way, where = "longer" if drift.rho > 0 else "shorter", f"study {drift.study}" if drift.study else "the study"
    return (
        f"Trials get {way} in the course of {where} (rank correlation {ratio(drift.rho)}, "
        f"{significance(drift.p_value)}): only the last third of the log is used. The intervals of rates reach to "
        "where this goes on."
    )


def models(forecast: Forecast) -> TableBlock:
    """The models side by side."""

    def row(scenario: Scenario) -> tuple[TableCell, ...]:
        linear = forecast.rate.value * scenario.k / forecast.now
        models = (quantity(x) for x in (scenario.throughput.value, scenario.queueing, linear))
        ends = between(Estimate.bounds(scenario.least, scenario.most, "trials/h", ""))
        return tuple(Number(text) for text in (str(scenario.k), *models, ends))

    caption = (
        "Trials/h by model. Linear is what is often assumed, in proportion to the rate as measured; it takes trials "
        "for undisturbed by each other."
    )
    columns = ("At once", "Processor sharing", "Queueing (MVA)", "Linear", "Bounds")
    return TableBlock(columns, tuple(map(row, forecast.parallel)), caption)


def _assignment(forecast: Forecast) -> list[Block]:
    if not forecast.policies:
        return []
    rows = tuple((Number(str(k)), policy, Number(quantity(rate, exact=True))) for k, policy, rate in forecast.policies)
    caption = "Which GPU the next trial goes to. Round robin: workers are spread evenly, and each stays on its GPU."
    return [TableBlock(("At once", "Assignment", "Trials/h"), rows, caption)]


def startup(forecast: Forecast) -> str:
    """What start-up costs and what less of it would bring; '' where nothing was forecast."""
    gain = forecast.startup
    if math.isnan(gain.share_pct):
        return "" if math.isnan(gain.most) else START_UPS_OPEN.format(most=at_most(gain.most))
    seen = plural(gain.n_seen, "trial")
    return (
        f"Start-up takes {share(gain.share_pct)} of a trial's worker ({duration(gain.typical_s)}, seen in {seen}), "
        f"but with {forecast.now} at once it leaves a GPU with nothing else for {share(gain.alone_pct)} of its time at "
        f"most. Half as long, throughput would be {between(gain.halved)} times the present one; without any, "
        f"{between(gain.removed)} times; more than {at_most(gain.most)} is not possible."
    )


def batch(forecast: Forecast) -> list[str]:
    """Bounds on what a larger batch brings, and the experiment that tells."""
    gains = ", ".join(f"B x {factor}: {between(gain)}" for factor, gain in forecast.batch.gains)
    said = f"Samples per second over now: {gains}. {forecast.batch.gains[0][1].reason}"
    return [said, forecast.batch.design]
