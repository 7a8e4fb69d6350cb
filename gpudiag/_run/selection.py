"""Part of a run as a run again: a span of time, some GPUs, some trials.

Nothing is cut in two: a trial that overlaps the span keeps its own start and end, and the measures of time (ledger,
coverage, concurrency) count only what lies within. Each selection leaves a note that reports show.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from gpudiag._run.gpu_names import declared_gpus
from gpudiag._run.left_out import left_in_part, workers_in_part
from gpudiag._run.tables import R, RunTables, Whole
from gpudiag.errors import ConfigError, NotMeasurable, nearest
from gpudiag.report.format import clock_time, is_dated
from gpudiag.schema import STATES, text_dtype
from gpudiag.timezones import parse_zone
from gpudiag.units import LAST_YEAR

if TYPE_CHECKING:
    import pandas as pd

Span: TypeAlias = str | Sequence[str | datetime | None]
TIMED = ("gpu", "processes", "host", "events", "steps", "profiled")


def between(run: R, start: str | datetime | None, end: str | datetime | None) -> R:
    """The run from ``start`` (included) to ``end`` (left out); see :meth:`gpudiag.run.Run.between`."""
    low, high = _moment(run, start, "start"), _moment(run, end, "end")
    if low is not None and high is not None and low >= high:
        raise ConfigError(f"between: the start ({low}) must lie before the end ({high}).")

    def within(table: pd.DataFrame, column: str = "time") -> pd.Series:
        timestamps = table[column]
        inside = timestamps.notna()
        if low is not None:
            inside &= ~(timestamps < low)
        return inside if high is None else inside & ~(timestamps >= high)

    trials = run.trials[_overlaps(run.trials, low, high)]
    chosen = {
        **{name: rows(getattr(run, name), within(getattr(run, name))) for name in TIMED},
        "events": rows(run.events, within(run.events) | run.events["kind"].eq("model")),  # what is trained stays so
        "trials": trials.reset_index(drop=True),
        "reports": _of_trials(run.reports, trials),
        "collectives": dumps_within(run.collectives, low, high),
    }
    seen = any(len(chosen[name]) for name in ("gpu", "processes", "host"))
    if not seen and not trials["end"].notna().any() and not within(run.trials, "start").any():
        raise NotMeasurable(
            f"Nothing of the run lies between {low if low is not None else 'its start'} and "
            f"{high if high is not None else 'its end'}; it lasts from {_extent(run)}.",
            "Choose a span within the run; timestamps without a zone are read in the run's timezone.",
        )
    earlier, later = run.info.between
    both = (_tighter(low, earlier, max), _tighter(high, later, min))
    zone = parse_zone(run.info.timezone)
    bounds = " to ".join("the edge" if m is None else clock_time(m, zone) for m in (low, high))
    run = replace(run, info=replace(run.info, settings=run.info.settings.model_copy(update={"n_trials": None})))
    where = f" ({run.info.timezone})" if any(m is not None and is_dated(m) for m in (low, high)) else ""
    note = f"Selected: {bounds}{where}."
    return changed(run, chosen, note, ("study",), between=both, stated={})  # of all of it


def span_of(given: Span | None) -> tuple[str | datetime | None, str | datetime | None]:
    """Start and end of a span: a pair, or text with a comma between them; None for one that is left out.

    Raises ConfigError for what is no pair.
    """
    known = given is None or isinstance(given, str | Sequence)
    ends = given.split(",") if isinstance(given, str) else list(given or ()) if known else []
    if known and all(_blank(end) for end in ends):
        return None, None
    if len(ends) != 2:
        raise ConfigError(
            f"between: expected two times with a comma between them, of which one may be left out, e.g. "
            f"'2026-03-01 10:00,2026-03-01 12:00'; got {given!r}."
        )
    start, end = (None if _blank(end) else end.strip() if isinstance(end, str) else end for end in ends)
    return start, end


def _blank(end: str | datetime | None) -> bool:
    return end is None or (isinstance(end, str) and not end.strip())


def gpus_only(run: R, names: Sequence[str | int | Sequence[str | int]]) -> R:
    """The run on these GPUs only; see :meth:`gpudiag.run.Run.gpus_only`."""
    known = _gpu_names(run)
    wanted = []
    for name in _each(names, known):
        if name not in known:
            legal = sorted(set(known.values()))
            hint = nearest(name, legal) if legal else "it has none"
            raise ConfigError(f"the run has no GPU '{name}'; {hint}")
        wanted.append(known[name])
    if not wanted:
        raise ConfigError("name one GPU at least, by index or uuid.")
    left_out = tuple(sorted(set(known.values()) - set(wanted)))
    trials, keep = _of_gpus(run, set(wanted), set(left_out))
    on_gpu = {
        name: rows(table, table["gpu"].isin(wanted)) for name, table in _with_gpu(run, "gpu", "gpus", "processes")
    }
    events = {name: rows(t, t["gpu"].isin(wanted) | t["gpu"].isna()) for name, t in _with_gpu(run, "events")}
    chosen = {
        **on_gpu,
        **events,
        "trials": trials[keep].reset_index(drop=True),
        "reports": _of_trials(run.reports, trials[keep]),
    }
    others = tuple(sorted({*run.info.left_out_gpus, *left_out}))
    note = f"Selected: GPU {', '.join(dict.fromkeys(wanted))} only."
    if keep.all():
        return changed(run, chosen, note, (), left_out_gpus=others, gpus_chosen=True)
    settings = run.info.settings.model_copy(update={"parallel": None})  # of all GPUs
    in_part = ("study", *workers_in_part(run, keep))
    return changed(run, chosen, note, in_part, left_out_gpus=others, gpus_chosen=True, settings=settings)


def _each(names: Sequence[str | int | Sequence[str | int]], known: Container[str]) -> list[str]:
    """The names one by one: of lists, and of text that names several with commas between them."""
    each = [name for one in names for name in ([one] if isinstance(one, str) or not isinstance(one, Iterable) else one)]
    parts = [[text] if (text := str(name)) in known else text.split(",") for name in each]
    return [name.strip() for some in parts for name in some]


def trials_where(run: R, test: Callable[[pd.DataFrame], Any] | None, equal: dict[str, Any]) -> R:
    """The run with some of its trials; see :meth:`gpudiag.run.Run.trials_where`."""
    import pandas as pd

    if run.trials.empty and not run.info.n_unselected:
        raise NotMeasurable("The run has no trials to choose from.", "Give the study with trials=.")
    keep = pd.Series(True, run.trials.index)
    for column, value in equal.items():
        name = column if column in run.trials else f"params.{column}"
        if name not in run.trials:
            hint = nearest(column, map(str, run.trials))
            raise ConfigError(f"trials_where: trials have no column '{column}'; {hint}")
        values = value if isinstance(value, list | tuple | set) else [value]
        for unknown in [v for v in values if name == "state" and v not in STATES]:
            raise ConfigError(f"trials_where: there is no state {unknown!r}; {nearest(str(unknown), STATES)}")
        keep &= run.trials[name].isin(values)
    if test is not None:
        try:
            mask = pd.Series(test(run.trials), run.trials.index)
        except KeyError as missing:
            column = str(missing.args[0]) if missing.args else ""
            hint = nearest(column, map(str, run.trials))
            raise ConfigError(
                f"trials_where: the test asks for a column '{column}' that trials lack; {hint}"
            ) from missing
        if mask.dtype not in ("bool", "boolean"):
            raise ConfigError(f"trials_where: the test must give one True or False a trial, but gave {mask.dtype}.")
        keep &= mask.fillna(False).astype(bool)
    trials = run.trials[keep]
    chosen = {"trials": trials.reset_index(drop=True), "reports": _of_trials(run.reports, trials)}
    if len(trials) < len(run.trials):  # what was chosen is not drawn from all that the study declares
        chosen["studies"] = run.studies.drop(columns="space", errors="ignore")
    note = (
        f"Selected: {len(trials)} of {len(run.trials)} trials. GPU time of the others counts as time without a trial, "
        "or as that of trials beside them; checks that need all trials are not assessed."
    )
    in_part = ("study", "outcomes", *left_in_part(run, keep))
    return changed(run, chosen, note if len(trials) < len(run.trials) else "", in_part)


def changed(run: R, tables: dict[str, pd.DataFrame], note: str, in_part: tuple[Whole, ...], **info: Any) -> R:
    """The selection with its note; ``in_part``: what it leaves in part where it leaves trials out."""
    notes = (*run.info.notes, note) if note else run.info.notes
    if len(tables["trials"]) < len(run.trials):
        info["incomplete"] = tuple(dict.fromkeys((*run.info.incomplete, *in_part)))
        info["n_unselected"] = run.info.n_unselected or len(run.trials)
    return replace(run, **tables, info=replace(run.info, notes=notes, **info))


def dumps_within(collectives: pd.DataFrame, low: datetime | None, high: datetime | None) -> pd.DataFrame:
    """All or none: dumps say how far each rank came, and with their ends cut off, ranks would seem not to have come."""
    last = collectives["time"].max()
    inside = last == last and not (low is not None and last < low) and not (high is not None and last >= high)
    return collectives if inside else collectives.iloc[:0]


def rows(table: pd.DataFrame, keep: pd.Series) -> pd.DataFrame:
    return table[keep].reset_index(drop=True)


def _moment(run: RunTables, moment: str | datetime | None, which: str) -> pd.Timestamp | None:
    """A moment in UTC; without a zone it is in the run's, and of 1970 as the times of a log without dates are held."""
    import pandas as pd

    if moment is None:
        return None
    try:
        timestamp = pd.Timestamp(moment)
        if timestamp is pd.NaT:
            raise ConfigError(f"between: the {which} is unknown (NaT); give a time, or None for the run's own.")
        if timestamp.tzinfo is None:
            zone = parse_zone(run.info.timezone if is_dated(timestamp) else "UTC")
            timestamp = timestamp.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
        timestamp = timestamp.tz_convert("UTC").as_unit("us")
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        raise ConfigError(
            f"between: the {which} {moment!r} is not a time; expected e.g. '2026-03-01 10:00' or a datetime."
        ) from error
    if not 1970 <= timestamp.year <= LAST_YEAR:
        raise ConfigError(f"between: the {which} {moment!r} lies outside of the years 1970 to {LAST_YEAR}.")
    return timestamp


