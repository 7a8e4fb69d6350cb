"""What a measure is: a pure function from a run to a small frozen profile.

A profile is a frozen dataclass whose scalars and tables are declared as :mod:`gpudiag.facts` says; names carry their
unit, tables are tidy. :func:`facts` turns the scalars, and the rows of ``per_gpu`` and ``by_state``, into the
``measures`` section of the JSON.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from gpudiag.errors import NotGiven, NotMeasurable
from gpudiag.facts import INDEX, Column, Declared, Row, column
from gpudiag.plain_data import Scalar, plain
from gpudiag.schema import has_values
from gpudiag.shown import Shown
from gpudiag.statement import Statement
from gpudiag.units import unit_of

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag._run.tables import Whole
    from gpudiag.run import Run


T = TypeVar("T")


class Profile(Shown, Declared):
    """What a measure found: it shows its scalars, and the head of its table. ``class X(Profile, topic="x")`` with
    declared facts and tables is a frozen dataclass of them.
    """

    def to_frame(self) -> pd.DataFrame:
        """The table that says most: the first of its frames; without one, its scalars (name, value, unit)."""
        import pandas as pd

        for name, frame in self._frames():
            return frame.reset_index() if name in INDEX else frame
        rows = [(name, fact["value"], fact["unit"]) for name, fact in facts(self).items()]
        return pd.DataFrame(rows, columns=["name", "value", "unit"])

    def _frames(self) -> list[tuple[str, pd.DataFrame]]:
        import pandas as pd

        values = ((spec.name, getattr(self, spec.name)) for spec in dataclasses.fields(cast(Any, self)))
        return [(name, value) for name, value in values if isinstance(value, pd.DataFrame)]


P = TypeVar("P", bound=Profile)


def profile_of(profiles: Mapping[str, Profile], kind: type[P]) -> P | None:
    """The profile of that kind among those by topic; None where the run does not allow it."""
    found = profiles.get(kind.topic)
    return found if isinstance(found, kind) else None


class TrialRow(Row):
    """A trial."""

    study: Column[str] = column("study")
    trial: Column[int] = column("number within the study", label="trial")


Measure = Callable[["Run"], Any]


class FactValue(TypedDict):
    """A number of a profile, text or yes and no, as JSON holds it."""

    value: Scalar
    unit: str


def facts(profile: Declared) -> dict[str, FactValue]:
    """Scalars of a profile as ``{name: {value, unit}}``; rows of ``per_gpu`` as ``gpu.<gpu>.<column>``,
    of ``by_state`` as ``state.<state>.<column>``.

    Unknown (NaN) becomes None.
    """
    out: dict[str, FactValue] = {}
    for spec in dataclasses.fields(cast(Any, profile)):
        value = getattr(profile, spec.name)
        if isinstance(value, bool | int | float | str | Statement) or value is None:
            out[spec.name] = _fact(spec.name, value)
    for field, kind in INDEX.items():
        frame = getattr(profile, field, None)
        if frame is not None:
            columns = {str(name): column.tolist() for name, column in frame.items()}
            for at, key in enumerate(frame.index):
                for name, values in columns.items():
                    out[f"{kind}.{key}.{name}"] = _fact(name, values[at])
    return out


def _fact(name: str, value: object) -> FactValue:
    """A value and its unit: '' for text and yes or no, 'UTC' for a timestamp."""
    shown = cast(Scalar, plain(value))
    unit = "" if isinstance(shown, bool | str) else unit_of(name)
    return {"value": shown, "unit": "UTC" if hasattr(value, "tzinfo") else unit}


def need_columns(frame: pd.DataFrame, columns: tuple[str, ...], what: str, remedy: str) -> None:
    """Raise NotMeasurable unless the frame has rows and a value in each of the columns."""
    if frame.empty:
        raise NotMeasurable(f"There is no {what}.", remedy)
    for name in columns:
        if not has_values(frame, name):
            raise NotMeasurable(f"The {what} has no {name}.", remedy)


def need_trials(run: Run, column: str = "state") -> None:
    """Raise NotMeasurable unless there are trials with a value in the column; NotGiven for a training by itself, of
    which nobody would give a study.
    """
    if is_training(run):
        raise NotGiven(NO_SEARCH)
    need_columns(run.trials, (column,), "trials table", GIVE_TRIALS)


def is_training(run: Run) -> bool:
    """Whether logs tell of the steps of a training, and nothing of a search: no trial, and no setting of one."""
    if len(run.trials) or len(run.reports) or run.info.n_unselected or run.steps.empty:
        return False
    of_trials = has_values(run.steps, "trial")
    said = run.info.stated or any(getattr(run.info.settings, name) is not None for name in OF_SEARCHES)
    return not of_trials and not said


def need_all(run: Run, *wholes: Whole) -> None:
    """Raise NotMeasurable where trials that were selected away leave one of these in part."""
    if not set(wholes).isdisjoint(run.info.incomplete):
        raise NotMeasurable(
            "{n} of {n_all:trial} were selected, and this needs all of them.",
            "Look at the run without the selection.",
            n=len(run.trials),
            n_all=run.info.n_unselected,
        )


def need_two_samples(there: bool, of: str = "GPU") -> None:
    """Raise NotMeasurable unless some GPU has two samples, between which there is time."""
    if not there:
        raise NotMeasurable(f"There is only one sample of each {of}.", RECORD_LONGER)


def need_exact_clock(run: Run) -> None:
    """Raise NotMeasurable where starts and ends of trials may lie seconds or more from where the telemetry has them."""
    if run.info.clock.joined and not run.info.clock.exact:
        raise NotMeasurable(OPEN_CLOCK, STATE_OFFSET)


def clocks_may_differ(run: Run) -> bool:
    """Whether there are starts of trials, and telemetry, but not surely on one clock to the second."""
    begun = has_values(run.trials, "start")
    return begun and not run.gpu.empty and not run.info.clock.exact


def need_unset_clock(run: Run) -> None:
    """Raise NotMeasurable where the trials' clock was set within the study and nothing is joined: start-ups and gaps
    then look like waits.
    """
    if run.info.clock.step is not None and not run.info.clock.joined:
        raise NotMeasurable(
            "The trials' clock was set within the study, so start-ups and gaps between trials may look like waits.",
            "Correct the timestamps of the trials.",
        )


def need_gpu(run: Run, *columns: str) -> None:
    """Raise NotMeasurable unless the run has telemetry of whole GPUs with a value in each of the columns."""
    if run.gpu.empty and len(run.processes):
        raise NotMeasurable(
            "Telemetry of single processes was read ({n:sample}); it says nothing of the utilization, memory, power or "
            "temperature of whole GPUs.",
            RECORD_GPU,
            n=len(run.processes.drop_duplicates(["gpu", "pid", "time"])),
        )
    if run.info.others_us and any(name in run.gpu and not has_values(run.gpu, name) for name in columns):
        raise NotMeasurable(
            "Trials of other studies ran, or may have run, all the time that the GPUs were recorded.", ALL_STUDIES
        )
    if "util_pct" in columns and len(run.gpu) and not has_values(run.gpu, "util_pct"):
        raise NotMeasurable(
            "No GPU reports utilization (N/A throughout, as on MIG and some WSL systems, or not recorded).",
            RECORD_SPLIT if is_split(run) else RECORD_UTILIZATION,
        )
    need_columns(run.gpu, columns, "GPU telemetry", RECORD_GPU)


def is_split(run: Run) -> bool:
    """Whether a GPU is an instance by MIG, of which the driver reports no utilization, by its name or uuid."""
    names = [run.gpus[name].dropna().astype(str) for name in ("name", "uuid") if name in run.gpus]
    return any(one.str.contains(r"\bMIG\b").any() for one in names)


ALL_STUDIES = "Look at all studies of the storage together: leave out --study."
NVIDIA_SMI = (
    "nvidia-smi --query-gpu=timestamp,index,name,uuid,utilization.gpu,memory.used,memory.total,power.draw,power.limit,"
    "power.default_limit,temperature.gpu,clocks.sm,clocks.max.sm,clocks_event_reasons.active,"
    "ecc.errors.uncorrected.volatile.total --format=csv -l {period_s} > gpu.csv"
)
"""What records all that a check of a GPU's telemetry asks for, with no program but the driver's own."""

NO_REPORTS = "The pruned trials have no intermediate values."
GIVE_STORAGE = "Give the study's storage instead of an export or a log."
RECORD_LONGER = "Let the recorder run as long as the job; start it before the first trial and stop it after the last."
RECORD_GPU = f"Record the GPU with: {NVIDIA_SMI.format(period_s=1)}"
DCGM_LOG = "record a log of DCGM and diagnose it alone: dcgmi dmon -e 203,155,252,1001 -d 1000 > dcgmi.log"
"""The driver reports no utilization of instances; DCGM has their activity."""
RECORD_SPLIT = f"Under MIG {DCGM_LOG}"
RECORD_UTILIZATION = f"{RECORD_GPU}. If it states N/A as utilization, as under MIG, {DCGM_LOG}"
OPEN_CLOCK = (
    "Trials and telemetry may lie apart by seconds to minutes or more, which would change this: see the check of the "
    "clocks."
)
STATE_OFFSET = "State clock_offset_s in run.toml, 0 if the clocks are equal."
OF_SEARCHES = ("parallel", "n_trials", "sampler", "pruner")
"""Settings of run.toml that only a search has."""
NO_SEARCH = "The run is a training by itself, not a search: it has no trials."
GIVE_TRIALS = "Give the study with --trials optuna.db, or a task log in the run folder."