def _overlaps(trials: pd.DataFrame, low: pd.Timestamp | None, high: pd.Timestamp | None) -> pd.Series:
    """Trials that may have run in the span: those without a known start or end are left in where nothing forbids."""
    import pandas as pd

    start = trials["start"].fillna(trials["end"])
    keep = start.notna() if low is not None or high is not None else pd.Series(True, trials.index)
    if high is not None:
        keep &= ~(start >= high)
    return keep if low is None else keep & ~(trials["end"] <= low)


def _of_trials(reports: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    keys = pd.MultiIndex.from_frame(trials[["study", "trial"]])
    return reports[pd.MultiIndex.from_frame(reports[["study", "trial"]]).isin(keys)].reset_index(drop=True)


def _tighter(new: Any, old: Any, choose: Callable[..., Any]) -> Any:
    return choose(new, old) if new is not None and old is not None else (new if new is not None else old)


def _extent(run: RunTables) -> str:
    timestamps = [run.gpu["time"], run.trials["start"], run.trials["end"]]
    known = [timestamp for column in timestamps for timestamp in (column.min(), column.max()) if timestamp == timestamp]
    return f"{min(known)} to {max(known)}" if known else "nowhere: it has no timestamps"


def _gpu_names(run: RunTables) -> dict[str, str]:
    """Index by index, uuid and bus id."""
    names = {str(gpu): str(gpu) for gpu in run.gpu["gpu"].dropna().unique()}
    names |= {str(gpu): str(gpu) for gpu in run.gpus["gpu"].dropna()}
    for column in ("uuid", "bus_id"):
        if column in run.gpus:
            known = run.gpus[run.gpus[column].notna()]
            names |= dict(zip(known[column].astype(str), known["gpu"].astype(str), strict=True))
    return names


def _with_gpu(run: RunTables, *tables: str) -> list[tuple[str, pd.DataFrame]]:
    return [(name, getattr(run, name)) for name in tables if "gpu" in getattr(run, name)]


def _of_gpus(run: RunTables, wanted: set[str], left_out: set[str]) -> tuple[pd.DataFrame, pd.Series]:
    """The trials, and which stay: not those whose record names GPUs, and only such as are left out.

    The column ``gpu`` names them by index then: uuids of GPUs that are left out mean nothing any more.
    """
    import pandas as pd

    declared = declared_gpus(run) if len(run.trials) else {}
    named = [set(declared.get(row, ())) for row in range(len(run.trials))]
    keep = [not gpus & left_out or bool(gpus & wanted) for gpus in named]
    own = run.trials["gpu"].tolist() if "gpu" in run.trials else [None] * len(run.trials)
    gpus = [",".join(declared[row]) if row in declared else own[row] for row in range(len(own))]
    trials = run.trials.assign(gpu=pd.Series(gpus, run.trials.index, dtype=text_dtype())) if declared else run.trials
    return trials, pd.Series(keep, run.trials.index, dtype=bool)
